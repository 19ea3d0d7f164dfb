//! Errors of messages as fields of ERROR and REFUSE frames.

use std::borrow::Cow;

use weir_names::{Error, HandlerError};

use super::{
    FrameError,
    fields::{Fields, Out},
};

/// The fields of an ERROR or REFUSE frame after its id.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    case: &'a str,
    code: &'a str,
    a: u64,
    b: u64,
    text: Cow<'a, str>,
}

/// Stands between the names of a circle of waits.
const ARROW: &str = " -> ";

impl<'a> From<&'a Error> for Parts<'a> {
    fn from(error: &'a Error) -> Self {
        let (code, a, b, text) = match error {
            Error::PermissionDenied(text)
            | Error::UnknownContract(text)
            | Error::NoProvider(text)
            | Error::NotReady(text)
            | Error::Overloaded(text)
            | Error::Invalid(text) => ("", 0, 0, text.as_str().into()),
            Error::Timeout | Error::PeerGone | Error::Trapped | Error::Ended => ("", 0, 0, "".into()),
            Error::LimitExceeded { name, used, allowed } => (name.as_str(), *used, *allowed, "".into()),
            Error::WouldDeadlock(names) => ("", 0, 0, names.join(ARROW).into()),
            Error::TooLarge { bytes, allowed } => ("", *bytes, *allowed, "".into()),
            Error::Handler(error) => (error.code.as_str(), 0, 0, error.message.as_str().into()),
        };
        Self { case: error.case(), code, a, b, text }
    }
}

impl<'a> Parts<'a> {
    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, FrameError> {
        Ok(Self {
            case: fields.str8("case")?,
            code: fields.str8("code")?,
            a: fields.u64("a")?,
            b: fields.u64("b")?,
            text: fields.str16("text")?.into(),
        })
    }

    pub(super) fn write(&self, out: &mut Out<'_>) {
        out.str8(self.case);
        out.str8(self.code);
        out.u64(&self.a);
        out.u64(&self.b);
        out.str16(&self.text);
    }

    /// The error with its code and text cut to the lengths of a handler's error.
    pub(super) fn cut(self) -> Self {
        let HandlerError { code, message } = HandlerError::new(self.code, &*self.text);
        let code = self.code.get(..code.len()).unwrap_or_default();
        Self { code, text: message.into(), ..self }
    }

    /// The error, unless its case is unknown.
    pub(super) fn error(self) -> Option<Error> {
        let Self { case, code, a, b, text } = self;
        Some(match case {
            "permission-denied" => Error::PermissionDenied(text.into()),
            "unknown-contract" => Error::UnknownContract(text.into()),
            "no-provider" => Error::NoProvider(text.into()),
            "not-ready" => Error::NotReady(text.into()),
            "timeout" => Error::Timeout,
            "overloaded" => Error::Overloaded(text.into()),
            "peer-gone" => Error::PeerGone,
            "trapped" => Error::Trapped,
            "limit-exceeded" => Error::LimitExceeded { name: code.into(), used: a, allowed: b },
            "would-deadlock" if text.is_empty() => Error::WouldDeadlock(Vec::new()),
            "would-deadlock" => Error::WouldDeadlock(text.split(ARROW).map(ToOwned::to_owned).collect()),
            "too-large" => Error::TooLarge { bytes: a, allowed: b },
            "invalid" => Error::Invalid(text.into()),
            "handler" => HandlerError::new(code, text).into(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use crate::frame::{FrameError, FromMain, frame_max, next_frame};

    use super::*;

    fn every_case() -> Vec<Error> {
        let names = ["a", "app:b", "a"].map(str::to_owned).to_vec();
        vec![
            Error::PermissionDenied("`wants` does not list `settings@1`".into()),
            Error::UnknownContract("a@1".into()),
            Error::NoProvider("a@1".into()),
            Error::NotReady("storage: moves its files".into()),
            Error::Timeout,
            Error::Overloaded("inbox of `a`".into()),
            Error::PeerGone,
            Error::Trapped,
            Error::LimitExceeded { name: "in-flight".into(), used: 65, allowed: u64::MAX },
            Error::WouldDeadlock(names),
            Error::WouldDeadlock(Vec::new()),
            Error::TooLarge { bytes: u64::MAX, allowed: 1 },
            Error::Invalid("é".repeat(1000)),
            Error::handler("not-found", "no key `volume`"),
        ]
    }

    /// The error as the other side reads it.
    fn carried(error: Error) -> Error {
        let mut buffer = BytesMut::new();
        FromMain::Error { id: 1, error }.encode(&mut buffer);
        let frame = next_frame(&mut buffer, frame_max(1024)).unwrap().unwrap();
        match FromMain::decode(&frame).unwrap() {
            FromMain::Error { id: 1, error } => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_case_of_an_error_is_carried_without_loss() {
        for error in every_case() {
            assert_eq!(carried(error.clone()), error);
        }
    }

    #[test]
    fn the_longest_error_fits_a_frame_of_the_smallest_size() {
        assert_eq!(carried(Error::handler("c".repeat(64), "m".repeat(4096))).code().len(), 64);
        let Error::Invalid(text) = carried(Error::Invalid("é".repeat(100_000))) else { panic!() };
        assert_eq!(text.len(), 65_534);
    }

    #[test]
    fn an_unknown_case_is_malformed() {
        let mut buffer = BytesMut::new();
        FromMain::Error { id: 1, error: Error::Timeout }.encode(&mut buffer);
        let place = buffer.windows(7).position(|bytes| bytes == b"timeout").unwrap();
        buffer[place] = b'x';
        let frame = next_frame(&mut buffer, 512).unwrap().unwrap();
        let fault = FrameError::Malformed { frame: "ERROR", field: "case", fault: "is unknown" };
        assert_eq!(FromMain::decode(&frame), Err(fault));
    }
}
