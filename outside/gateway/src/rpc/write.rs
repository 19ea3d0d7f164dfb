//! What is sent to an app. Each function puts one message at the end of `out`.

use std::fmt::{self, Write};

use serde::Serialize;
use serde_json::Value;
use weir_host::traces::TraceContext;

use super::{Id, Refusal, RpcError, payload::Content};

/// Bytes of a message beside its texts and payload, rounded up.
const FRAME: usize = 160;

/// Bytes of the member `traceparent`, rounded up.
const SPAN: usize = 73;

/// The answer of a provider.
pub(crate) fn write_result(out: &mut String, id: &Id, payload: &[u8]) {
    let payload = Content::from(payload);
    out.reserve(FRAME + id.json().len() + payload.room());
    out.push_str(r#"{"jsonrpc":"2.0","result":"#);
    payload.write(out);
    end(out, id);
}

/// An answer with a value of the gateway's own.
pub(crate) fn write_value<T: Serialize + ?Sized>(out: &mut String, id: &Id, value: &T) {
    match serde_json::to_string(value) {
        Ok(json) => {
            out.push_str(r#"{"jsonrpc":"2.0","result":"#);
            out.push_str(&json);
            end(out, id);
        }
        Err(error) => write_error(out, id, &RpcError::internal(error.to_string())),
    }
}

/// The answer to a request that failed.
pub(crate) fn write_error(out: &mut String, id: &Id, error: &RpcError) {
    let RpcError { code, message, word, is_provider } = error;
    out.reserve(FRAME + id.json().len() + message.len());
    open_error(out, *code, message);
    if let Some(word) = word {
        out.push_str(r#","data":{"code":"#);
        write_string(out, word);
        out.push_str(if *is_provider { r#","provider":true}"# } else { "}" });
    }
    out.push('}');
    end(out, id);
}

/// The answer to a text that is no message.
pub(crate) fn write_refusal(out: &mut String, refusal: &Refusal) {
    let Refusal { code, message, id } = refusal;
    open_error(out, *code, message);
    out.push('}');
    end(out, id);
}

/// An event of a subscription.
pub(crate) fn write_event(
    out: &mut String,
    pattern: &str,
    topic: &str,
    sequence: u64,
    is_retained: bool,
    sender: &str,
    payload: &[u8],
) {
    let payload = Content::from(payload);
    out.reserve(FRAME + pattern.len() + topic.len() + sender.len() + payload.room());
    open_notification(out, "events.event");
    out.push_str(r#"{"pattern":"#);
    write_string(out, pattern);
    out.push_str(r#","topic":"#);
    write_string(out, topic);
    out.push_str(r#","sequence":"#);
    write_number(out, sequence);
    out.push_str(r#","retained":"#);
    out.push_str(if is_retained { "true" } else { "false" });
    out.push_str(r#","sender":"#);
    write_string(out, sender);
    out.push_str(r#","payload":"#);
    payload.write(out);
    out.push_str("}}");
}

/// An event of a topic that has an alias.
pub(crate) fn write_alias_event(out: &mut String, method: &str, payload: &[u8]) {
    let payload = Content::from(payload);
    out.reserve(FRAME + method.len() + payload.room());
    out.push_str(r#"{"jsonrpc":"2.0","method":"#);
    write_string(out, method);
    write_params(out, payload);
    out.push('}');
}

/// A notice that this many events of a subscription were lost before the next one.
pub(crate) fn write_lost(out: &mut String, pattern: &str, lost: u64) {
    out.reserve(FRAME + pattern.len());
    open_notification(out, "events.lost");
    out.push_str(r#"{"pattern":"#);
    write_string(out, pattern);
    out.push_str(r#","lost":"#);
    write_number(out, lost);
    out.push_str("}}");
}

/// A notice that the gateway has ended a subscription.
pub(crate) fn write_ended(out: &mut String, pattern: &str) {
    out.reserve(FRAME + pattern.len());
    open_notification(out, "events.ended");
    out.push_str(r#"{"pattern":"#);
    write_string(out, pattern);
    out.push_str("}}");
}

/// What Main says of a request to an app.
#[derive(Debug)]
pub(crate) struct Envelope<'e> {
    pub(crate) sender: &'e str,
    pub(crate) timeout_ms: u64,
    /// The span of the request, if Main records it.
    pub(crate) trace: Option<TraceContext>,
}

/// A request to an app that serves.
pub(crate) fn write_request(
    out: &mut String,
    number: u32,
    contract: &str,
    operation: &str,
    payload: &[u8],
    envelope: &Envelope<'_>,
) {
    let Envelope { sender, timeout_ms, trace } = envelope;
    let payload = Content::from(payload);
    let span = if trace.is_some() { SPAN } else { 0 };
    out.reserve(FRAME + span + contract.len() + operation.len() + sender.len() + payload.room());
    out.push_str(r#"{"jsonrpc":"2.0","id":"#);
    write_number(out, number);
    out.push_str(r#","method":"#);
    write_strings(out, &[contract, "/", operation]);
    write_params(out, payload);
    out.push_str(r#","weir":{"sender":"#);
    write_string(out, sender);
    out.push_str(r#","timeout-ms":"#);
    write_number(out, *timeout_ms);
    if let Some(trace) = trace {
        out.push_str(r#","traceparent":""#);
        out.push_str(&trace.to_string());
        out.push('"');
    }
    out.push_str("}}");
}

/// Tells the app that Main waits no longer for the answer to a request.
pub(crate) fn write_cancel(out: &mut String, number: u32) {
    open_notification(out, "rpc.cancel");
    out.push_str(r#"{"id":"#);
    write_number(out, number);
    out.push_str("}}");
}

/// `method` needs no escapes.
fn open_notification(out: &mut String, method: &str) {
    out.push_str(r#"{"jsonrpc":"2.0","method":""#);
    out.push_str(method);
    out.push_str(r#"","params":"#);
}

fn open_error(out: &mut String, code: i32, message: &str) {
    out.push_str(r#"{"jsonrpc":"2.0","error":{"code":"#);
    write_number(out, code);
    out.push_str(r#","message":"#);
    write_string(out, message);
}

/// Ends an answer with the id of its request.
fn end(out: &mut String, id: &Id) {
    out.push_str(r#","id":"#);
    out.push_str(id.json());
    out.push('}');
}

/// Writes the member `params`, which an empty payload leaves out.
fn write_params(out: &mut String, payload: Content<'_>) {
    if !matches!(payload, Content::Empty) {
        out.push_str(r#","params":"#);
        payload.write_structured(out);
    }
}

/// Puts a number at the end of `out`. A `String` takes everything, so the write cannot fail.
fn write_number(out: &mut String, number: impl fmt::Display) {
    let written = write!(out, "{number}");
    debug_assert!(written.is_ok(), "{written:?}");
}

fn write_string(out: &mut String, text: &str) {
    write_strings(out, &[text]);
}

/// Writes one JSON string that is made of several parts.
fn write_strings(out: &mut String, parts: &[&str]) {
    let is_plain = |part: &&str| part.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    if parts.iter().all(is_plain) {
        out.push('"');
        parts.iter().for_each(|part| out.push_str(part));
        out.push('"');
    } else {
        out.push_str(&Value::from(parts.concat()).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_into_one_allocation() {
        let payload = "[\"a\",1]".repeat(1000);
        for payload in [payload.as_bytes(), b"[1]", b"\xff\xff"] {
            let room = FRAME + Content::from(payload).room();
            let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
            let text = |write: &dyn Fn(&mut String)| {
                let mut out = String::new();
                write(&mut out);
                out.len()
            };
            assert!(text(&|out| write_result(out, &Id::NULL, payload)) <= room + 4);
            assert!(text(&|out| write_event(out, "a", "a", u64::MAX, false, "a", payload)) <= room + 3);
            assert!(text(&|out| write_alias_event(out, "a", payload)) <= room + 1);
            let envelope = Envelope { sender: "c", timeout_ms: u64::MAX, trace: Some(trace) };
            let most = room + 3 + SPAN;
            assert!(text(&|out| write_request(out, u32::MAX, "a", "b", payload, &envelope)) <= most);
        }
        let error = RpcError { word: Some("w".repeat(64).into()), ..RpcError::no_method("a", "b") };
        let mut out = String::new();
        write_error(&mut out, &Id::NULL, &error);
        assert!(out.len() <= FRAME + 4 + error.message.len());
    }
}
