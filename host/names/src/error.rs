//! Why a message was not delivered or answered: one closed set for hosts and guests.

use std::fmt::Display;

use crate::text::truncated;

/// Why a message failed: the cases of `weir:iec/types.error`, and [`Error::Ended`].
///
/// If a handler of an extension returns one, its caller gets [`Error::Handler`] with the same [`code`](Self::code).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operator did not grant this. Names the missing grant and its key.
    #[error("permission denied: {0}")]
    PermissionDenied(String),
    /// Nothing is configured to fulfil this contract.
    #[error("unknown contract `{0}`")]
    UnknownContract(String),
    /// The owner is stopped or has failed, or a targeted event has no subscriber.
    #[error("no provider: {0}")]
    NoProvider(String),
    /// The owner is starting or interrupted.
    #[error("not ready: {0}")]
    NotReady(String),
    /// The deadline passed. The request may have been carried out.
    #[error("timed out")]
    Timeout,
    /// The receiver's inbox or the queue is full.
    #[error("`{0}` is full")]
    Overloaded(String),
    /// The receiver stopped before it answered, or the calling extension has failed and receives no more.
    #[error("the receiver stopped before it answered")]
    PeerGone,
    /// The receiver trapped or was killed with the request in hand.
    #[error("the receiver trapped with the request in hand")]
    Trapped,
    /// The caller reached one of its limits.
    #[error("limit `{name}` exceeded: {used} of {allowed}")]
    LimitExceeded {
        /// The operator's key, or the documented name.
        name: String,
        /// The amount requested, in the limit's unit.
        used: u64,
        /// The amount allowed, in the same unit.
        allowed: u64,
    },
    /// The wait would close a cycle. Lists its peers from the caller round to the caller.
    #[error("would deadlock: {}", .0.join(" -> "))]
    WouldDeadlock(Vec<String>),
    /// The payload is too large for the sender or the receiver.
    #[error("payload of {bytes} bytes is over the limit of {allowed}")]
    TooLarge {
        /// Size of the payload in bytes.
        bytes: u64,
        /// Allowed size in bytes.
        allowed: u64,
    },
    /// The arguments are invalid: a malformed name, an unknown operation or a wrong value. The text says which.
    #[error("invalid: {0}")]
    Invalid(String),
    /// The provider's own error.
    #[error(transparent)]
    Handler(#[from] HandlerError),
    /// Main has ended. Only the program that embeds it gets this.
    #[error("main has ended")]
    Ended,
}

/// A provider's error as an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct HandlerError {
    /// For programs: a short word of the contract, such as `not-found`. At most 64 bytes.
    pub code: String,
    /// For people. Cut to 4096 bytes.
    pub message: String,
}

impl HandlerError {
    /// The most bytes of a code.
    pub const MAX_CODE: usize = 64;

    /// The most bytes of a message.
    pub const MAX_MESSAGE: usize = 4096;

    /// An error with its parts cut to their maximum lengths.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { code: truncated(code, Self::MAX_CODE), message: truncated(message, Self::MAX_MESSAGE) }
    }
}

impl Error {
    /// A contract's error: a short word for programs and a text for people.
    ///
    /// ```
    /// use weir_names::Error;
    ///
    /// let error = Error::handler("not-found", "no key `volume`");
    /// assert_eq!(error.code(), "not-found");
    /// ```
    #[must_use]
    pub fn handler(code: impl Into<String>, message: impl Display) -> Self {
        HandlerError::new(code, message.to_string()).into()
    }

    /// A failure that callers need not distinguish; the code is `failed`.
    ///
    /// ```
    /// # use weir_names::Error;
    /// fn port(text: &str) -> Result<u16, Error> {
    ///     text.parse().map_err(Error::failed)
    /// }
    /// assert_eq!(port("x").unwrap_err().code(), "failed");
    /// ```
    #[must_use]
    pub fn failed(message: impl Display) -> Self {
        Self::handler("failed", message)
    }

    /// Unacceptable arguments; the code is `invalid-argument`, as for malformed ones.
    #[must_use]
    pub fn invalid_argument(message: impl Display) -> Self {
        Self::handler("invalid-argument", message)
    }

    /// A word for programs: the provider's code, else the [`case`](Self::case).
    #[must_use]
    pub fn code(&self) -> &str {
        if let Self::Handler(error) = self { &error.code } else { self.case() }
    }

    /// The case's name in `iec.wit`, such as `no-provider`. [`Error::Ended`] has none, and counts as `peer-gone`.
    #[must_use]
    pub const fn case(&self) -> &'static str {
        match self {
            Self::PermissionDenied(_) => "permission-denied",
            Self::UnknownContract(_) => "unknown-contract",
            Self::NoProvider(_) => "no-provider",
            Self::NotReady(_) => "not-ready",
            Self::Timeout => "timeout",
            Self::Overloaded(_) => "overloaded",
            Self::PeerGone | Self::Ended => "peer-gone",
            Self::Trapped => "trapped",
            Self::LimitExceeded { .. } => "limit-exceeded",
            Self::WouldDeadlock(_) => "would-deadlock",
            Self::TooLarge { .. } => "too-large",
            Self::Invalid(_) => "invalid",
            Self::Handler(_) => "handler",
        }
    }
}

/// Makes an error of the handler, with the code `io`.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::handler("io", error)
    }
}

/// Makes an error of the handler, with the code `json`.
#[cfg(feature = "json")]
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::handler("json", error)
    }
}
