//! Reading and writing of messages without a session, for the fuzz target.

use bytes::Bytes;
use serde::Deserialize;

use super::{
    Envelope, Id, Incoming, Message, Refusal, RpcError, parse, payload, write_alias_event, write_error,
    write_event, write_refusal, write_request, write_result, write_value,
};

/// One message of a text, and what may be written about it.
#[derive(Debug)]
pub enum Read {
    /// A text that is no message. Holds the answer to it.
    Refused(String),
    /// A call or a notification.
    Request {
        /// The id as JSON. `None`: a notification.
        id: Option<String>,
        /// The parameters as a payload. `None`: their base64 is malformed.
        payload: Option<Bytes>,
        /// Answers that it may get. A notification has them as a call with the id null.
        answers: Vec<String>,
    },
    /// An answer to a request of ours.
    Response {
        /// The number of our request.
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

/// Writes each kind of message that carries a payload: the answer to request 7, an event, an event of an alias, and a
/// request. `text` stands for every name in them.
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
