//! Errors as an app gets them.

use std::borrow::Cow;

use weir_host::{Error, names::harmless};

use super::Id;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;

/// Most bytes of an app's text that an error repeats.
const REPEATED_MAX: usize = 256;

/// Most bytes of the words of one of Weir's own errors.
pub(crate) const SAID_MAX: usize = 1024;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(super) code: i32,
    pub(super) message: String,
    /// For programs: Weir's word, or the provider's code. `None` for a fault that only JSON-RPC knows.
    pub(super) word: Option<Cow<'static, str>>,
    /// Whether the provider made the error.
    pub(super) is_provider: bool,
}

impl RpcError {
    /// A method that the peer may not call, or that nobody has.
    pub(crate) fn no_method(method: &str, peer: &str) -> Self {
        let message = format!("no method `{}` is granted to `{peer}`", harmless(method, REPEATED_MAX));
        Self::own(METHOD_NOT_FOUND, message, "permission-denied")
    }

    /// Parameters that a method does not take. `fault` may repeat text of the app's.
    pub(crate) fn invalid_params(fault: impl Into<String>) -> Self {
        Self::own(INVALID_PARAMS, fault.into(), "invalid")
    }

    /// A request with the id of one that is not answered yet.
    pub(crate) fn id_in_use() -> Self {
        Self::own(
            INVALID_PARAMS,
            "invalid: a request with this id is under way already".to_owned(),
            "invalid",
        )
    }

    /// A request that only a WebSocket can carry out.
    pub(crate) fn needs_connection() -> Self {
        Self::plain(INVALID_REQUEST, "this method needs a WebSocket: a POST is over with its answer")
    }

    /// A fault of the gateway.
    pub(super) fn internal(fault: impl Into<String>) -> Self {
        Self::plain(INTERNAL_ERROR, fault)
    }

    fn plain(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), word: None, is_provider: false }
    }

    fn own(code: i32, message: String, word: &'static str) -> Self {
        Self { code, message, word: Some(Cow::Borrowed(word)), is_provider: false }
    }
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        // Codes of JSON-RPC where they fit, and otherwise codes of its range for servers.
        let code = match &error {
            Error::Handler(_) => -32010,
            Error::UnknownContract(_) => METHOD_NOT_FOUND,
            Error::Invalid(_) => INVALID_PARAMS,
            Error::Timeout => -32001,
            Error::NoProvider(_) => -32002,
            Error::NotReady(_) => -32003,
            Error::Overloaded(_) => -32004,
            Error::PeerGone | Error::Ended => -32005,
            Error::Trapped => -32006,
            Error::LimitExceeded { .. } => -32007,
            Error::WouldDeadlock(_) => -32008,
            Error::TooLarge { .. } => -32009,
            Error::PermissionDenied(_) => -32011,
        };
        match error {
            Error::Handler(error) => {
                Self { code, message: error.message, word: Some(error.code.into()), is_provider: true }
            }
            // The message may repeat text of the app's, so it is made harmless and cut.
            error => Self::own(code, harmless(&error, SAID_MAX), error.case()),
        }
    }
}

/// Why text is no message. It is answered even if it may have been a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(super) code: i32,
    pub(super) message: Cow<'static, str>,
    /// [`Id::NULL`] if it has none that can be read.
    pub(super) id: Id,
}

impl Refusal {
    /// Text that is not JSON.
    pub(super) fn not_json(fault: &serde_json::Error) -> Self {
        let message = format!("parse error: {}", harmless(fault, REPEATED_MAX));
        Self { code: PARSE_ERROR, message: message.into(), id: Id::NULL }
    }

    /// JSON that is no message.
    pub(super) fn not_a_message(fault: impl Into<Cow<'static, str>>, id: Id) -> Self {
        Self { code: INVALID_REQUEST, message: fault.into(), id }
    }
}

/// The words of an error, cut to [`REPEATED_MAX`]. The line and column are left out: they would count from the start of
/// a part of the message.
pub(super) fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.rsplit_once(" at line ").map_or(&*text, |(words, _)| words);
    harmless(words, REPEATED_MAX)
}
