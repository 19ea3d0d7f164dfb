//! JSON-RPC by HTTP POST: a session for one request or batch.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{future::join_all, task::noop_waker_ref};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use weir_connection::Rate;
use weir_host::{names::PeerName, peers::Session, traces::TraceContext};

use crate::{
    conversation::write,
    methods::{Begun, Methods},
    rpc::{self, Id, Incoming, Message, Refusal, Request, RpcError},
    shared::Shared,
};

/// Most bytes of an answer written at once.
const PIECE: usize = 16 * 1024;

/// How fast messages come by POST, for each name together: a session of one POST is too short for a rate of its own.
/// The number beside each rate is the limit that the rate was made for.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<PeerName, (u32, Rate)>>);

/// `limits.message-rate` is used up.
#[derive(Debug)]
pub(crate) struct RateUsedUp;

/// The answer to a message or batch, if it has one. Requests that name no span are part of the span `trace`.
pub(crate) async fn answer(
    shared: &Shared,
    methods: &mut Methods,
    text: &str,
    trace: Option<TraceContext>,
) -> Result<Option<String>, RateUsedUp> {
    let max_batch = usize::try_from(methods.session().limits().in_flight).unwrap_or(usize::MAX);
    let (messages, is_batch) = match rpc::parse(text, max_batch) {
        Err(refusal) => (vec![Err(refusal)], false),
        Ok(Incoming::Single(message)) => (vec![message], false),
        Ok(Incoming::Batch(messages)) => (messages, true),
    };
    shared.rates.count(methods.session(), messages.len())?;
    let mut ids = HashSet::new();
    let begun = messages.into_iter().filter_map(|message| begin(methods, message, trace, &mut ids));
    let begun: Vec<_> = begun.collect();
    let answers = join_all(begun.into_iter().map(finish)).await;
    let mut answers: Vec<String> = answers.into_iter().flatten().collect();
    Ok(match is_batch {
        _ if answers.is_empty() => None,
        true => Some(format!("[{}]", answers.join(","))),
        false => answers.pop(),
    })
}

/// The body of an answer. Its session lasts until almost all is written: the limit on sessions bounds unread answers.
#[derive(Debug)]
pub(crate) struct Body {
    text: Bytes,
    _session: Methods,
}

impl Body {
    pub(crate) fn new(text: String, session: Methods) -> Self {
        Self { text: text.into(), _session: session }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.text.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.text.len().min(PIECE);
        // A copy: a slice of the text would keep all of it in memory until the last piece is written.
        let piece = Bytes::copy_from_slice(&self.text.split_to(length));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.text.len() as u64)
    }
}

enum Answer {
    Refused(Refusal),
    Of(Option<Id>, Begun),
}

/// Begins a message. `None` for a response, since the gateway sends no requests by POST, and for a notification
/// `rpc.cancel`. `ids` has the ids of the requests before it in its batch.
fn begin(
    methods: &mut Methods,
    message: Result<Message<'_>, Refusal>,
    trace: Option<TraceContext>,
    ids: &mut HashSet<Id>,
) -> Option<Answer> {
    match message {
        Err(refusal) => Some(Answer::Refused(refusal)),
        Ok(Message::Response(_) | Message::Stray) => None,
        Ok(Message::Request(request)) if request.method == "rpc.cancel" => {
            let id = request.id?;
            Some(Answer::Of(Some(id), Begun::Now(Err(RpcError::needs_connection()))))
        }
        Ok(Message::Request(Request { id: Some(id), .. })) if ids.contains(&id) => {
            Some(Answer::Of(Some(id), Begun::Now(Err(RpcError::id_in_use()))))
        }
        Ok(Message::Request(mut request)) => {
            ids.extend(request.id.clone());
            request.trace = request.trace.or(trace);
            Some(Answer::Of(request.id.clone(), methods.begin(&request)))
        }
    }
}

/// Waits for an outcome, and returns the text of the answer. `None` for a notification.
async fn finish(answer: Answer) -> Option<String> {
    let mut text = String::new();
    match answer {
        Answer::Refused(refusal) => rpc::write_refusal(&mut text, &refusal),
        Answer::Of(id, begun) => {
            let outcome = match begun {
                Begun::Now(outcome) => outcome,
                Begun::Later(work) => work.await,
            };
            write(&mut text, &id?, outcome);
        }
    }
    Some(text)
}

impl Rates {
    fn count(&self, session: &Session, messages: usize) -> Result<(), RateUsedUp> {
        let mut rates = self.0.lock();
        let limit = session.limits().message_rate;
        let new = || (limit, Rate::new(limit));
        let known = rates.entry(session.name().clone()).or_insert_with(new);
        if known.0 != limit {
            *known = new();
        }
        // The POST does not wait for the rate: the app hears that it is too fast.
        if known.1.poll_one(&mut Context::from_waker(noop_waker_ref())).is_pending() {
            return Err(RateUsedUp);
        }
        known.1.owe(u32::try_from(messages).unwrap_or(u32::MAX).saturating_sub(1));
        Ok(())
    }
}
