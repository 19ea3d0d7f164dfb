//! A peer: one who sends and receives, with its inbox, its grants and its limits.
//!
//! An extension keeps its inbox, its phase and its counts for as long as the bus lives. Grants and limits
//! may change: then a [`Peer::renewed`] one with the same number and the same inbox takes its place.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use weir_names::{ContractName, OperationName, QueueName, TopicPattern, truncated};

use super::{
    Delivery, Error, InboxLimits, Incoming, OperationId, PeerId, Reply, Request, Taken,
    circle::Wait,
    inbox::{Inbox, Look, ReaderId, Seat},
};

/// Operations of one contract that a peer may serve.
const MAX_OPERATIONS: usize = 256;

/// What a peer may reach. Main itself has none of these bounds.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub fulfills: Vec<ContractName>,
    pub calls: Vec<ContractName>,
    pub publishes: Vec<TopicPattern>,
    /// The first that covers a pattern says how its events wait.
    pub subscribes: Vec<(TopicPattern, Delivery)>,
    /// Queues into which it may put.
    pub puts: Vec<QueueName>,
    /// Queues from which it may take.
    pub takes: Vec<QueueName>,
}

/// How much a peer may send and hold.
#[derive(Clone, Copy, Debug)]
pub struct PeerLimits {
    pub message_size: u64,
    pub inbox: InboxLimits,
    /// Whether the senders of requests that find the inbox full wait for room.
    pub senders_wait: bool,
    /// The default deadline of requests to this peer.
    pub request_timeout: Duration,
    /// Subscriptions at once.
    pub subscriptions: u64,
}

/// Whether a peer takes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Requests are refused.
    Down,
    /// Requests wait in the inbox.
    Starting,
    /// Requests wait in the inbox.
    Ready,
    /// Requests are refused with the reason that the peer gave.
    Interrupted(String),
    /// It is finishing, and another instance comes after it: requests wait in the inbox.
    Replacing,
    /// It is finishing: requests are refused.
    Draining,
}

/// What a peer has done so far.
#[derive(Debug, Default)]
pub struct PeerStats {
    /// Messages that it received.
    pub received: AtomicU64,
    /// Requests and events that it sent.
    pub sent: AtomicU64,
    /// Answers of its that nobody waited for any more.
    pub late: AtomicU64,
    /// Messages for it that found no room.
    pub shed: AtomicU64,
    /// Bytes of the largest payload that it sent or received.
    pub largest: AtomicU64,
}

impl PeerStats {
    fn count_received(&self) {
        // Whoever reads an inbox does so on one thread: no other adds at the same time.
        self.received.store(self.received.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// One who sends and receives, whatever happens to its instances.
#[derive(Debug)]
pub struct Peer {
    id: PeerId,
    name: Arc<str>,
    limits: PeerLimits,
    access: Option<Access>,
    lasting: Arc<Lasting>,
    served: Mutex<Vec<Arc<OperationId>>>,
    /// Its instance, by its place among the readers of the inbox.
    reader: AtomicU64,
    waits: Mutex<Vec<Wait>>,
}

/// What stays when grants and limits change.
#[derive(Debug)]
struct Lasting {
    inbox: Arc<Inbox>,
    /// Where it serves that.
    seat: Seat,
    /// The peer whose inbox it is, where that is another: then it is a copy of that.
    original: Option<PeerId>,
    /// Peers that serve this one's inbox, too.
    copies: Mutex<Vec<PeerId>>,
    phase: AtomicU8,
    interruption: Mutex<String>,
    stats: PeerStats,
}

impl Peer {
    pub(super) fn new(id: PeerId, name: Arc<str>, limits: PeerLimits, access: Option<Access>) -> Self {
        let inbox = Arc::new(Inbox::new(limits.inbox));
        Self::at(id, name, limits, access, (inbox, Seat::FIRST), None)
    }

    /// One that serves the inbox of another, beside that.
    pub(super) fn copy(
        id: PeerId,
        name: Arc<str>,
        limits: PeerLimits,
        access: Access,
        original: &Peer,
    ) -> Self {
        let inbox = original.inbox().clone();
        let seat = inbox.add_seat();
        original.lasting.copies.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        Self::at(id, name, limits, Some(access), (inbox, seat), Some(original.id))
    }

    fn at(
        id: PeerId,
        name: Arc<str>,
        limits: PeerLimits,
        access: Option<Access>,
        (inbox, seat): (Arc<Inbox>, Seat),
        original: Option<PeerId>,
    ) -> Self {
        let lasting = Lasting {
            inbox,
            seat,
            original,
            copies: Mutex::default(),
            phase: AtomicU8::new(DOWN),
            interruption: Mutex::default(),
            stats: PeerStats::default(),
        };
        Self::with(id, name, limits, access, Arc::new(lasting))
    }

    fn with(
        id: PeerId,
        name: Arc<str>,
        limits: PeerLimits,
        access: Option<Access>,
        lasting: Arc<Lasting>,
    ) -> Self {
        Self {
            id,
            name,
            limits,
            access,
            lasting,
            served: Mutex::default(),
            reader: AtomicU64::new(ReaderId::FIRST.0),
            waits: Mutex::default(),
        }
    }

    /// The same peer with other limits and grants, and without an instance. Nobody finds it before
    /// [`Bus::hand_over`](super::Bus::hand_over).
    pub fn renewed(&self, limits: PeerLimits, access: Access) -> Arc<Self> {
        let lasting = self.lasting.clone();
        Arc::new(Self::with(self.id, self.name.clone(), limits, Some(access), lasting))
    }

    pub fn id(&self) -> PeerId {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn limits(&self) -> &PeerLimits {
        &self.limits
    }

    /// The peer whose inbox it serves.
    pub(super) fn owner(&self) -> PeerId {
        self.lasting.original.unwrap_or(self.id)
    }

    /// All that serve its inbox beside it, if it is not one of them itself.
    pub(super) fn copies(&self) -> Vec<PeerId> {
        self.lasting.copies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn seat(&self) -> Seat {
        self.lasting.seat
    }

    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.lasting.inbox
    }

    pub fn stats(&self) -> &PeerStats {
        &self.lasting.stats
    }

    pub fn phase(&self) -> Phase {
        match self.lasting.phase.load(Ordering::Acquire) {
            STARTING => Phase::Starting,
            READY => Phase::Ready,
            INTERRUPTED => Phase::Interrupted(
                self.lasting.interruption.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ),
            DRAINING => Phase::Draining,
            REPLACING => Phase::Replacing,
            _ => Phase::Down,
        }
    }

    pub fn set_phase(&self, phase: Phase) {
        let code = match phase {
            Phase::Down => DOWN,
            Phase::Starting => STARTING,
            Phase::Ready => READY,
            Phase::Interrupted(reason) => {
                *self.lasting.interruption.lock().unwrap_or_else(PoisonError::into_inner) =
                    truncated(reason, 1024);
                INTERRUPTED
            }
            Phase::Draining => DRAINING,
            Phase::Replacing => REPLACING,
        };
        self.lasting.phase.store(code, Ordering::Release);
        self.inbox().refuse_requests(self.seat(), matches!(code, DOWN | DRAINING));
    }

    /// What the instance says of itself, which does not undo a stop. While another is the current one it
    /// changes nothing.
    pub fn set_phase_if_up(&self, phase: Phase) {
        if self.is_up() && self.is_current() {
            self.set_phase(phase);
        }
    }

    /// Counts messages that found no room; returns how many there were before, and are now.
    pub(super) fn count_lost(&self, lost: u32) -> (u64, u64) {
        let before = self.stats().shed.fetch_add(lost.into(), Ordering::Relaxed);
        (before, before + u64::from(lost))
    }

    pub fn count_late(&self) {
        self.stats().late.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it runs and was not asked to stop.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.lasting.phase.load(Ordering::Acquire), STARTING | READY | INTERRUPTED)
    }

    /// Whether an instance is on its way.
    pub fn is_starting(&self) -> bool {
        matches!(self.lasting.phase.load(Ordering::Acquire), STARTING | REPLACING)
    }

    pub fn is_ready(&self) -> bool {
        self.lasting.phase.load(Ordering::Acquire) == READY
    }

    /// A new instance begins, the one before having ended: it serves nothing yet, and starts with what
    /// waits in the inbox.
    pub fn begin_instance(&self) {
        self.inbox().close(self.inbox().current(self.seat()));
        self.begin_beside();
        self.become_current();
        self.set_phase(Phase::Starting);
    }

    /// A new instance begins while another serves: requests and events go there until
    /// [`become_current`](Self::become_current).
    pub fn begin_beside(&self) {
        self.served().clear();
        self.reader.store(self.inbox().open().0, Ordering::Release);
    }

    /// Requests and events go to the instance from now on. The one that got them is told to stop.
    pub fn become_current(&self) {
        self.inbox().hand_over(self.seat(), self.reader(), self.limits.inbox);
    }

    /// The instance has ended: nobody reads the replies to it.
    pub fn end_instance(&self) {
        self.inbox().close(self.reader());
    }

    /// The instance has ended, and had not reached these messages. `lost` are the events of a subscription that it
    /// had in hand.
    pub fn give_back(&self, unreached: Vec<Incoming>, lost: &[(u32, u64)]) {
        self.inbox().give_back(self.reader(), unreached, lost);
    }

    /// Tells the instance to stop.
    pub fn stop(&self) {
        self.inbox().stop(self.reader());
    }

    pub fn is_stopping(&self) -> bool {
        self.inbox().is_stopping(self.reader())
    }

    /// Waits until [`take`](Self::take) finds something.
    pub async fn readable(&self) {
        self.inbox().readable(self.reader()).await;
    }

    /// Waits until [`take`](Self::take) finds something, or `other` holds.
    pub async fn readable_or(&self, other: impl Fn() -> bool) {
        self.inbox().readable_or(self.reader(), other).await;
    }

    /// Whether requests stay in the inbox for now, because the instance has enough of them in hand.
    pub fn hold_requests(&self, hold: bool) {
        self.inbox().hold_requests(self.reader(), hold);
    }

    /// Whether somebody may have given up on a request in hand since this was last asked.
    pub fn take_abandoned_in_hand(&self) -> bool {
        self.inbox().take_abandoned_in_hand(self.reader())
    }

    /// Whether its instance is still to take over from another.
    pub(super) fn is_successor(&self) -> bool {
        self.reader() > self.inbox().current(self.seat())
    }

    /// Whether another has taken over from its instance.
    pub(super) fn is_predecessor(&self) -> bool {
        self.reader() < self.inbox().current(self.seat())
    }

    /// Whether requests and events go to its instance, and not to one of the same peer beside it.
    pub fn is_current(&self) -> bool {
        self.inbox().is_current(self.reader())
    }

    /// Declares what this peer serves; returns the number of the first operation.
    pub fn serve(&self, contract: &str, operations: &[String]) -> Result<u32, Error> {
        let mut contract: ContractName = parsed(contract)?;
        if let Some(access) = &self.access {
            // The name that is there already is kept.
            let Some(granted) = access.fulfills.iter().find(|granted| **granted == contract) else {
                return Err(Error::PermissionDenied(format!(
                    "`{}` may not serve `{contract}`; `fulfills` would grant it",
                    self.name
                )));
            };
            contract = granted.clone();
        }
        if operations.is_empty() || operations.len() > MAX_OPERATIONS {
            return Err(Error::Invalid(format!(
                "`{contract}` is served with {} operations; from 1 to {MAX_OPERATIONS} are possible",
                operations.len()
            )));
        }
        let mut served = self.served();
        if served.iter().any(|operation| operation.contract == contract) {
            return Err(Error::Invalid(format!("`{contract}` is served already")));
        }
        let first = served.len();
        for operation in operations {
            let name: OperationName = parsed(operation).inspect_err(|_| served.truncate(first))?;
            let new = Arc::new(OperationId { contract: contract.clone(), name });
            if served.contains(&new) {
                served.truncate(first);
                return Err(Error::Invalid(format!("operation `{operation}` is named twice")));
            }
            served.push(new);
        }
        u32::try_from(first).map_err(|_| Error::Invalid("too many operations".into()))
    }

    /// The next message, without waiting. Requests for operations that the present instance does not
    /// serve are answered here.
    pub fn take(&self) -> Taken {
        self.take_with(&Look { events: true, hold: None, task: None })
    }

    /// The same, in another way.
    pub fn take_with(&self, look: &Look<'_>) -> Taken {
        loop {
            let mut taken = self.inbox().take_with(self.reader(), look);
            // Looked at where it is: a message is moved often enough.
            let Taken::Message(message) = &mut taken else { return taken };
            match message {
                Incoming::Request(request) => match self.number_of(request) {
                    Some(number) => request.number = number,
                    None => {
                        self.refuse(taken);
                        continue;
                    }
                },
                Incoming::Reply(Reply { outcome: Ok(payload), .. }) => self.note_size(payload),
                Incoming::Reply(_) | Incoming::Event(_) => {}
            }
            self.stats().count_received();
            return taken;
        }
    }

    /// Answers a request for an operation that it does not serve.
    fn refuse(&self, taken: Taken) {
        if let Taken::Message(Incoming::Request(request)) = taken {
            let unknown = Err(self.no_operation(request.answer.operation()));
            request.answer.give(unknown);
        }
    }

    /// The number of an operation and the instance for which it holds, if the present one serves it.
    pub(super) fn find(&self, operation: &OperationId) -> Option<(ReaderId, u32)> {
        let served = self.served();
        let number = served.iter().position(|served| **served == *operation)?;
        Some((self.reader(), u32::try_from(number).ok()?))
    }

    pub(super) fn reader(&self) -> ReaderId {
        ReaderId(self.reader.load(Ordering::Acquire))
    }

    /// Contracts that it may own. What a copy fulfils is owned by the one whose inbox it serves.
    pub(super) fn fulfills(&self) -> &[ContractName] {
        if self.lasting.original.is_some() {
            return &[];
        }
        self.access.as_ref().map_or(&[], |access| &access.fulfills)
    }

    pub(super) fn no_operation(&self, operation: &OperationId) -> Error {
        Error::Invalid(format!(
            "`{}` has no operation `{}` in `{}`",
            operation.contract, operation.name, self.name
        ))
    }

    pub(super) fn may_call(&self, contract: &ContractName) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.calls.contains(contract) => Err(Error::PermissionDenied(format!(
                "`{}` may not call `{contract}`; `requires` or `wants` would grant it",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    pub(super) fn may_publish(&self, topic: &TopicPattern) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.publishes.iter().any(|grant| grant.covers(topic)) => {
                Err(self.not_granted("publish", topic, "publishes"))
            }
            _ => Ok(()),
        }
    }

    /// Says how events wait, if it may subscribe.
    pub(super) fn may_subscribe(&self, pattern: &TopicPattern) -> Result<Delivery, Error> {
        let Some(access) = &self.access else { return Ok(Delivery::default()) };
        let grant = access.subscribes.iter().find(|(grant, _)| grant.covers(pattern));
        grant
            .map(|(_, delivery)| *delivery)
            .ok_or_else(|| self.not_granted("subscribe to", pattern, "subscribes"))
    }

    pub(super) fn may_put(&self, queue: &QueueName) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.puts.contains(queue) => Err(self.not_granted("put into", queue, "puts")),
            _ => Ok(()),
        }
    }

    pub fn may_take(&self, queue: &QueueName) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.takes.contains(queue) => {
                Err(self.not_granted("take from", queue, "takes"))
            }
            _ => Ok(()),
        }
    }

    fn not_granted(&self, verb: &str, what: &impl fmt::Display, key: &str) -> Error {
        Error::PermissionDenied(format!("`{}` may not {verb} `{what}`; `{key}` would grant it", self.name))
    }

    /// Fails if the peer may neither send nor receive a payload of that size.
    pub fn check_size(&self, payload: &Bytes) -> Result<(), Error> {
        let bytes = payload.len() as u64;
        let allowed = self.limits.message_size;
        if bytes > allowed {
            return Err(Error::TooLarge { bytes, allowed });
        }
        self.note_size(payload);
        Ok(())
    }

    /// Counts a payload that the peer sent or received.
    pub fn note_size(&self, payload: &Bytes) {
        let bytes = payload.len() as u64;
        // Nearly always a read is all that it takes.
        if bytes > self.stats().largest.load(Ordering::Relaxed) {
            self.stats().largest.fetch_max(bytes, Ordering::Relaxed);
        }
    }

    /// For what this peer waits with everything else stopped, as in a blocking call.
    pub(super) fn waits(&self) -> Vec<Wait> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_waits(&self, waits: impl IntoIterator<Item = Wait>) {
        // In place: most peers wait for one thing at a time, again and again.
        let mut current = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        current.clear();
        current.extend(waits);
    }

    /// Whether it waits for nothing, and whoever waits for it waits for no other.
    pub(super) fn ends_all_waits(&self) -> bool {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).is_empty() && !self.shares_inbox()
    }

    /// Whether others serve its inbox, too.
    pub(super) fn shares_inbox(&self) -> bool {
        self.lasting.original.is_some()
            || !self.lasting.copies.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn number_of(&self, request: &Request) -> Option<u32> {
        if request.reader == self.reader() {
            return Some(request.number);
        }
        self.find(request.answer.operation()).map(|(_, number)| number)
    }

    fn served(&self) -> MutexGuard<'_, Vec<Arc<OperationId>>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that an extension gave.
pub(super) fn parsed<T>(text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err = weir_names::NameError>,
{
    text.parse().map_err(|error: T::Err| Error::Invalid(error.to_string()))
}

const DOWN: u8 = 0;
const STARTING: u8 = 1;
const READY: u8 = 2;
const INTERRUPTED: u8 = 3;
const DRAINING: u8 = 4;
const REPLACING: u8 = 5;
