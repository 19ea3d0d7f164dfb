//! The promises of the bus, without WebAssembly and on a paused clock.

mod access;
mod cancel;
mod circles;
mod counted;
mod events;
mod handover;
mod hostile_patterns;
mod inbox;
mod keepers;
mod lanes;
mod model;
mod operations;
mod outside;
mod outside_churn;
mod outside_events;
mod outside_grants;
mod outside_races;
mod policies;
mod policy_changes;
mod producers;
mod queue_model;
mod queues;
mod requests;
mod routing;
mod shedding;
mod stored;
mod stress;
mod takers;
mod traces;
mod versions;
mod wakeups;

use std::{
    ops::Deref,
    sync::{Arc, Mutex, atomic::Ordering},
    thread,
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::time::Instant;
use weir_names::RequestPolicy;

use super::*;

/// With nothing but a deadline.
fn by(deadline: Instant) -> Parent {
    Parent { deadline: Some(deadline), ..Parent::default() }
}

const LIMITS: PeerLimits = PeerLimits {
    message_size: 1024,
    inbox: InboxLimits { messages: 8, bytes: 4096 },
    when_full: RequestPolicy::Reject,
    request_timeout: Duration::from_secs(5),
    subscriptions: 256,
};

/// A bus with its deadlines driven. No waiter may be left when the test ends.
struct TestBus {
    bus: Arc<Bus>,
    losses: Arc<Mutex<Vec<(String, u64)>>>,
}

impl TestBus {
    /// Needs a runtime, to drive the deadlines.
    fn new() -> Self {
        let losses = Arc::new(Mutex::new(Vec::new()));
        let sink = losses.clone();
        let on_loss = move |receiver: &str, total| sink.lock().unwrap().push((receiver.to_owned(), total));
        let bus = Arc::new(Bus::new(LIMITS, Box::new(on_loss)));
        tokio::spawn(bus.clone().run_deadlines());
        Self { bus, losses }
    }

    /// A peer not started yet.
    fn add(&self, id: &str, fulfills: &[&str], calls: &[&str]) -> Arc<Peer> {
        self.add_with(id, LIMITS, fulfills, calls)
    }

    fn add_with(&self, id: &str, limits: PeerLimits, fulfills: &[&str], calls: &[&str]) -> Arc<Peer> {
        self.bus.add_peer(&id.parse().unwrap(), limits, any_topic(fulfills, calls), None)
    }

    /// A name of programs, with the same grants as a peer from [`add`](Self::add).
    fn name(&self, name: &str, fulfills: &[&str], calls: &[&str]) -> Arc<Peer> {
        self.bus.add_name(&name.parse().unwrap(), any_topic(fulfills, calls)).unwrap()
    }

    /// A program that serves the operation `do` of these contracts.
    fn arrive_with(&self, name: &Peer, limits: PeerLimits, contracts: &[&str]) -> Arc<Peer> {
        let session = self.bus.arrive(name, limits);
        for contract in contracts {
            self.bus.serve(&session, contract, &["do".to_owned()]).unwrap();
        }
        session
    }

    /// A peer that serves the operation `do` of its contracts.
    fn ready(&self, id: &str, fulfills: &[&str], calls: &[&str]) -> Arc<Peer> {
        let peer = self.add(id, fulfills, calls);
        start(&peer, fulfills);
        peer
    }

    /// Calls `do`, with the receiver's own deadline.
    fn call(&self, caller: &Arc<Peer>, contract: &str, payload: &'static str) -> Result<PendingCall, Error> {
        let mut target = self.bus.open(caller, contract, "do", None)?;
        let deadline = self.bus.term(&target, None, Parent::default());
        self.call_to(caller, &mut target, payload.into(), deadline.clone(), false)
    }

    /// Calls an operation and keeps to the deadline.
    fn call_to(
        &self,
        caller: &Arc<Peer>,
        target: &mut Target,
        payload: Bytes,
        term: Term,
        blocking: bool,
    ) -> Result<PendingCall, Error> {
        Ok(self.bus.watch(self.bus.call(caller, target, payload.into(), term, blocking)?))
    }

    fn send(&self, caller: &Arc<Peer>, contract: &str, payload: &'static str) -> Result<Arc<Waiter>, Error> {
        let mut target = self.bus.open(caller, contract, "do", None)?;
        let deadline = self.bus.term(&target, None, Parent::default());
        let (waiter, _sending) = self.bus.send(caller, &mut target, payload.into(), deadline.clone())?;
        Ok(waiter)
    }

    /// Publishes to subscribers with room.
    fn publish(
        &self,
        sender: &Arc<Peer>,
        to: Option<&str>,
        topic: &str,
        payload: Bytes,
    ) -> Result<Receipt, Error> {
        let publishing = self.bus.publish(sender, to, topic, payload, (None, Parent::default()))?;
        publishing.receipt().now_or_never().expect("nobody waits for room")
    }

    fn subscribe(
        &self,
        peer: &Arc<Peer>,
        inbox: &Arc<Inbox>,
        pattern: &str,
    ) -> Result<Arc<Subscription>, Error> {
        self.bus.subscribe(peer, inbox, pattern, None)
    }
}

impl Deref for TestBus {
    type Target = Arc<Bus>;

    fn deref(&self) -> &Arc<Bus> {
        &self.bus
    }
}

impl Drop for TestBus {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_eq!(self.bus.waiters(), 0, "somebody still waits");
        }
    }
}

/// Grants of these contracts, and of every topic.
fn any_topic(fulfills: &[&str], calls: &[&str]) -> Access {
    Access {
        fulfills: fulfills.iter().map(|name| name.parse().unwrap()).collect(),
        calls: calls.iter().map(|name| name.parse().unwrap()).collect(),
        publishes: vec![">".parse().unwrap()],
        subscribes: vec![(">".parse().unwrap(), LaneSettings::default())],
        ..Access::default()
    }
}

/// The queue `q`, and one for its dead letters.
fn with_dead_letters(
    bus: &Bus,
    settings: QueueSettings,
    dead: QueueSettings,
) -> (Arc<SharedQueue>, Arc<SharedQueue>) {
    bus.configure_queues(vec![
        ("q".parse().unwrap(), settings, Some("dead".parse().unwrap())),
        ("dead".parse().unwrap(), dead, None),
    ]);
    (bus.queue("q").unwrap(), bus.queue("dead").unwrap())
}

/// Calls as a guest does, with everything else stopped.
fn blocking(bus: &TestBus, caller: &Arc<Peer>, contract: &str) -> Result<PendingCall, Error> {
    let mut target = bus.open(caller, contract, "do", None)?;
    let deadline = bus.term(&target, None, Parent::default());
    bus.call_to(caller, &mut target, Bytes::new(), deadline.clone(), true)
}

/// Starts a new instance that serves the operation `do` of these contracts.
fn start(peer: &Peer, contracts: &[&str]) {
    peer.begin_instance();
    for contract in contracts {
        peer.serve(contract, &["do".to_owned()]).unwrap();
    }
    peer.set_phase_if_up(Phase::Ready);
}

fn take_request(peer: &Peer) -> Request {
    match peer.take() {
        Taken::Message(Incoming::Request(request)) => request,
        other => panic!("no request but {other:?}"),
    }
}

fn take_reply(peer: &Peer) -> Reply {
    match peer.take() {
        Taken::Message(Incoming::Reply(reply)) => reply,
        other => panic!("no reply but {other:?}"),
    }
}

fn take_event(inbox: &Inbox) -> Event {
    match inbox.take(inbox.current(Seat::FIRST)) {
        Taken::Message(Incoming::Event(event)) => event,
        other => panic!("no event but {other:?}"),
    }
}

/// The events in an inbox: sequence, lost and payload.
fn drain(inbox: &Inbox) -> Vec<(u64, u64, Bytes)> {
    let mut events = Vec::new();
    while let Taken::Message(Incoming::Event(event)) = inbox.take(inbox.current(Seat::FIRST)) {
        events.push((event.published.sequence, event.lost, event.published.payload.clone()));
    }
    events
}

fn denied<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result.unwrap_err() {
        Error::PermissionDenied(text) => text,
        other => panic!("not `permission-denied` but {other:?}"),
    }
}

fn ok(payload: &'static str) -> Result<Bytes, Error> {
    Ok(payload.into())
}
