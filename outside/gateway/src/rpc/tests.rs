//! Text in, text out, as an app sees it.

mod answers;
mod messages;
mod notifications;
mod payloads;
mod round_trips;
mod specification;

use std::iter;

use serde_json::Value;

use super::{Incoming, Message, Refusal, Request, parse, parse::Response};

/// Of a request of ours.
const NUMBER: u32 = 7;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What the writing of one message gives.
fn written(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    out
}

fn single(text: &str) -> Result<Message<'_>, Refusal> {
    match parse(text, 8)? {
        Incoming::Single(message) => message,
        Incoming::Batch(_) => panic!("a batch: {text}"),
    }
}

fn request(text: &str) -> Request<'_> {
    match single(text) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}: {text}"),
    }
}

fn response(text: &str) -> Response {
    match single(text) {
        Ok(Message::Response(response)) => response,
        other => panic!("{other:?}: {text}"),
    }
}

fn refusal(text: &str) -> Refusal {
    single(text).expect_err(text)
}

/// Arrays in arrays.
fn nested(depth: usize) -> String {
    iter::repeat_n('[', depth).chain(iter::repeat_n(']', depth)).collect()
}
