//! One session: a program under a name, while it is there.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use weir_bus::{
    Bus, Error, HandlerError, Incoming, MessageId, OpenSpan, Peer, Responder, TakeOptions, Taken,
};
use weir_names::{ContractName, OperationName, PeerName, TraceContext, TraceId};

use super::{Live, PeerSessionLimits, Registry, SessionEnd, SessionId};
use crate::{
    client::{Client, ReceivedEvent, received},
    contracts,
    service::ServedRequest,
};

/// The session of a program under a name, until dropped. Then its subscriptions end, its contracts have no provider,
/// and requests that wait for it are answered `peer-gone`. Requests and jobs in hand are yours: drop them, too.
#[derive(Debug)]
pub struct Session {
    client: Client,
    bus: Arc<Bus>,
    live: Arc<Live>,
    registry: Arc<Registry>,
}

/// Which messages to take now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Requests.
    pub requests: bool,
    /// Events.
    pub events: bool,
}

/// A message for a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeerMessage {
    /// A request that it must answer.
    Request(PeerRequest),
    /// An event, and the number of its subscription.
    Event(u32, ReceivedEvent),
}

/// A request to a contract that the session serves. Dropped, it answers `peer-gone`. It can be answered even after the
/// end of its session.
#[derive(Debug)]
#[non_exhaustive]
pub struct PeerRequest {
    /// The message's id.
    pub id: MessageId,
    /// The sending extension's id, a peer's name, or `main`.
    pub sender: String,
    /// The contract.
    pub contract: ContractName,
    /// The operation.
    pub operation: OperationName,
    /// The arguments.
    pub payload: Bytes,
    responder: Responder,
    _traced: Option<Box<TracedGuard>>,
    /// The peer of the session, which counts a late answer.
    peer: Arc<Peer>,
}

impl PeerRequest {
    /// The request's span, if it is recorded. Pass it on with what is sent for the request, as in
    /// [`CallOptions::trace`](crate::client::CallOptions::trace).
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.responder.span().map(|span| *span.context())
    }

    /// The request as a handler of a [`Service`](crate::Service) gets it.
    #[must_use]
    pub fn served(&self) -> ServedRequest {
        let Self { id, sender, payload, responder, .. } = self;
        ServedRequest::new(*id, sender.clone(), payload.clone(), responder.waiter())
    }

    /// Time left for the answer.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.responder.term().deadline.saturating_duration_since(tokio::time::Instant::now())
    }

    /// Waits until the caller gives up or the deadline passes.
    pub fn given_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let waiter = self.responder.waiter();
        async move { waiter.ended().await }
    }

    /// Answers; false if it came too late.
    pub fn answer(self, outcome: Result<Bytes, HandlerError>) -> bool {
        self.give(outcome.map_err(Error::from))
    }

    /// Answers with one of Weir's own errors, as if Main had given it; false if it came too late.
    pub fn refuse(self, error: Error) -> bool {
        self.give(Err(error))
    }

    fn give(self, outcome: Result<Bytes, Error>) -> bool {
        let is_in_time = self.responder.give(outcome);
        if !is_in_time {
            self.peer.count_late();
        }
        is_in_time
    }
}

impl Session {
    pub(super) fn new(bus: Arc<Bus>, live: Arc<Live>, registry: Arc<Registry>) -> Self {
        Self { client: Client::of_session(bus.clone(), live.clone()), bus, live, registry }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.live.id
    }

    /// The name that it runs under.
    #[must_use]
    pub fn name(&self) -> &PeerName {
        &self.live.name
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &PeerSessionLimits {
        &self.live.limits
    }

    /// Calls, publishes, subscribes, puts and takes under its name. After the end of the session every attempt fails.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The operations that it may call now: those that it was granted and a provider serves.
    #[must_use]
    pub fn callable(&self) -> Vec<(ContractName, OperationName)> {
        self.bus.callable(&self.live.peer)
    }

    /// Serves a contract from now on. Its requests come from [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// [`Error::PermissionDenied`] without a grant; [`Error::Invalid`] if another session or an extension serves it, or
    /// an operation is not well formed; [`Error::PeerGone`] after the end.
    pub fn serve(&self, contract: &str, operations: &[String]) -> Result<(), Error> {
        self.bus.serve(&self.live.peer, contract, operations)
    }

    /// Describes contracts that it serves, once: an OpenRPC document as JSON, or a list of them, of at most 64 KiB. From
    /// now on [`Control::contracts`](crate::Control::contracts) has those that it serves. They are read beside the worker
    /// thread, on the pool of `[main] blocking-threads`.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`]; [`Error::Invalid`] if they are malformed, describe one contract in two ways, or exceed
    /// another bound; [`Error::PermissionDenied`] for a contract that the name may not serve. After an error as after
    /// success, a further attempt in the same session is [`Error::Invalid`].
    pub fn describe(&self, documents: Bytes) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let live = self.live.clone();
        async move {
            let read = tokio::task::spawn_blocking(move || {
                let mut is_first = false;
                let described = live.described.get_or_init(|| {
                    is_first = true;
                    let may_serve = |contract: &_| live.peer.may_serve(contract);
                    contracts::of_peer(&documents, may_serve)
                });
                if !is_first {
                    return Err(Error::Invalid("a session describes its contracts once".to_owned()));
                }
                described.clone().map(drop)
            });
            // No input makes it panic: this fails only when the pool ends with Main.
            read.await.unwrap_or(Err(Error::PeerGone))
        }
    }

    /// Subscribes, as the operator's grant says; events come from [`next`](Self::next) with the returned number.
    ///
    /// # Errors
    ///
    /// The errors of [`Client::subscribe`], and [`Error::PermissionDenied`].
    pub fn subscribe(&self, pattern: &str) -> Result<u32, Error> {
        let peer = &self.live.peer;
        self.bus.subscribe(peer, peer.inbox(), pattern, None).map(|subscription| subscription.number())
    }

    /// Fails if it may not subscribe to this pattern now.
    ///
    /// # Errors
    ///
    /// [`Error::PermissionDenied`], and [`Error::Invalid`] if the pattern is not well formed.
    pub fn may_subscribe(&self, pattern: &str) -> Result<(), Error> {
        self.bus.may_subscribe(&self.live.peer, pattern)
    }

    /// Fails if it may not publish on this topic now.
    ///
    /// # Errors
    ///
    /// [`Error::PermissionDenied`], and [`Error::Invalid`] if the topic is not well formed.
    pub fn may_publish(&self, topic: &str) -> Result<(), Error> {
        self.bus.may_publish(&self.live.peer, topic)
    }

    /// Counts events that its holder gave the program from a subscription shared with others, and events lost on the
    /// way.
    pub fn count_events(&self, received: u64, lost: u32) {
        self.live.peer.stats().received.fetch_add(received, Ordering::Relaxed);
        if lost > 0 {
            self.bus.count_lost(&self.live.peer, lost);
        }
    }

    /// Ends a subscription, and drops its waiting events.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if it has no such subscription.
    pub fn unsubscribe(&self, subscription: u32) -> Result<(), Error> {
        self.bus.unsubscribe(&self.live.peer, subscription)
    }

    /// The numbers of its subscriptions. Some may have ended because the operator took back a grant.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<u32> {
        self.bus.subscriptions_of(&self.live.peer)
    }

    /// Waits for a wanted message. Only one task may wait at a time. None once the session has ended. Dropping the
    /// future loses nothing.
    pub async fn next(&self, wanted: Wanted) -> Option<PeerMessage> {
        poll_fn(|context| self.poll_next(wanted, context)).await
    }

    /// Polls for a wanted message, for a task that does more than [`next`](Self::next).
    pub fn poll_next(&self, wanted: Wanted, context: &mut Context<'_>) -> Poll<Option<PeerMessage>> {
        let options = TakeOptions {
            events: wanted.events,
            hold: Some(!wanted.requests),
            counts_abandoned: true,
            task: Some(context.waker()),
        };
        match self.live.peer.take_with(&options) {
            Taken::Message(Incoming::Request(request)) => {
                Poll::Ready(Some(PeerMessage::Request(self.request(request))))
            }
            Taken::Message(Incoming::Event(event)) => {
                Poll::Ready(Some(PeerMessage::Event(event.subscription, received(&self.bus, &event))))
            }
            // Clients wait for their answers elsewhere.
            Taken::Message(Incoming::Reply(_)) | Taken::Empty => Poll::Pending,
            Taken::Stop => Poll::Ready(None),
        }
    }

    /// Counts an answer that the program sent after it was told that the request was given up.
    pub fn count_late(&self) {
        self.live.peer.count_late();
    }

    /// Waits until the operator has changed its grants.
    pub fn regranted(&self) -> impl Future<Output = ()> + Send + use<> {
        self.live.regranted.clone().notified_owned()
    }

    /// Waits until the session ends, and returns why.
    pub fn ended(&self) -> impl Future<Output = SessionEnd> + Send + use<> {
        let live = self.live.clone();
        async move { live.ended().await }
    }

    fn request(&self, request: weir_bus::Request) -> PeerRequest {
        let weir_bus::Request { payload, responder, .. } = request;
        let sender = self.bus.peer(responder.sender()).map(|peer| peer.name().to_owned());
        let operation = responder.operation();
        PeerRequest {
            id: responder.id(),
            sender: sender.unwrap_or_default(),
            contract: operation.contract.clone(),
            operation: operation.name.clone(),
            payload,
            _traced: responder.span().map(|span| TracedGuard::new(&self.live, span)),
            responder,
            peer: self.live.peer.clone(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // False if somebody else has ended it.
        self.registry.leave(self.live.id);
    }
}

/// The traces of the recorded requests and jobs in hand, with the number of messages of each. What the session sends as
/// part of such a trace is recorded, too, even if the program names a span of its own, as tools of OpenTelemetry do.
#[derive(Debug, Default)]
pub(crate) struct Traced(Mutex<HashMap<TraceId, usize>>);

/// A recorded request or job, in hand until this is dropped.
#[derive(Debug)]
pub(crate) struct TracedGuard {
    live: Arc<Live>,
    trace: TraceId,
}

impl Traced {
    pub(crate) fn has(&self, trace: TraceId) -> bool {
        self.0.lock().contains_key(&trace)
    }
}

impl TracedGuard {
    #[cold]
    pub(crate) fn new(live: &Arc<Live>, span: &OpenSpan) -> Box<Self> {
        let trace = span.context().trace;
        *live.traced.0.lock().entry(trace).or_default() += 1;
        Box::new(Self { live: live.clone(), trace })
    }
}

impl Drop for TracedGuard {
    fn drop(&mut self) {
        let mut in_hand = self.live.traced.0.lock();
        if let Some(messages) = in_hand.get_mut(&self.trace) {
            *messages -= 1;
            if *messages == 0 {
                in_hand.remove(&self.trace);
            }
        }
    }
}
