//! Errors as objects.

use std::{
    convert::Infallible,
    error::Error as StdError,
    ffi::{CString, c_char},
    ptr,
};

use serde_json::{Value, json};
use weir_host::{
    Error, StartError, blocking::BlockingError, config::ConfigErrors, control::ControlError,
    hooks::HookError, host::WorkerPanicked, peers::PeerError,
};

use crate::c::{run_infallible, text};

/// What went wrong, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weir_error_kind {
    /// The operator did not grant this.
    PermissionDenied = 1,
    /// Nothing is configured to fulfil this contract.
    UnknownContract = 2,
    /// The owner of the contract is stopped or has failed, or the queue is not there any more.
    NoProvider = 3,
    /// The owner of the contract is starting or interrupted.
    NotReady = 4,
    /// The deadline passed. The request may have been carried out.
    Timeout = 5,
    /// The receiver's inbox or the queue is full.
    Overloaded = 6,
    /// The receiver stopped before it answered.
    PeerGone = 7,
    /// The receiver trapped or was killed with the request in hand.
    Trapped = 8,
    /// A limit is reached. Facts: `name`, `used`, `allowed`.
    LimitExceeded = 9,
    /// The wait would close a cycle. Facts: `peers`.
    WouldDeadlock = 10,
    /// The payload is too large. Facts: `bytes`, `allowed`.
    TooLarge = 11,
    /// A malformed name, an unknown operation, or a wrong value.
    Invalid = 12,
    /// The provider's own error. `weir_error_code` has its word. Facts: `code`, `message`.
    Handler = 13,
    /// The configuration has mistakes. Facts: `errors`, each with `key`, `message`, `file`, `line` and `column`.
    Config = 14,
    /// Main did not start.
    Start = 15,
    /// An extension was not started, stopped or reloaded, or the configuration not reloaded. `weir_error_code` says
    /// which: `unknown-extension`, `not-started`, `not-reloaded`, `reloading`, `not-configured`, `no-file`, `no-version`
    /// or `not-saved`.
    Control = 16,
    /// No hook could run.
    Hooks = 17,
    /// Main is shutting down or has ended.
    Ended = 18,
    /// The function waits, and was called in a callback on Main's thread, which must not wait.
    WouldBlock = 19,
    /// The call was cancelled.
    Cancelled = 20,
    /// An argument is NULL, not UTF-8, out of its range, or otherwise not what the function takes.
    InvalidArgument = 21,
    /// A fault of Weir's own. The panic is on standard error.
    Panic = 22,
}

/// Why a function failed. Free it with `weir_error_free`.
#[derive(Debug)]
pub struct weir_error {
    kind: weir_error_kind,
    code: CString,
    message: CString,
    facts: CString,
}

/// What went wrong, for programs. Any thread. For NULL it is `WEIR_ERROR_KIND_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_error_kind_of(error: Option<&weir_error>) -> weir_error_kind {
    error.map_or(weir_error_kind::InvalidArgument, |error| error.kind)
}

/// What went wrong, for people, in one line or several. Any thread. The text lives as long as `error`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_error_message(error: Option<&weir_error>) -> *const c_char {
    error.map_or(ptr::null(), |error| error.message.as_ptr())
}

/// A word for programs: for `WEIR_ERROR_KIND_HANDLER` the provider's, such as `not-found`, otherwise Weir's, such as
/// `no-provider`. Any thread. The text lives as long as `error`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_error_code(error: Option<&weir_error>) -> *const c_char {
    error.map_or(ptr::null(), |error| error.code.as_ptr())
}

/// The facts of the error as a JSON object; `{}` if there are none. Any thread. The text lives as long as `error`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_error_facts(error: Option<&weir_error>) -> *const c_char {
    error.map_or(ptr::null(), |error| error.facts.as_ptr())
}

/// Frees an error. Any thread. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_error_free(error: Option<Box<weir_error>>) {
    run_infallible(|| drop(error));
}

impl weir_error {
    fn new(kind: weir_error_kind, code: &str, message: impl Into<String>, facts: &Value) -> Self {
        Self { kind, code: text(code), message: text(message), facts: text(facts.to_string()) }
    }

    fn plain(kind: weir_error_kind, code: &str, message: impl Into<String>) -> Self {
        Self::new(kind, code, message, &json!({}))
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::plain(weir_error_kind::InvalidArgument, "invalid-argument", message)
    }

    pub(crate) fn null(name: &str) -> Self {
        Self::argument(format!("`{name}` is NULL"))
    }

    pub(crate) fn panic(said: &str) -> Self {
        let message = format!("a fault of Weir's own: it panicked: {said}");
        Self::plain(weir_error_kind::Panic, "panic", message)
    }

    pub(crate) fn cannot_start(error: &dyn std::error::Error) -> Self {
        Self::plain(weir_error_kind::Start, "start", chain(error))
    }

    pub(crate) fn ended() -> Self {
        Self::plain(weir_error_kind::Ended, "ended", "main is shutting down or has ended")
    }

    pub(crate) fn cancelled() -> Self {
        Self::plain(weir_error_kind::Cancelled, "cancelled", "the call was cancelled")
    }

    pub(crate) fn would_block() -> Self {
        let message = "this function waits, and Main's thread must not: call it from a thread of your own, or use \
                       the form that calls back";
        Self::plain(weir_error_kind::WouldBlock, "would-block", message)
    }
}

impl From<Error> for weir_error {
    fn from(error: Error) -> Self {
        let facts = match &error {
            Error::Ended => return Self::ended(),
            Error::LimitExceeded { name, used, allowed } => {
                json!({ "name": name, "used": used, "allowed": allowed })
            }
            Error::WouldDeadlock(peers) => json!({ "peers": peers }),
            Error::TooLarge { bytes, allowed } => json!({ "bytes": bytes, "allowed": allowed }),
            Error::Handler(handler) => json!({ "code": handler.code, "message": handler.message }),
            _ => json!({}),
        };
        Self::new(kind(&error), error.code(), error.to_string(), &facts)
    }
}

fn kind(error: &Error) -> weir_error_kind {
    match error {
        Error::PermissionDenied(_) => weir_error_kind::PermissionDenied,
        Error::UnknownContract(_) => weir_error_kind::UnknownContract,
        Error::NoProvider(_) => weir_error_kind::NoProvider,
        Error::NotReady(_) => weir_error_kind::NotReady,
        Error::Timeout => weir_error_kind::Timeout,
        Error::Overloaded(_) => weir_error_kind::Overloaded,
        Error::PeerGone => weir_error_kind::PeerGone,
        Error::Trapped => weir_error_kind::Trapped,
        Error::LimitExceeded { .. } => weir_error_kind::LimitExceeded,
        Error::WouldDeadlock(_) => weir_error_kind::WouldDeadlock,
        Error::TooLarge { .. } => weir_error_kind::TooLarge,
        Error::Invalid(_) => weir_error_kind::Invalid,
        Error::Handler(_) => weir_error_kind::Handler,
        Error::Ended => weir_error_kind::Ended,
    }
}

impl From<ConfigErrors> for weir_error {
    fn from(errors: ConfigErrors) -> Self {
        let each = errors.iter().map(|error| {
            let (line, column) = error.line_and_column().unzip();
            json!({
                "key": error.key(),
                "message": error.message(),
                "file": error.file(),
                "line": line,
                "column": column,
            })
        });
        let facts = json!({ "errors": each.collect::<Vec<_>>() });
        Self::new(weir_error_kind::Config, "config", errors.to_string(), &facts)
    }
}

impl From<StartError> for weir_error {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(errors) => errors.into(),
            other => Self::cannot_start(&other),
        }
    }
}

impl From<ControlError> for weir_error {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::ShuttingDown => Self::ended(),
            error => Self::plain(weir_error_kind::Control, error.code(), error.to_string()),
        }
    }
}

impl From<HookError> for weir_error {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Config(errors) => errors.into(),
            HookError::Ended => Self::ended(),
            error => Self::plain(weir_error_kind::Hooks, error.code(), chain(&error)),
        }
    }
}

impl From<PeerError> for weir_error {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::Config(errors) => errors.into(),
            PeerError::Stopping => Self::ended(),
            PeerError::Bus(error) => error.into(),
            PeerError::TooMany { allowed, .. } => {
                let (used, allowed) = (u64::from(allowed) + 1, allowed.into());
                Error::LimitExceeded { name: "sessions".into(), used, allowed }.into()
            }
            error => Error::PermissionDenied(error.to_string()).into(),
        }
    }
}

impl From<WorkerPanicked> for weir_error {
    fn from(error: WorkerPanicked) -> Self {
        Self::panic(&error.to_string())
    }
}

impl<E: Into<Self>> From<BlockingError<E>> for weir_error {
    fn from(error: BlockingError<E>) -> Self {
        match error {
            BlockingError::InAsync => Self::would_block(),
            BlockingError::Call(error) => error.into(),
        }
    }
}

impl From<Infallible> for weir_error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// An error with its causes.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::c::caught;

    fn shown(error: &weir_error) -> (weir_error_kind, &str, &str, &str) {
        let [code, message, facts] =
            [&error.code, &error.message, &error.facts].map(|text| text.to_str().unwrap());
        (error.kind, code, message, facts)
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = caught::<()>(|| panic!("on {}", "purpose")).unwrap_err();
        let message = "a fault of Weir's own: it panicked: on purpose";
        assert_eq!(shown(&error), (weir_error_kind::Panic, "panic", message, "{}"));
    }

    #[test]
    fn errors_keep_their_facts() {
        let cases = [
            (Error::TooLarge { bytes: 2, allowed: 1 }, r#"{"allowed":1,"bytes":2}"#),
            (
                Error::LimitExceeded { name: "in-flight".into(), used: 2, allowed: 1 },
                r#"{"allowed":1,"name":"in-flight","used":2}"#,
            ),
            (Error::WouldDeadlock(vec!["a".into(), "b".into()]), r#"{"peers":["a","b"]}"#),
            (Error::handler("not-found", "no key"), r#"{"code":"not-found","message":"no key"}"#),
            (Error::Timeout, "{}"),
        ];
        for (error, facts) in cases {
            let given = weir_error::from(error.clone());
            let (of_kind, code, message, shown_facts) = shown(&given);
            assert_eq!((of_kind, code, message), (kind(&error), error.code(), &*error.to_string()));
            // Builds differ in the order of fields.
            let [shown_facts, facts] =
                [shown_facts, facts].map(|text| serde_json::from_str::<Value>(text).unwrap());
            assert_eq!(shown_facts, facts);
        }
    }

    #[test]
    fn a_control_that_is_shut_down_has_ended() {
        let error = weir_error::from(ControlError::ShuttingDown);
        assert_eq!(shown(&error).0, weir_error_kind::Ended);
        let error = weir_error::from(ControlError::Unknown("a".into()));
        let message = "no extension `a` is configured";
        assert_eq!(shown(&error), (weir_error_kind::Control, "unknown-extension", message, "{}"));
    }
}
