//! The types of `wit/iec.wit` as wasmtime lowers and lifts them.

mod handed;
mod one_piece;

use bytes::Bytes;
use wasmtime::component::{ComponentType, Lift, Lower};

pub(super) use self::{
    handed::{Cut, First, Handed, Text},
    one_piece::OnePiece,
};

#[derive(ComponentType, Lower, Debug)]
#[component(variant)]
pub(super) enum Message {
    #[component(name = "request")]
    Request(Request),
    #[component(name = "response")]
    Response(Response),
    #[component(name = "event")]
    Event(Event),
    #[component(name = "job")]
    Job(Job),
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) sender: u32,
    pub(super) operation: u32,
    #[component(name = "remaining-ms")]
    pub(super) remaining_ms: u32,
    #[component(name = "waited-us")]
    pub(super) waited_us: u32,
    pub(super) payload: Bytes,
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct Response {
    pub(super) id: u64,
    pub(super) outcome: Result<Bytes, Error>,
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct Event {
    pub(super) sender: u32,
    pub(super) subscription: u32,
    pub(super) topic: Option<String>,
    pub(super) sequence: u64,
    pub(super) lost: u64,
    pub(super) retained: bool,
    #[component(name = "waited-us")]
    pub(super) waited_us: u32,
    pub(super) payload: Bytes,
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct Job {
    pub(super) id: u64,
    pub(super) queue: u32,
    pub(super) sender: u32,
    pub(super) deliveries: u32,
    #[component(name = "waited-us")]
    pub(super) waited_us: u32,
    pub(super) payload: Bytes,
}

#[derive(ComponentType, Lift, Clone, Copy, Debug, PartialEq, Eq)]
#[component(variant)]
pub(super) enum Taking {
    #[component(name = "one-by-one")]
    OneByOne,
    #[component(name = "next")]
    Next(u32),
}

#[derive(ComponentType, Lift, Clone, Copy, Debug, PartialEq, Eq)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "only guests make these values")]
pub(super) enum BatchOrder {
    #[component(name = "in-order")]
    InOrder,
    #[component(name = "any-order")]
    AnyOrder,
}

#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(super) struct Options {
    #[component(name = "timeout-ms")]
    pub(super) timeout_ms: Option<u32>,
    pub(super) parent: Option<u64>,
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct Receipt {
    delivered: u32,
    shed: u32,
    refused: u32,
}

impl From<weir_bus::Receipt> for Receipt {
    fn from(receipt: weir_bus::Receipt) -> Self {
        let weir_bus::Receipt { delivered, shed, refused, .. } = receipt;
        Self { delivered, shed, refused }
    }
}

#[derive(ComponentType, Lift, Clone, Copy, Debug)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "only guests make these values")]
pub(super) enum Level {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
}

/// A field of a log line. A few more bytes are taken than are shown, so that the log can tell that a text was cut.
#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(super) struct Field {
    pub(super) name: Cut<{ weir_logs::MAX_FIELD_NAME + 4 }>,
    pub(super) value: Cut<{ weir_logs::MAX_FIELD_VALUE + 4 }>,
}

/// An error that a guest answers with. Longer texts are cut to what is passed on.
#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(super) struct GivenError {
    pub(super) code: Cut<{ weir_bus::HandlerError::MAX_CODE }>,
    pub(super) message: Cut<{ weir_bus::HandlerError::MAX_MESSAGE }>,
}

impl From<GivenError> for weir_bus::Error {
    fn from(error: GivenError) -> Self {
        weir_bus::HandlerError::new(error.code.0, error.message.0).into()
    }
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct HandlerError {
    pub(super) code: String,
    pub(super) message: String,
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct Limit {
    name: String,
    used: u64,
    allowed: u64,
}

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(super) struct Size {
    bytes: u64,
    allowed: u64,
}

#[derive(ComponentType, Lower, Debug)]
#[component(variant)]
pub(super) enum Error {
    #[component(name = "permission-denied")]
    PermissionDenied(String),
    #[component(name = "unknown-contract")]
    UnknownContract(String),
    #[component(name = "no-provider")]
    NoProvider(String),
    #[component(name = "not-ready")]
    NotReady(String),
    #[component(name = "timeout")]
    Timeout,
    #[component(name = "overloaded")]
    Overloaded(String),
    #[component(name = "peer-gone")]
    PeerGone,
    #[component(name = "trapped")]
    Trapped,
    #[component(name = "limit-exceeded")]
    LimitExceeded(Limit),
    #[component(name = "would-deadlock")]
    WouldDeadlock(Vec<String>),
    #[component(name = "too-large")]
    TooLarge(Size),
    #[component(name = "invalid")]
    Invalid(String),
    #[component(name = "handler")]
    Handler(HandlerError),
}

impl From<weir_bus::Error> for Error {
    fn from(error: weir_bus::Error) -> Self {
        match error {
            weir_bus::Error::PermissionDenied(what) => Self::PermissionDenied(what),
            weir_bus::Error::UnknownContract(contract) => Self::UnknownContract(contract),
            weir_bus::Error::NoProvider(what) => Self::NoProvider(what),
            weir_bus::Error::NotReady(what) => Self::NotReady(what),
            weir_bus::Error::Timeout => Self::Timeout,
            weir_bus::Error::Overloaded(receiver) => Self::Overloaded(receiver),
            weir_bus::Error::PeerGone | weir_bus::Error::Ended => Self::PeerGone,
            weir_bus::Error::Trapped => Self::Trapped,
            weir_bus::Error::LimitExceeded { name, used, allowed } => {
                Self::LimitExceeded(Limit { name, used, allowed })
            }
            weir_bus::Error::WouldDeadlock(circle) => Self::WouldDeadlock(circle),
            weir_bus::Error::TooLarge { bytes, allowed } => Self::TooLarge(Size { bytes, allowed }),
            weir_bus::Error::Invalid(what) => Self::Invalid(what),
            weir_bus::Error::Handler(weir_bus::HandlerError { code, message }) => {
                Self::Handler(HandlerError { code, message })
            }
        }
    }
}

/// Returns whole milliseconds, rounded up, so that they are at least 1 while any time is left. Longer times become
/// `u32::MAX`.
pub(super) fn milliseconds(nanoseconds: u64) -> u32 {
    u32::try_from(nanoseconds.div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// Returns whole microseconds, rounded down. Longer times become `u32::MAX`.
pub(super) fn microseconds(nanoseconds: u64) -> u32 {
    u32::try_from(nanoseconds / 1000).unwrap_or(u32::MAX)
}
