//! How far an export has come: what to ask for next, what Main's answer has, the batch in hand, and what was lost.

use bytes::Bytes;
use prost::Message;
use serde::Deserialize;
use serde_json::Value;
use weir_reports::Span;

use crate::convert;

/// What all spans of an export have in common.
#[derive(Clone, Debug)]
pub struct Resource {
    /// `service.namespace` of every span.
    pub namespace: String,
    /// `host.name` of every span, if it is known.
    pub host: Option<String>,
}

/// Spans on their way to the collector.
#[derive(Debug)]
pub struct Batch {
    /// The body of an `ExportTraceServiceRequest`, in protobuf.
    pub body: Bytes,
    /// How many spans are in it.
    pub spans: u64,
}

/// What an answer of Main had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of spans that Main dropped before they were read.
    pub lost: u64,
    /// The number of spans that could not be read, and are left out.
    pub unreadable: u64,
    /// Whether Main has restarted. Its numbers then begin again, and its last spans before that are lost without being
    /// counted.
    pub restarted: bool,
    /// The number of the last span that Main has recorded.
    pub recorded: u64,
    /// Whether Main had no newer span.
    pub is_empty: bool,
}

/// The state of an export. It has at most one batch in hand: Main's ring is the buffer for all else.
#[derive(Debug)]
pub struct Export {
    resource: Resource,
    after: u64,
    /// The instance of Main that `after` is a number of.
    instance: Option<String>,
    /// Whether the export has begun. What Main dropped before that does not count as lost.
    has_begun: bool,
    hand: Option<Batch>,
}

impl Export {
    /// Makes an export that begins with the oldest span that Main has.
    pub fn new(resource: Resource) -> Self {
        Self { resource, after: 0, instance: None, has_begun: false, hand: None }
    }

    /// Returns the number of the last span that was taken, or 0. Main is to be asked for spans with greater numbers.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Returns the batch that must be delivered, or given up, before Main is asked for more.
    pub fn hand(&self) -> Option<&Batch> {
        self.hand.as_ref()
    }

    /// Forgets the batch in hand, since it is delivered or given up.
    pub fn settle(&mut self) {
        self.hand = None;
    }

    /// Takes Main's answer to the question for the spans after [`after`](Self::after). The spans that can be read
    /// become the batch in hand. If Main has restarted, this takes no span, and [`after`](Self::after) is 0 again.
    ///
    /// # Errors
    ///
    /// If the answer cannot be read. The state is then as before.
    pub fn take(&mut self, json: &[u8]) -> Result<Taken, AnswerError> {
        let answer = Answer::parse(json, self.after)?;
        let former = self.instance.replace(answer.instance.clone());
        if former.is_some_and(|former| former != answer.instance) {
            self.after = 0;
            return Ok(Taken { restarted: true, recorded: answer.recorded, ..Taken::default() });
        }
        let Some(last) = answer.last else {
            self.has_begun = true;
            return Ok(Taken { recorded: answer.recorded, is_empty: true, ..Taken::default() });
        };
        let lost = if self.has_begun { answer.gaps } else { 0 };
        self.has_begun = true;
        self.after = last;
        let spans = u64::try_from(answer.spans.len()).unwrap_or(u64::MAX);
        if spans > 0 {
            let body = convert::request(answer.spans, &self.resource).encode_to_vec().into();
            self.hand = Some(Batch { body, spans });
        }
        let Answer { unreadable, recorded, .. } = answer;
        Ok(Taken { lost, unreadable, restarted: false, recorded, is_empty: false })
    }
}

/// Main's answer cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The answer is not the JSON that was asked for.
    #[error("the answer is not what `/v1/spans` answers")]
    Json(#[from] serde_json::Error),
    /// A span has no number, or its number is not greater than the one before. Then nothing says which spans are new.
    #[error("a span has no number, or not a greater one than `{0}`")]
    Number(u64),
}

/// Numbered spans in the order of their numbers. Each is read by itself, so that one that cannot be read costs no
/// other.
#[derive(Debug)]
struct Answer {
    spans: Vec<Span>,
    /// The number of the last span of this answer, readable or not. `None` if there was none.
    last: Option<u64>,
    /// How many numbers between `after` and `last` have no span.
    gaps: u64,
    /// The number of spans that could not be read.
    unreadable: u64,
    /// A text that differs for each start of Main, with which the numbers begin anew.
    instance: String,
    /// The number of the last span that Main recorded.
    recorded: u64,
}

#[derive(Deserialize)]
struct Raw {
    spans: Vec<Value>,
    instance: String,
    recorded: u64,
}

impl Answer {
    /// Reads the answer to a question for the spans after this number.
    fn parse(json: &[u8], after: u64) -> Result<Self, AnswerError> {
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

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use serde_json::json;

    use super::*;

    fn span(number: u64) -> Value {
        json!({
            "number": number,
            "trace": format!("{number:032x}"),
            "span": format!("{number:016x}"),
            "kind": "job",
            "queue": "uploads",
            "caller": "a",
            "provider": "b",
            "start": "2026-11-25T20:00:00.000001Z",
            "duration-seconds": 0.5,
            "fuel": 7,
            "outcome": "returned",
            "of-a-later-version": [1],
        })
    }

    fn answer(instance: &str, spans: &[Value], recorded: u64) -> Vec<u8> {
        json!({ "spans": spans, "instance": instance, "recorded": recorded, "lost": 0 }).to_string().into()
    }

    fn export() -> Export {
        Export::new(Resource { namespace: "weir".to_owned(), host: None })
    }

    #[test]
    fn each_span_is_exported_once_and_gaps_are_counted() {
        let mut export = export();
        // What was dropped before the export began is no loss of it.
        let taken = export.take(&answer("m", &[span(5), span(6)], 9)).unwrap();
        assert_eq!((taken.lost, export.after(), export.hand().unwrap().spans), (0, 6, 2));
        export.settle();
        let taken = export.take(&answer("m", &[span(8), json!({ "number": 9 })], 9)).unwrap();
        assert_eq!((taken.lost, taken.unreadable, export.after()), (1, 1, 9));
        let request = ExportTraceServiceRequest::decode(export.hand().unwrap().body.clone()).unwrap();
        let span = &request.resource_spans[0].scope_spans[0].spans[0];
        assert_eq!(
            (span.name.as_str(), span.status.as_ref().unwrap().message.as_str()),
            ("process uploads", "returned")
        );
        assert_eq!(span.end_time_unix_nano - span.start_time_unix_nano, 500_000_000);
        export.settle();
        assert!(export.take(&answer("m", &[], 9)).unwrap().is_empty);
        assert!(export.hand().is_none());
    }

    #[test]
    fn a_restarted_main_is_read_from_its_first_span() {
        let mut export = export();
        export.take(&answer("m", &[span(5)], 5)).unwrap();
        export.settle();
        // It has recorded more already than the one before.
        let taken = export.take(&answer("n", &[span(6)], 6)).unwrap();
        assert!(taken.restarted && export.after() == 0 && export.hand().is_none());
        assert_eq!(export.take(&answer("n", &[span(1), span(2)], 6)).unwrap().lost, 0);
    }

    #[test]
    fn an_answer_that_makes_no_sense_changes_nothing() {
        let mut export = export();
        export.take(&answer("m", &[span(5)], 5)).unwrap();
        for wrong in
            [&b""[..], b"{}", b"[]", &answer("m", &[span(5)], 5), &answer("m", &[span(7), span(6)], 7)]
        {
            export.take(wrong).unwrap_err();
            assert_eq!(export.after(), 5);
        }
    }
}
