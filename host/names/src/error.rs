//! Why a message was not delivered or not answered: one closed set for hosts and guests.

use std::fmt::Display;

use crate::text::truncated;

/// Why something was not done: the cases of `weir:iec/types.error`, and no other.
///
/// A handler of an extension that returns one answers its caller with [`Error::Handler`], whatever the case: its
/// [`code`](Self::code) says which it was.
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
    /// The receiver stopped before it answered; or the extension that asks has failed, and receives no more.
    #[error("the receiver stopped before it answered")]
    PeerGone,
    /// The receiver trapped, or was killed, with the request in hand.
    #[error("the receiver trapped with the request in hand")]
    Trapped,
    /// A limit of the caller's own was reached.
    #[error("limit `{name}` exceeded: {used} of {allowed}")]
    LimitExceeded {
        /// The key that sets it in the operator's file, or the name under which it is documented.
        name: String,
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
    /// The arguments make no sense: a name that is not well formed, an operation that the contract does not have, a
    /// value that does not fit. The text says which.
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

impl HandlerError {
    /// An error of the provider's own, cut to the lengths that travel.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: truncated(code.into(), 64), message: truncated(message.into(), 4096) }
    }
}

impl Error {
    /// An error of the contract's own: a short word for programs, a text for people.
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

    /// Something that failed and that no caller will tell apart; the code is `failed`.
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

    /// The arguments are not acceptable; the code is `invalid-argument`, as where they are not even
    /// well formed.
    #[must_use]
    pub fn invalid_argument(message: impl Display) -> Self {
        Self::handler("invalid-argument", message)
    }

    /// One word for programs: the provider's own code, else the name of the [`case`](Self::case).
    #[must_use]
    pub fn code(&self) -> &str {
        if let Self::Handler(error) = self { &error.code } else { self.case() }
    }

    /// The name of the case as `iec.wit` spells it, such as `no-provider`.
    #[must_use]
    pub const fn case(&self) -> &'static str {
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
            Self::Handler(_) => "handler",
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
#[cfg(feature = "json")]
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::handler("json", error)
    }
}
