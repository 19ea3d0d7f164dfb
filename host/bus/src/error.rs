//! Why a message was not delivered or not answered: one closed set for hosts and guests.

use std::{error, fmt};

/// Why something was not done. The same cases reach an extension as `weir:iec/types.error`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operator did not grant it: what, and the key that would grant it.
    #[error("permission denied: {0}")]
    PermissionDenied(String),
    /// Nobody is configured to fulfil this contract.
    #[error("unknown contract `{0}`")]
    UnknownContract(String),
    /// The owner is stopped or has failed, or a targeted event finds no subscriber.
    #[error("no provider: {0}")]
    NoProvider(String),
    /// The owner is still starting, or has declared itself interrupted.
    #[error("not ready: {0}")]
    NotReady(String),
    /// The deadline passed; the request may or may not have been carried out.
    #[error("timed out")]
    Timeout,
    /// There is no room: in the inbox of the named receiver, or in the named queue.
    #[error("`{0}` is full")]
    Overloaded(String),
    /// The receiver stopped before it answered.
    #[error("the receiver stopped before it answered")]
    PeerGone,
    /// The receiver trapped, or was killed, with the request in hand.
    #[error("the receiver trapped with the request in hand")]
    Trapped,
    /// A limit of the caller's own was reached.
    #[error("limit `{name}` exceeded: {used} of {allowed}")]
    LimitExceeded {
        /// The key that sets it, or the name under which it is documented.
        name: &'static str,
        /// What was asked for, in the limit's own unit.
        used: u64,
        /// What is allowed, in the same unit.
        allowed: u64,
    },
    /// Waiting would never end: those who wait for each other, from the caller round to the caller.
    #[error("would deadlock: {}", .0.join(" -> "))]
    WouldDeadlock(Vec<String>),
    /// The payload is larger than the sender or the receiver may handle.
    #[error("payload of {bytes} bytes is over the limit of {allowed}")]
    TooLarge {
        /// Bytes that were given.
        bytes: u64,
        /// Bytes that are allowed.
        allowed: u64,
    },
    /// The arguments make no sense.
    #[error("invalid: {0}")]
    Invalid(String),
    /// The provider's own error.
    #[error(transparent)]
    Handler(#[from] HandlerError),
}

/// An error that the provider of a contract answers with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    /// For programs: a short word of the contract's own, such as `not-found`. At most 64 bytes.
    pub code: String,
    /// For people. At most 4096 bytes.
    pub message: String,
}

impl HandlerError {
    /// An error of the provider's own, cut to the lengths that travel.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: truncated(code.into(), 64), message: truncated(message.into(), 4096) }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl error::Error for HandlerError {}

/// `text`, cut at a character boundary to at most `max` bytes.
pub(crate) fn truncated(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

/// A name that an extension gave.
pub(crate) fn parsed<T>(text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err = weir_names::NameError>,
{
    text.parse().map_err(|error: T::Err| Error::Invalid(error.to_string()))
}
