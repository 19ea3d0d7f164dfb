//! All that is read and written here, for the fuzz target: it has no session, and needs none.

use bytes::Bytes;
use serde::Deserialize;

use super::{
    Envelope, Id, Incoming, Message, Refusal, RpcError, parse, payload, write_alias_event, write_error,
    write_event, write_refusal, write_request, write_result, write_value,
};

/// One message of a text, and what may be written about it.
#[derive(Debug)]
pub enum Read {
    /// No message, and the answer to it.
    Refused(String),
    /// A call or a notification.
    Request {
        /// As JSON. `None`: a notification.
        id: Option<String>,
        /// Its parameters. `None`: they are no payload.
        payload: Option<Bytes>,
        /// Answers, as if it were a call.
        answers: Vec<String>,
    },
    /// An answer to a request of ours.
    Response {
        /// Its number.
        id: u32,
        /// The payload, or the code.
        outcome: Result<Bytes, String>,
    },
    /// An answer to no request of ours.
    Stray,
}

/// Reads a text of an app: one message, or a batch of at most `max_batch`.
#[must_use]
pub fn read(text: &str, max_batch: usize) -> Vec<Read> {
    match parse(text, max_batch) {
        Err(refusal) => vec![read_one(Err(refusal))],
        Ok(Incoming::Single(message)) => vec![read_one(message)],
        Ok(Incoming::Batch(messages)) => messages.into_iter().map(read_one).collect(),
    }
}

/// Writes each message that has a payload and texts: an answer to request 7, an event, that of an alias, a request.
#[must_use]
pub fn write(payload: &[u8], text: &str) -> [String; 4] {
    let (seven, envelope) = (Id::of_number(7), Envelope { sender: text, timeout_ms: u64::MAX, trace: None });
    [
        written(|out| write_result(out, &seven, payload)),
        written(|out| write_event(out, text, text, u64::MAX, true, text, payload)),
        written(|out| write_alias_event(out, text, payload)),
        written(|out| write_request(out, 7, text, text, payload, &envelope)),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(rename = "pattern")]
    _pattern: String,
}

fn read_one(message: Result<Message<'_>, Refusal>) -> Read {
    let request = match message {
        Err(refusal) => return Read::Refused(written(|out| write_refusal(out, &refusal))),
        Ok(Message::Stray) => return Read::Stray,
        Ok(Message::Response(response)) => {
            return Read::Response { id: response.id, outcome: response.outcome.map_err(|error| error.code) };
        }
        Ok(Message::Request(request)) => request,
    };
    let payload = payload(request.params);
    let given = request.id.as_ref().map(|id| id.json().to_owned());
    let id = request.id.unwrap_or(Id::NULL);
    let mut answers =
        vec![written(|out| write_error(out, &id, &RpcError::no_method(&request.method, "app:page")))];
    answers.push(written(|out| match &payload {
        Ok(payload) => write_result(out, &id, payload),
        Err(error) => write_error(out, &id, error),
    }));
    answers.push(written(|out| match super::params::<Params>(request.params) {
        Ok(_) => write_value(out, &id, &request.method),
        Err(error) => write_error(out, &id, &error),
    }));
    if let Some(cancelled) = super::cancelled(request.params) {
        answers.push(written(|out| write_result(out, &id, cancelled.json().as_bytes())));
    }
    Read::Request { id: given, payload: payload.ok(), answers }
}

fn written(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    out
}
