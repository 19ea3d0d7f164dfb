//! The place of a message in a trace, as the W3C Recommendation "Trace Context" writes it in `traceparent`.

use std::{fmt, num::NonZero, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Bytes of a `traceparent` of version 00: `00-`, 32 digits, 16 digits and 2 digits.
const LENGTH: usize = 55;

/// The flag that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// The number of a trace. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub NonZero<u128>);

/// The number of a span within its trace. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub NonZero<u64>);

/// A span, and the trace that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the trace is recorded. Not serialized, so it is `false` after deserialization.
    #[serde(skip)]
    pub is_sampled: bool,
}

/// The text is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a traceparent is written as in `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`, in lower case, with numbers other than 0"
)]
pub struct TraceContextError;

/// The text is no number of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a trace is written as 32 hexadecimal digits, as in `0af7651916cd43dd8448eb211c80319c`, and is not 0"
)]
pub struct TraceIdError;

impl FromStr for TraceContext {
    type Err = TraceContextError;

    /// Reads a `traceparent`. What a version after 00 adds at the end is ignored, as the recommendation says.
    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        let (known, more) = text.split_at_checked(LENGTH).ok_or(TraceContextError)?;
        let mut parts = known.split('-');
        let mut part = || parts.next().ok_or(TraceContextError);
        let (version, trace, span, flags) = (part()?, part()?, part()?, part()?);
        let is_whole = match version {
            "00" => more.is_empty(),
            _ => more.is_empty() || more.starts_with('-'),
        };
        let version = hexadecimal(version, 2).ok_or(TraceContextError)?;
        if !is_whole || version == 0xff || parts.next().is_some() {
            return Err(TraceContextError);
        }
        let trace = hexadecimal(trace, 32).and_then(NonZero::new).ok_or(TraceContextError)?;
        let span = span_id(span).ok_or(TraceContextError)?;
        let flags = hexadecimal(flags, 2).ok_or(TraceContextError)?;
        let is_sampled = flags & u128::from(SAMPLED) != 0;
        Ok(Self { trace: TraceId(trace), span, is_sampled })
    }
}

/// Writes a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.is_sampled { SAMPLED } else { 0 };
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

impl FromStr for TraceId {
    type Err = TraceIdError;

    fn from_str(text: &str) -> Result<Self, TraceIdError> {
        hexadecimal(text, 32).and_then(NonZero::new).map(Self).ok_or(TraceIdError)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for SpanId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        span_id(&text)
            .ok_or_else(|| D::Error::custom("a span is written as 16 hexadecimal digits, and is not 0"))
    }
}

fn span_id(text: &str) -> Option<SpanId> {
    hexadecimal(text, 16).and_then(|span| u64::try_from(span).ok()).and_then(NonZero::new).map(SpanId)
}

/// Reads a number of exactly this many hexadecimal digits, in lower case.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_is_written_as_it_is_read() {
        let unsampled = TEXT.replace("-01", "-00");
        for text in [TEXT, &unsampled] {
            let context: TraceContext = text.parse().unwrap();
            assert_eq!(context.to_string(), text);
            assert_eq!(context.is_sampled, text == TEXT);
        }
        let trace = "00000000000000000000000000000001";
        assert_eq!(trace.parse::<TraceId>().unwrap().to_string(), trace);
    }

    #[test]
    fn what_later_versions_add_is_ignored() {
        let known: TraceContext = TEXT.parse().unwrap();
        for later in ["cc-", "01-"].map(|version| TEXT.replacen("00-", version, 1)) {
            for text in [later.clone(), later.clone() + "-what.is.later"] {
                assert_eq!(text.parse(), Ok(known), "{text}");
            }
            assert_eq!((later + "0").parse::<TraceContext>(), Err(TraceContextError));
        }
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let zeros = |digits| "0".repeat(digits);
        let wrong = [
            String::new(),
            "0".repeat(1 << 20),
            "é".repeat(55),
            TEXT.to_uppercase(),
            TEXT.to_owned() + "-01",
            TEXT.to_owned() + " ",
            TEXT.replacen("00", "ff", 1),
            TEXT.replacen("00", "+0", 1),
            TEXT.replace('-', "_"),
            TEXT.replace("0af7651916cd43dd8448eb211c80319c", &zeros(32)),
            TEXT.replace("b7ad6b7169203331", &zeros(16)),
            TEXT.replace("-01", "-0g"),
            TEXT.replace("-b7ad6b7169203331", "b-7ad6b7169203331"),
        ];
        for text in wrong {
            assert_eq!(text.parse::<TraceContext>(), Err(TraceContextError), "{text:.100}");
        }
        for text in ["", "0", &zeros(32), &"g".repeat(32), &"1".repeat(33)] {
            assert_eq!(text.parse::<TraceId>(), Err(TraceIdError), "{text}");
        }
    }
}
