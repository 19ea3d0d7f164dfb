//! A peer: it sends and receives, and has an inbox, grants and limits.
//!
//! An extension keeps its inbox, phase and counts for as long as the bus lives. When grants or limits change, a peer
//! made by [`Peer::renewed`] with the same number and inbox takes its place.
//!
//! Knows nothing of other peers, or of routes to them.

mod grants;
mod instance;
mod phase;
mod served;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use weir_names::{ContractName, Error, PeerName, RequestPolicy};

pub use self::{grants::Access, phase::Phase};
use self::{grants::Grants, phase::PhaseCell, served::Served};
use crate::{
    id::{InstanceId, PeerId},
    inbox::{Inbox, InboxLimits, Seat},
    operations::Operations,
    queue::SharedQueue,
    room::Room,
};

/// A sender and receiver of messages. It outlives its instances.
#[derive(Debug)]
pub struct Peer {
    id: PeerId,
    name: Arc<str>,
    limits: PeerLimits,
    grants: Grants,
    kind: Kind,
    lasting: Arc<Lasting>,
    served: Mutex<Vec<Served>>,
    /// The number of the peer's present instance.
    instance: AtomicU64,
    waits: Mutex<Vec<Wait>>,
    is_canary: AtomicBool,
}

/// What kind of peer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The embedding program, whose tasks wait independently.
    Main,
    Extension,
    /// A name under which programs outside Main run. The name itself sends and receives nothing.
    Name,
    /// One program outside Main, under the name with this number.
    Session(PeerId),
}

/// The parts of a peer that stay when its grants and limits change.
#[derive(Debug)]
struct Lasting {
    inbox: Arc<Inbox>,
    seat: Seat,
    /// For a copy, the peer that owns the inbox.
    original: Option<PeerId>,
    /// The copies: other peers that serve this peer's inbox, too.
    copies: Mutex<Vec<PeerId>>,
    phase: PhaseCell,
    stats: PeerStats,
    /// The counts of requests, by operation. A copy shares them with its original, and a program with its name.
    operations: Arc<Operations>,
}

impl Lasting {
    fn with_inbox(limits: &PeerLimits) -> Self {
        Self::new(Arc::new(Inbox::new(limits.inbox)), Seat::FIRST)
    }

    fn new(inbox: Arc<Inbox>, seat: Seat) -> Self {
        Self {
            inbox,
            seat,
            original: None,
            copies: Mutex::default(),
            phase: PhaseCell::default(),
            stats: PeerStats::default(),
            operations: Arc::default(),
        }
    }
}

impl Peer {
    pub(crate) fn main(limits: PeerLimits) -> Self {
        let own = (PeerId::MAIN, weir_names::MAIN.into());
        Self::with(own, limits, Grants::All, Kind::Main, Lasting::with_inbox(&limits))
    }

    pub(crate) fn new(id: PeerId, name: Arc<str>, limits: PeerLimits, access: Access) -> Self {
        let grants = Grants::Fixed(access);
        Self::with((id, name), limits, grants, Kind::Extension, Lasting::with_inbox(&limits))
    }

    /// Makes a name under which programs outside Main may run.
    pub(crate) fn name_of_programs(id: PeerId, name: &PeerName, access: Access) -> Self {
        let (own, limits) = ((id, name.shared()), PeerLimits::NONE);
        Self::with(own, limits, Grants::renewable(access), Kind::Name, Lasting::with_inbox(&limits))
    }

    /// Makes the peer of a program under this name. It always has the grants that the name has.
    pub(crate) fn session(&self, id: PeerId, limits: PeerLimits) -> Self {
        let (own, kind) = ((id, self.name.clone()), Kind::Session(self.id));
        let operations = self.lasting.operations.clone();
        let lasting = Lasting { operations, ..Lasting::with_inbox(&limits) };
        Self::with(own, limits, self.grants.clone(), kind, lasting)
    }

    pub(crate) fn copy(
        id: PeerId,
        name: Arc<str>,
        limits: PeerLimits,
        access: Access,
        original: &Peer,
    ) -> Self {
        original.lasting.copies.lock().push(id);
        let inbox = original.inbox().clone();
        let lasting = Lasting {
            original: Some(original.id),
            operations: original.lasting.operations.clone(),
            ..Lasting::new(inbox.clone(), inbox.add_seat())
        };
        Self::with((id, name), limits, Grants::Fixed(access), Kind::Extension, lasting)
    }

    fn with(
        (id, name): (PeerId, Arc<str>),
        limits: PeerLimits,
        grants: Grants,
        kind: Kind,
        lasting: impl Into<Arc<Lasting>>,
    ) -> Self {
        Self {
            id,
            name,
            limits,
            grants,
            kind,
            lasting: lasting.into(),
            served: Mutex::default(),
            instance: AtomicU64::new(InstanceId::FIRST.0),
            waits: Mutex::default(),
            is_canary: AtomicBool::new(false),
        }
    }

    /// Makes the same peer with other limits and grants, before an instance of it has begun. Senders find it only after
    /// [`Bus::replace`](super::Bus::replace) or [`Bus::replace_on_trial`](super::Bus::replace_on_trial).
    pub fn renewed(&self, limits: PeerLimits, access: Access) -> Arc<Self> {
        let (own, lasting) = ((self.id, self.name.clone()), self.lasting.clone());
        Arc::new(Self::with(own, limits, Grants::Fixed(access), self.kind, lasting))
    }

    /// Returns the peer's number on this bus.
    #[inline]
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// Returns the number that the peer's messages carry as their sender. For a program, it is the number of its name.
    #[inline]
    pub fn sender(&self) -> PeerId {
        match self.kind {
            Kind::Session(name) => name,
            _ => self.id,
        }
    }

    /// Whether no message reaches the peer while it waits. That is so for an extension, unless it is a server. Tasks of
    /// Main and of programs wait independently.
    pub fn stands_still(&self) -> bool {
        let is_concurrent = || self.grants.read(|access| access.is_some_and(|access| access.is_concurrent));
        self.kind == Kind::Extension && !is_concurrent()
    }

    /// Whether the peer is a program outside Main that has left.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self.kind, Kind::Session(_)) && self.phase() == Phase::Down
    }

    /// Whether the peer is a name of programs outside Main, or such a program.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.kind, Kind::Name | Kind::Session(_))
    }

    /// Returns the peer's id as operators write it; `main` for Main.
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the peer's id as operators write it, as a shared string.
    pub fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Returns how much the peer may send and hold.
    #[inline]
    pub fn limits(&self) -> &PeerLimits {
        &self.limits
    }

    /// Returns the inbox where the peer's messages wait. A copy shares the inbox of its original.
    #[inline]
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.lasting.inbox
    }

    /// Returns the peer's counts so far.
    #[inline]
    pub fn stats(&self) -> &PeerStats {
        &self.lasting.stats
    }

    /// Sets whether the peer is a canary: one of several that serve an inbox, which tries a new version. The requests
    /// that it takes are counted apart. Peers begin as none.
    pub fn set_canary(&self, is_canary: bool) {
        self.is_canary.store(is_canary, Ordering::Relaxed);
    }

    /// Whether the peer is a canary.
    #[inline]
    pub fn is_canary(&self) -> bool {
        self.is_canary.load(Ordering::Relaxed)
    }

    /// Returns the counts of the requests to the peer, by operation.
    pub(crate) fn operations(&self) -> &Operations {
        &self.lasting.operations
    }

    /// Returns whether the peer takes requests, and if not, why.
    pub fn phase(&self) -> Phase {
        self.lasting.phase.get()
    }

    /// Sets the phase, and thereby whether the peer takes requests from now on.
    pub fn set_phase(&self, phase: Phase) {
        let refuses = self.lasting.phase.set(phase);
        self.inbox().refuse_requests(self.seat(), refuses);
    }

    /// Sets the phase that the instance reports of itself. Has no effect once the peer was asked to stop, or while
    /// another instance is current.
    pub fn set_phase_if_up(&self, phase: Phase) {
        if self.is_up() && self.is_current() {
            self.set_phase(phase);
        }
    }

    /// Whether the peer runs and was not asked to stop.
    pub(crate) fn is_up(&self) -> bool {
        self.lasting.phase.is_up()
    }

    /// Whether an instance of the peer is starting, or about to follow the present one.
    pub fn is_starting(&self) -> bool {
        self.lasting.phase.is_starting()
    }

    /// Whether the peer's instance has started and serves.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.lasting.phase.is_ready()
    }

    /// Counts an answer of the peer that came too late.
    #[inline]
    pub fn count_late(&self) {
        self.stats().late.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request to the peer that was not delivered, because its payload does not fit its contract.
    #[inline]
    pub fn count_refused(&self) {
        self.stats().refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts messages that found no room. Returns the total before and after.
    pub(crate) fn count_lost(&self, lost: u32) -> (u64, u64) {
        let before = self.stats().shed.fetch_add(lost.into(), Ordering::Relaxed);
        (before, before + u64::from(lost))
    }

    /// Notes the size of a payload, or fails if the peer may neither send nor receive one of this size.
    #[inline]
    pub fn check_size(&self, payload: &Bytes) -> Result<(), Error> {
        let bytes = payload.len() as u64;
        let allowed = self.limits.message_size;
        if bytes > allowed {
            return Err(Error::TooLarge { bytes, allowed });
        }
        self.note_size(payload);
        Ok(())
    }

    /// Notes the size of a payload that the peer sent or received, if it is the largest so far.
    #[inline]
    pub fn note_size(&self, payload: &Bytes) {
        self.note_bytes(payload.len() as u64);
    }

    /// Notes the bytes of what the peer sent or received, if they are the most so far.
    #[inline]
    pub fn note_bytes(&self, bytes: u64) {
        // Rarely true: a load is cheaper than `fetch_max`.
        if bytes > self.stats().largest.load(Ordering::Relaxed) {
            self.stats().largest.fetch_max(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the original if this peer is a copy, which shares its inbox, or else the peer itself.
    pub(crate) fn original(&self) -> PeerId {
        self.lasting.original.unwrap_or(self.id)
    }

    /// Whether other peers serve its inbox, too.
    pub(crate) fn has_copies(&self) -> bool {
        !self.lasting.copies.lock().is_empty()
    }

    /// Returns the copies of this peer, which serve its inbox. A copy has none.
    pub(crate) fn copies(&self) -> Vec<PeerId> {
        self.lasting.copies.lock().clone()
    }

    pub(crate) fn seat(&self) -> Seat {
        self.lasting.seat
    }

    pub(crate) fn shares_inbox(&self) -> bool {
        self.lasting.original.is_some() || !self.lasting.copies.lock().is_empty()
    }

    /// Returns the contracts that the peer owns from the start. A copy owns none, because its original does. A program
    /// owns none until it serves them.
    pub(crate) fn fulfills(&self) -> Vec<ContractName> {
        if self.lasting.original.is_some() || matches!(self.kind, Kind::Session(_)) {
            return Vec::new();
        }
        self.grants.read(|access| access.map(|access| access.fulfills.clone()).unwrap_or_default())
    }

    /// Returns what this peer waits for while no message reaches it, as in a blocking call.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        self.waits.lock().clone()
    }

    pub(crate) fn set_waits(&self, waits: impl IntoIterator<Item = Wait>) {
        // Refills the vector instead of making a new one, because this is called for each blocking call.
        let mut current = self.waits.lock();
        current.clear();
        current.extend(waits);
    }

    /// Whether a chain of waits ends at this peer: it waits for nothing, and no other peer serves its inbox.
    pub(crate) fn ends_all_waits(&self) -> bool {
        self.waits.lock().is_empty() && !self.shares_inbox()
    }
}

/// How much a peer may send and hold.
#[derive(Clone, Copy, Debug)]
pub struct PeerLimits {
    /// Bytes of the largest payload that the peer may send or receive.
    pub message_size: u64,
    /// How much may wait in the peer's inbox.
    pub inbox: InboxLimits,
    /// What happens to a request that finds the inbox full.
    pub when_full: RequestPolicy,
    /// The default deadline of requests to this peer.
    pub request_timeout: Duration,
    /// How many subscriptions the peer may have at once.
    pub subscriptions: u64,
}

impl PeerLimits {
    /// The limits of a peer that receives nothing. Any size is allowed, so that a request fails because the peer is not
    /// there, and not because of its size.
    pub(crate) const NONE: Self = Self {
        message_size: u64::MAX,
        inbox: InboxLimits { messages: 0, bytes: 0 },
        when_full: RequestPolicy::Reject,
        request_timeout: Duration::ZERO,
        subscriptions: 0,
    };
}

/// The counts of a peer so far.
#[derive(Debug, Default)]
pub struct PeerStats {
    /// Messages that the peer received.
    pub received: AtomicU64,
    /// Requests, events and jobs that the peer sent.
    pub sent: AtomicU64,
    /// Answers of the peer that came too late.
    pub late: AtomicU64,
    /// Requests to the peer that were answered with an error before they reached it, because their payloads did not fit
    /// their contracts.
    pub refused: AtomicU64,
    /// Messages for the peer that found no room, and events that were too large for it.
    pub shed: AtomicU64,
    /// Bytes of the largest payload that the peer sent or received.
    pub largest: AtomicU64,
}

impl PeerStats {
    fn count_received(&self) {
        // A plain store is enough, because only one thread reads an inbox.
        self.received.store(self.received.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

#[derive(Clone, Debug)]
pub(crate) enum WaitTarget {
    /// The answer of this peer, or room in its inbox.
    Peer(PeerId),
    /// Room in this queue, which any of its readers can make.
    Queue(Arc<SharedQueue>),
}

/// One thing that a peer waits for. With a `room`, the wait ends when nothing waits for that room any more.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) on: WaitTarget,
    pub(crate) room: Option<Arc<Room>>,
}

impl Wait {
    pub(crate) fn answer(peer: PeerId) -> Self {
        Self { on: WaitTarget::Peer(peer), room: None }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.room.as_ref().is_some_and(|room| !room.is_waiting())
    }
}
