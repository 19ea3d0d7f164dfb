//! What travels beside payloads: headers, and errors as they cross.

use std::time::Duration;

use async_nats::HeaderMap;
use serde::{Deserialize, Serialize};
use weir_names::{Error, HandlerError, TraceContext, harmless};

use crate::subject::Subjects;

/// The node that sends, as in the subject.
pub(crate) const NODE: &str = "Weir-Node";
/// The sender in that node, as its Main stamped it.
pub(crate) const SENDER: &str = "Weir-Sender";
/// Milliseconds for the answer.
pub(crate) const REMAINING: &str = "Weir-Remaining";
/// Of a call: the span that it is part of.
pub(crate) const TRACE: &str = "traceparent";
/// Of an answer: the error, as JSON.
pub(crate) const ERROR: &str = "Weir-Error";
/// Of an event: the life of the counter, the event's number in its topic, and how many were lost before it.
pub(crate) const COUNT: &str = "Weir-Count";
/// Of a dead job: why it is dead.
pub(crate) const DEAD: &str = "Weir-Dead";
/// Of a job: deliveries before it came to JetStream.
pub(crate) const DELIVERIES: &str = "Weir-Deliveries";
/// Of a job: the id by which JetStream knows duplicates.
pub(crate) const MESSAGE_ID: &str = "Nats-Msg-Id";

/// An error as it crosses: the fields of [`Error`], of which only a text over [`TEXT_MAX`] is cut.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Crossing {
    case: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    code: String,
    #[serde(skip_serializing_if = "is_zero")]
    a: u64,
    #[serde(skip_serializing_if = "is_zero")]
    b: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Most bytes of an error's text that cross.
const TEXT_MAX: usize = 4096;

/// The value of the header [`ERROR`].
pub(crate) fn written(error: &Error) -> String {
    let mut crossing = Crossing { case: error.case().to_owned(), ..Crossing::default() };
    match error {
        Error::PermissionDenied(text)
        | Error::UnknownContract(text)
        | Error::NoProvider(text)
        | Error::NotReady(text)
        | Error::Overloaded(text)
        | Error::Invalid(text) => text.clone_into(&mut crossing.text),
        Error::Timeout | Error::PeerGone | Error::Trapped | Error::Ended => {}
        Error::LimitExceeded { name, used, allowed } => {
            (crossing.code, crossing.a, crossing.b) = (name.clone(), *used, *allowed);
        }
        Error::WouldDeadlock(names) => names.clone_into(&mut crossing.names),
        Error::TooLarge { bytes, allowed } => (crossing.a, crossing.b) = (*bytes, *allowed),
        Error::Handler(HandlerError { code, message }) => {
            (crossing.code, crossing.text) = (code.clone(), message.clone());
        }
    }
    crossing.text.truncate(crossing.text.floor_char_boundary(TEXT_MAX));
    // JSON escapes line ends, which a header cannot have. A record of texts and numbers cannot fail to be written.
    serde_json::to_string(&crossing).unwrap_or_default()
}

/// The error that the header [`ERROR`] has. A text that cannot be read becomes an error that says so.
pub(crate) fn read(text: &str) -> Error {
    let malformed =
        || Error::failed(format!("a node answered with an unknown error: {}", harmless(text, 200)));
    let Ok(Crossing { case, code, a, b, text, names }) = serde_json::from_str(text) else {
        return malformed();
    };
    match &*case {
        "permission-denied" => Error::PermissionDenied(text),
        "unknown-contract" => Error::UnknownContract(text),
        "no-provider" => Error::NoProvider(text),
        "not-ready" => Error::NotReady(text),
        "timeout" => Error::Timeout,
        "overloaded" => Error::Overloaded(text),
        "peer-gone" => Error::PeerGone,
        "trapped" => Error::Trapped,
        "limit-exceeded" => Error::LimitExceeded { name: code, used: a, allowed: b },
        "would-deadlock" => Error::WouldDeadlock(names),
        "too-large" => Error::TooLarge { bytes: a, allowed: b },
        "invalid" => Error::Invalid(text),
        "handler" => HandlerError::new(code, text).into(),
        _ => malformed(),
    }
}

/// The error as the services API of NATS counts it: like a status of HTTP.
pub(crate) fn status(error: &Error) -> usize {
    match error {
        Error::Invalid(_) => 400,
        Error::PermissionDenied(_) => 403,
        Error::UnknownContract(_) => 404,
        Error::WouldDeadlock(_) => 409,
        Error::TooLarge { .. } => 413,
        Error::LimitExceeded { .. } | Error::Overloaded(_) => 429,
        Error::Handler(_) | Error::Trapped => 500,
        Error::PeerGone | Error::Ended => 502,
        Error::NoProvider(_) | Error::NotReady(_) => 503,
        Error::Timeout => 504,
    }
}

/// The headers that name who sends: this node, and a sender in it.
pub(crate) fn headers(subjects: &Subjects, sender: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(NODE, subjects.node());
    headers.insert(SENDER, sender);
    headers
}

/// A header's text.
pub(crate) fn header<'h>(headers: Option<&'h HeaderMap>, name: &str) -> Option<&'h str> {
    Some(headers?.get(name)?.as_str())
}

/// The time for an answer. `None` if the caller names none that can be read.
pub(crate) fn remaining(headers: Option<&HeaderMap>) -> Option<Duration> {
    let milliseconds: u64 = header(headers, REMAINING)?.parse().ok()?;
    Some(Duration::from_millis(milliseconds))
}

/// The span of a message. `None` if it has none that can be read.
pub(crate) fn trace(headers: Option<&HeaderMap>) -> Option<TraceContext> {
    header(headers, TRACE)?.parse().ok()
}

/// An event's number in its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// A number that differs for each life of the counter.
    pub(crate) life: u64,
    /// From 1.
    pub(crate) number: u64,
    /// Events lost before it, as far as the node knows.
    pub(crate) lost: u64,
}

impl Count {
    pub(crate) fn written(self) -> String {
        format!("{:x}-{}-{}", self.life, self.number, self.lost)
    }

    pub(crate) fn read(headers: Option<&HeaderMap>) -> Option<Self> {
        let mut parts = header(headers, COUNT)?.splitn(3, '-');
        let life = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(Self { life, number: parts.next()?.parse().ok()?, lost: parts.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_error_comes_back_as_itself() {
        let every = [
            Error::PermissionDenied("`wants` does not list `settings@1`".into()),
            Error::UnknownContract("a@1".into()),
            Error::NoProvider("a@1".into()),
            Error::NotReady("storage: moves its files".into()),
            Error::Timeout,
            Error::Overloaded("inbox of `a`".into()),
            Error::PeerGone,
            Error::Trapped,
            Error::LimitExceeded { name: "in-flight".into(), used: 65, allowed: u64::MAX },
            Error::WouldDeadlock(["a", "app:b -> c", "a"].map(str::to_owned).to_vec()),
            Error::WouldDeadlock(Vec::new()),
            Error::TooLarge { bytes: u64::MAX, allowed: 1 },
            Error::Invalid("é\r\n\"\\\0".into()),
            Error::handler("not-found", "no key `volume`\nof two lines"),
            Error::handler("", ""),
        ];
        for error in every {
            let text = written(&error);
            assert!(!text.contains(['\r', '\n']), "{text}");
            assert_eq!(read(&text), error);
            assert!((400..600).contains(&status(&error)));
        }
    }

    #[test]
    fn a_text_that_is_no_error_is_one_of_the_node() {
        for text in ["", "{}", "null", "{\"case\":\"new\"}", "{\"case\":1}", "\u{1b}[2J"] {
            let error = read(text);
            assert_eq!(error.code(), "failed", "{text}");
            assert!(!error.to_string().contains('\u{1b}'));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in ".{0,60}") {
            let _error = read(&text);
        }

        #[test]
        fn any_message_of_a_handler_crosses(code in ".{0,60}", message in ".{0,200}") {
            let error = Error::from(HandlerError::new(code, message));
            prop_assert_eq!(read(&written(&error)), error);
        }
    }
}
