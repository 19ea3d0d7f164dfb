//! What a collector's answer means, by the specification of OTLP over HTTP.

use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

/// The longest pause that a collector may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// The first pause between attempts, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What to do with the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The collector has it.
    Delivered,
    /// The collector may take it later.
    Retry,
    /// The collector will never take it.
    Refused,
}

impl Verdict {
    /// Judges by the status of the answer.
    pub fn of(status: u16) -> Self {
        match status {
            200..=299 => Self::Delivered,
            429 | 502 | 503 | 504 => Self::Retry,
            _ => Self::Refused,
        }
    }
}

/// Spans that a collector left out of a batch that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialSuccess {
    /// The number of these spans.
    pub rejected: u64,
    /// Why they were left out, in the collector's words, which are not trusted.
    pub message: String,
}

/// Reads from the body of a successful answer what was left out, or a warning. `None` if the body has neither, or is
/// no message of OTLP.
pub fn partial_success(body: &[u8]) -> Option<PartialSuccess> {
    // A collector of another make may answer with JSON, or nothing. The batch is delivered all the same.
    let partial = ExportTraceServiceResponse::decode(body).ok()?.partial_success?;
    let rejected = u64::try_from(partial.rejected_spans).unwrap_or(0);
    let message = partial.error_message;
    (rejected > 0 || !message.is_empty()).then_some(PartialSuccess { rejected, message })
}

/// The message `google.rpc.Status`, which explains failures.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Reads from the body of an answer why the collector refused. The text has at most 200 characters, is not trusted, and
/// may be empty.
pub fn said(body: &[u8]) -> String {
    let of_protobuf = Status::decode(body).ok().map(|status| status.message);
    let text = of_protobuf.filter(|message| !message.is_empty());
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    text.trim().chars().take(200).collect()
}

/// Reads the pause that a header `Retry-After` asks for: seconds, or a date. It is at most five minutes, and `None` if
/// the header is neither.
pub fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    let pause = match header.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(header).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(pause.min(MAX_RETRY_AFTER))
}

/// Pauses between attempts. Their longest time doubles with each attempt, from one second to half a minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Retry {
    attempts: u32,
}

impl Retry {
    /// Returns the next pause: from half of its longest time to all of it, by `chance` from 0 to 1. This keeps many
    /// exporters from coming back all at once.
    pub fn pause(&mut self, chance: f64) -> Duration {
        let (first, longest) = PAUSES;
        let whole = first.saturating_mul(1_u32.checked_shl(self.attempts).unwrap_or(u32::MAX)).min(longest);
        self.attempts = self.attempts.saturating_add(1);
        whole.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
    }
}
