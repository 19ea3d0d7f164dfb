//! Words and outcomes, as `tests/conformance/README.md` has them.

use std::fmt::Display;

use weir_sdk::Error;

/// So many words; the last takes the rest of the line.
pub(crate) fn words<const N: usize>(line: &str) -> Result<[&str; N], Error> {
    let words: Vec<_> = line.splitn(N, ' ').collect();
    words.try_into().map_err(|_| Error::invalid_argument(format_args!("not {N} words: `{line}`")))
}

pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `ok`, `ok VALUE`, or `error CASE` with its fields.
pub(crate) fn outcome(outcome: Result<impl Display, Error>) -> Result<Vec<u8>, Error> {
    let line = match outcome {
        Ok(value) => format!("ok {value}"),
        Err(error) => format!("error {} {}", error.case(), fields(&error)),
    };
    Ok(line.trim_end().into())
}

fn fields(error: &Error) -> String {
    match error {
        Error::PermissionDenied(text)
        | Error::UnknownContract(text)
        | Error::NoProvider(text)
        | Error::NotReady(text)
        | Error::Overloaded(text)
        | Error::Invalid(text) => text.clone(),
        Error::Timeout | Error::PeerGone | Error::Trapped | Error::Ended => String::new(),
        Error::LimitExceeded { name, used, allowed } => format!("{name} {used} {allowed}"),
        Error::WouldDeadlock(names) => names.join(" "),
        Error::TooLarge { bytes, allowed } => format!("{bytes} {allowed}"),
        Error::Handler(error) => format!("{} {}", error.code, error.message),
    }
}
