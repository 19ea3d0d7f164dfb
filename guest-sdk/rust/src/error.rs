//! Conversions between [`Error`] and `weir:iec/types.error`, which have the same cases.

use weir_names::{Error, HandlerError};

use crate::bindings::weir::iec::types as wit;

/// The error of a handler, as it is answered to the caller.
pub(crate) fn into_answer(error: Error) -> wit::HandlerError {
    match error {
        Error::Handler(HandlerError { code, message }) => wit::HandlerError { code, message },
        error => wit::HandlerError { code: error.case().to_owned(), message: error.to_string() },
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

/// The error of a fake provider, as the extension gets it.
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
            Error::PeerGone | Error::Ended => Self::PeerGone,
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
