//! Why something was not done: the closed set of `weir:iec/types.error`.

use std::fmt::Display;

use crate::bindings::weir::iec::types as wit;

/// What went wrong with a call or another request to Main, or what a handler answers with.
///
/// The cases are those of `weir:iec`; a caller can rely on there being no other. A handler that
/// returns one answers its caller with [`Error::Handler`], whatever the case: its [`code`](Self::code)
/// says which it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operator did not grant it: what, and the key that would grant it.
    #[error("permission denied: {0}")]
    PermissionDenied(String),
    /// Nobody is configured to fulfil this contract.
    #[error("unknown contract: {0}")]
    UnknownContract(String),
    /// The contract has an owner that is stopped or has failed; or a targeted event found no
    /// subscriber.
    #[error("no provider: {0}")]
    NoProvider(String),
    /// The owner was still starting when the time ran out, or has declared itself interrupted.
    #[error("not ready: {0}")]
    NotReady(String),
    /// The deadline passed. The request may or may not have been carried out.
    #[error("the deadline passed")]
    Timeout,
    /// The inbox of the named receiver is full.
    #[error("overloaded: {0}")]
    Overloaded(String),
    /// The receiver stopped before it answered; or this extension, having failed, receives no more.
    #[error("the receiver stopped before it answered")]
    PeerGone,
    /// The receiver trapped, or was killed, with the request in hand.
    #[error("the receiver trapped with the request in hand")]
    Trapped,
    /// A limit of this extension's own was reached.
    #[error("limit `{name}` exceeded: {used} of {allowed}")]
    LimitExceeded {
        /// The key that sets it in the operator's file, or the name under which it is documented.
        name: String,
        /// What was asked for, in the limit's own unit.
        used: u64,
        /// What is allowed, in the same unit.
        allowed: u64,
    },
    /// Waiting would never end: who waits for whom, from the caller round to the caller again.
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
    /// The arguments make no sense: a name that is not well formed, an operation that the contract
    /// does not have. The text says which.
    #[error("invalid: {0}")]
    Invalid(String),
    /// The provider's own error.
    #[error(transparent)]
    Handler(#[from] HandlerError),
}

/// An error that the provider of a contract answers with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct HandlerError {
    /// For programs: a short word of the contract's own, such as `not-found`. At most 64 bytes.
    pub code: String,
    /// For people. At most 4096 bytes; the rest is cut off.
    pub message: String,
}

impl Error {
    /// An error of the contract's own: a short word for programs, a text for people.
    ///
    /// ```
    /// use weir_sdk::Error;
    ///
    /// let error = Error::handler("not-found", "no key `volume`");
    /// assert_eq!(error.code(), "not-found");
    /// ```
    #[must_use]
    pub fn handler(code: impl Into<String>, message: impl Display) -> Self {
        HandlerError { code: code.into(), message: message.to_string() }.into()
    }

    /// Something that failed and that no caller will tell apart; the code is `failed`.
    ///
    /// ```
    /// # use weir_sdk::Error;
    /// fn port(text: &str) -> Result<u16, Error> {
    ///     text.parse().map_err(Error::failed)
    /// }
    /// assert_eq!(port("x").unwrap_err().code(), "failed");
    /// ```
    #[must_use]
    pub fn failed(message: impl Display) -> Self {
        Self::handler("failed", message)
    }

    /// The arguments are not acceptable; the code is `invalid-argument`, as where they are not even
    /// well formed.
    #[must_use]
    pub fn invalid_argument(message: impl Display) -> Self {
        Self::handler("invalid-argument", message)
    }

    /// One word for programs: the provider's own code, else the name of the case as `iec.wit`
    /// spells it, such as `no-provider`.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::PermissionDenied(_) => "permission-denied",
            Self::UnknownContract(_) => "unknown-contract",
            Self::NoProvider(_) => "no-provider",
            Self::NotReady(_) => "not-ready",
            Self::Timeout => "timeout",
            Self::Overloaded(_) => "overloaded",
            Self::PeerGone => "peer-gone",
            Self::Trapped => "trapped",
            Self::LimitExceeded { .. } => "limit-exceeded",
            Self::WouldDeadlock(_) => "would-deadlock",
            Self::TooLarge { .. } => "too-large",
            Self::Invalid(_) => "invalid",
            Self::Handler(error) => &error.code,
        }
    }

    /// As a handler answers it.
    pub(crate) fn into_answer(self) -> wit::HandlerError {
        match self {
            Self::Handler(HandlerError { code, message }) => wit::HandlerError { code, message },
            error => wit::HandlerError { code: error.code().to_owned(), message: error.to_string() },
        }
    }
}

/// The code is `io`.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::handler("io", error)
    }
}

/// The code is `json`.
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::handler("json", error)
    }
}

impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::PermissionDenied(what) => Self::PermissionDenied(what),
            wit::Error::UnknownContract(what) => Self::UnknownContract(what),
            wit::Error::NoProvider(what) => Self::NoProvider(what),
            wit::Error::NotReady(what) => Self::NotReady(what),
            wit::Error::Timeout => Self::Timeout,
            wit::Error::Overloaded(who) => Self::Overloaded(who),
            wit::Error::PeerGone => Self::PeerGone,
            wit::Error::Trapped => Self::Trapped,
            wit::Error::LimitExceeded(wit::Limit { name, used, allowed }) => {
                Self::LimitExceeded { name, used, allowed }
            }
            wit::Error::WouldDeadlock(cycle) => Self::WouldDeadlock(cycle),
            wit::Error::TooLarge(wit::Size { bytes, allowed }) => Self::TooLarge { bytes, allowed },
            wit::Error::Invalid(what) => Self::Invalid(what),
            wit::Error::Handler(wit::HandlerError { code, message }) => {
                Self::Handler(HandlerError { code, message })
            }
        }
    }
}

/// As the fake of a provider answers it.
#[cfg(not(target_family = "wasm"))]
impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(what) => Self::PermissionDenied(what),
            Error::UnknownContract(what) => Self::UnknownContract(what),
            Error::NoProvider(what) => Self::NoProvider(what),
            Error::NotReady(what) => Self::NotReady(what),
            Error::Timeout => Self::Timeout,
            Error::Overloaded(who) => Self::Overloaded(who),
            Error::PeerGone => Self::PeerGone,
            Error::Trapped => Self::Trapped,
            Error::LimitExceeded { name, used, allowed } => {
                Self::LimitExceeded(wit::Limit { name, used, allowed })
            }
            Error::WouldDeadlock(cycle) => Self::WouldDeadlock(cycle),
            Error::TooLarge { bytes, allowed } => Self::TooLarge(wit::Size { bytes, allowed }),
            Error::Invalid(what) => Self::Invalid(what),
            Error::Handler(HandlerError { code, message }) => {
                Self::Handler(wit::HandlerError { code, message })
            }
        }
    }
}
