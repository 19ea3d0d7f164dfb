//! Main's answer: numbered spans, each read by itself, so that one that makes no sense costs no other.

use serde::Deserialize;
use serde_json::Value;
use weir_reports::Span;

/// Main's answer cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It is not the JSON that was asked for.
    #[error("the answer is not what `/v1/spans` answers")]
    Json(#[from] serde_json::Error),
    /// Without increasing numbers, nothing says which spans are new.
    #[error("a span has no number, or not a greater one than `{0}`")]
    Number(u64),
}

/// Spans in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) spans: Vec<Span>,
    /// The number of the last span of this answer, readable or not. `None` if there was none.
    pub(crate) last: Option<u64>,
    /// Numbers between `after` and `last` without a span.
    pub(crate) gaps: u64,
    /// Spans that made no sense.
    pub(crate) unreadable: u64,
    /// Another for each start of Main, with which the numbers begin anew.
    pub(crate) instance: String,
    /// The number of the last span that Main recorded.
    pub(crate) recorded: u64,
}

#[derive(Deserialize)]
struct Raw {
    spans: Vec<Value>,
    instance: String,
    recorded: u64,
}

impl Answer {
    /// Reads the answer to a question for the spans after this number.
    pub(crate) fn parse(json: &[u8], after: u64) -> Result<Self, AnswerError> {
        let Raw { spans: values, instance, recorded } = serde_json::from_slice(json)?;
        let mut answer = Self { spans: Vec::new(), last: None, gaps: 0, unreadable: 0, instance, recorded };
        let mut before = after;
        for value in values {
            let number = value.get("number").and_then(Value::as_u64).filter(|number| *number > before);
            let number = number.ok_or(AnswerError::Number(before))?;
            answer.gaps = answer.gaps.saturating_add(number - before - 1);
            before = number;
            answer.last = Some(number);
            match Span::deserialize(value) {
                Ok(span) => answer.spans.push(span),
                Err(_) => answer.unreadable += 1,
            }
        }
        Ok(answer)
    }
}
