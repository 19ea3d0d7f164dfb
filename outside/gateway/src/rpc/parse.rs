//! What an app sends.

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use weir_host::{HandlerError, traces::TraceContext};

use super::{Id, Refusal, RpcError, error::words, payload};

/// What one text holds.
#[derive(Debug)]
pub(crate) enum Incoming<'t> {
    /// One message. Its answer is one object, if it has one.
    Single(Result<Message<'t>, Refusal>),
    /// A batch, which is never empty. Its answer is an array, if it has one.
    Batch(Vec<Result<Message<'t>, Refusal>>),
}

/// One message of an app.
#[derive(Debug)]
pub(crate) enum Message<'t> {
    /// A call or a notification.
    Request(Request<'t>),
    /// An answer to a request of ours.
    Response(Response),
    /// An answer to a request that we never sent, such as one with the id null. Nothing answers it: two sides that
    /// complain of each other's answers would never stop.
    Stray,
}

/// A call or a notification.
#[derive(Debug)]
pub(crate) struct Request<'t> {
    /// `None` for a notification, which gets no answer.
    pub(crate) id: Option<Id>,
    pub(crate) method: Cow<'t, str>,
    /// An object or an array.
    pub(crate) params: Option<&'t RawValue>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) provider: Option<Cow<'t, str>>,
    /// The span that it is part of.
    pub(crate) trace: Option<TraceContext>,
}

/// An answer of an app that serves.
#[derive(Debug)]
pub(crate) struct Response {
    /// The number that [`write_request`](super::write_request) gave.
    pub(crate) id: u32,
    pub(crate) outcome: Result<Bytes, HandlerError>,
}

/// Reads a text as it came. A message in it that is wrong has a [`Refusal`] in its place.
///
/// # Errors
/// Text that is not JSON; a batch that is empty or has more than `max_batch` entries.
pub(crate) fn parse(text: &str, max_batch: usize) -> Result<Incoming<'_>, Refusal> {
    // A derived struct could be read from an array, too.
    match text.trim_ascii_start().bytes().next() {
        Some(b'{') => match serde_json::from_str(text) {
            Ok(members) => Ok(Incoming::Single(message(members))),
            Err(error) => readable(text).map(|()| Incoming::Single(Err(malformed(&error)))),
        },
        Some(b'[') => batch(text, max_batch),
        _ => readable(text).map(|()| Incoming::Single(Err(not_an_object()))),
    }
}

/// The parameters of a built-in method, by name. If the request has none, they are read from an empty object.
///
/// # Errors
/// What is wrong with them, in serde's words.
pub(crate) fn params<'t, T: Deserialize<'t>>(params: Option<&'t RawValue>) -> Result<T, RpcError> {
    let params = params.map_or("{}", RawValue::get);
    if !params.starts_with('{') {
        return Err(RpcError::invalid_params("parameters are given by name here, as an object"));
    }
    object(params).map_err(RpcError::invalid_params)
}

/// The members of an object.
///
/// # Errors
/// What is wrong with it, in serde's words. They may repeat text of the app's.
pub(crate) fn object<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, String> {
    // A derived struct could be read from an array, too.
    if !text.trim_ascii_start().starts_with('{') {
        return Err("not an object".to_owned());
    }
    serde_json::from_str(text).map_err(|error| words(&error))
}

/// The id of the request that a `rpc.cancel` names. `None` if its parameters are wrong.
pub(crate) fn cancelled(of: Option<&RawValue>) -> Option<Id> {
    #[derive(Deserialize)]
    struct Cancel {
        id: Id,
    }
    params(of).ok().map(|Cancel { id }| id)
}

/// Fails if the text is not JSON.
fn readable(text: &str) -> Result<(), Refusal> {
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| Refusal::not_json(&error))
}

fn batch(text: &str, most: usize) -> Result<Incoming<'_>, Refusal> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let entries = (&mut deserializer)
        .deserialize_seq(Entries { most })
        .and_then(|entries| deserializer.end().map(|()| entries))
        .map_err(|error| Refusal::not_json(&error))?;
    match entries {
        None => Err(Refusal::not_a_message(format!("a batch has at most {most} entries"), Id::NULL)),
        Some(entries) if entries.is_empty() => Err(Refusal::not_a_message("an empty batch", Id::NULL)),
        Some(entries) => Ok(Incoming::Batch(entries.into_iter().map(entry).collect())),
    }
}

fn entry(json: &RawValue) -> Result<Message<'_>, Refusal> {
    if !json.get().starts_with('{') {
        return Err(not_an_object());
    }
    serde_json::from_str(json.get()).map_err(|error| malformed(&error)).and_then(message)
}

#[cold]
fn not_an_object() -> Refusal {
    Refusal::not_a_message("a message is an object", Id::NULL)
}

#[cold]
fn malformed(error: &serde_json::Error) -> Refusal {
    Refusal::not_a_message(words(error), Id::NULL)
}

/// The entries of a batch, or `None` if there are more than `most`. The rest is read, but not kept.
struct Entries {
    most: usize,
}

impl<'de> Visitor<'de> for Entries {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut batch: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = batch.next_element()? {
            if entries.len() == self.most {
                while batch.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            entries.push(entry);
        }
        Ok(Some(entries))
    }
}

/// The members of a message. One of these names that is there twice is refused. Members with other names are ignored.
#[derive(Deserialize)]
struct Members<'t> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    weir: Option<&'t RawValue>,
}

/// Reads a member that is there. The value `null` differs from a member that is missing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Members<'_> {
    fn is_version_2(&self) -> bool {
        self.jsonrpc.and_then(text).is_some_and(|version| version == "2.0")
    }
}

fn message(members: Members<'_>) -> Result<Message<'_>, Refusal> {
    if members.method.is_none() && (members.result.is_some() || members.error.is_some()) {
        return Ok(response(&members));
    }
    request(&members).map(Message::Request)
}

fn request<'t>(members: &Members<'t>) -> Result<Request<'t>, Refusal> {
    let id =
        members.id.map(|id| Id::of(id).ok_or_else(|| refuse(format!("`id` is not {}", Id::SHAPE), None)));
    let id = id.transpose()?;
    let fault = |fault: &'static str| refuse(fault, id.clone());
    if !members.is_version_2() {
        return Err(fault("`jsonrpc` is not \"2.0\""));
    }
    let method = members.method.ok_or_else(|| fault("no `method`"))?;
    let method = text(method).ok_or_else(|| fault("`method` is not a string"))?;
    if members.result.is_some() || members.error.is_some() {
        return Err(fault("both a request and a response"));
    }
    if members.params.is_some_and(|params| !params.get().starts_with(['{', '['])) {
        return Err(fault("`params` is neither an object nor an array"));
    }
    let Options { timeout_ms, provider, traceparent } = match members.weir {
        None => Options::default(),
        Some(options) if !options.get().starts_with('{') => return Err(fault("`weir` is not an object")),
        Some(options) => serde_json::from_str(options.get())
            .map_err(|error| refuse(format!("`weir`: {}", words(&error)), id.clone()))?,
    };
    let trace = traceparent.map(|Text(text)| text.parse());
    let trace = trace.transpose().map_err(|_| fault("`weir.traceparent` is no traceparent"))?;
    // 0 stands for the operator's `request-timeout`, in the peer protocol, too.
    let timeout = timeout_ms.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.into()));
    let provider = provider.map(|Text(id)| id);
    Ok(Request { id, method, params: members.params, timeout, provider, trace })
}

#[cold]
fn refuse(fault: impl Into<Cow<'static, str>>, id: Option<Id>) -> Refusal {
    Refusal::not_a_message(fault, id.unwrap_or(Id::NULL))
}

/// The member `weir` of a request.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Options<'t> {
    timeout_ms: Option<u32>,
    #[serde(borrow)]
    provider: Option<Text<'t>>,
    #[serde(borrow)]
    traceparent: Option<Text<'t>>,
}

/// A response that is malformed still ends the wait of its request, if its id can be read.
fn response<'t>(members: &Members<'_>) -> Message<'t> {
    let Some(id) = members.id.and_then(|id| id.get().parse().ok()) else { return Message::Stray };
    let outcome = match (members.result, members.error) {
        _ if !members.is_version_2() => Err(failed("`jsonrpc` is not \"2.0\"")),
        (Some(result), None) => payload(Some(result)).map_err(|error| failed(&error.message)),
        (None, Some(error)) => Err(handler_error(error)),
        _ => Err(failed("both a result and an error")),
    };
    Message::Response(Response { id, outcome })
}

/// The error of a request whose response cannot be used.
fn failed(fault: &str) -> HandlerError {
    HandlerError::new(FAILED, format!("malformed response: {fault}"))
}

/// The code of an error that has none of its own.
const FAILED: &str = "failed";

fn handler_error(error: &RawValue) -> HandlerError {
    let members = if error.get().starts_with('{') { serde_json::from_str(error.get()).ok() } else { None };
    let Some(ErrorMembers { message, data }) = members else {
        return failed("`error` is not an error object");
    };
    let data = data.filter(|data| data.get().starts_with('{'));
    let code = data.and_then(|data| serde_json::from_str(data.get()).ok());
    let code = code.and_then(|ErrorData { code }| text(code?)).filter(|code| !code.is_empty());
    HandlerError::new(code.as_deref().unwrap_or(FAILED), message.0)
}

#[derive(Deserialize)]
struct ErrorMembers<'t> {
    #[serde(borrow)]
    message: Text<'t>,
    #[serde(borrow)]
    data: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct ErrorData<'t> {
    #[serde(borrow)]
    code: Option<&'t RawValue>,
}

/// A string, borrowed unless it has escapes.
#[derive(Deserialize)]
pub(super) struct Text<'t>(#[serde(borrow)] pub(super) Cow<'t, str>);

/// The string that this JSON is, if it is one.
fn text(json: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(json.get()).ok().map(|Text(text)| text)
}
