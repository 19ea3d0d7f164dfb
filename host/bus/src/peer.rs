//! A peer: it sends and receives, and has an inbox, grants and limits.
//!
//! An extension keeps its inbox, phase and counts for as long as the bus lives. When grants or limits change, a
//! [`Peer::renewed`] one with the same number and inbox takes its place.
//!
//! Knows nothing of other peers, or of routes to them.

mod access;
mod grants;
mod instance;
mod limits;
mod phase;
mod served;
mod stats;
mod wait;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use parking_lot::Mutex;
use weir_names::{ContractName, Error, PeerName};

pub(crate) use self::wait::{Wait, WaitTarget};
pub use self::{access::Access, limits::PeerLimits, phase::Phase, stats::PeerStats};
use self::{grants::Grants, phase::PhaseCell};
use crate::{
    id::{OperationId, PeerId, ReaderId},
    inbox::{Inbox, Seat},
    operations::Operations,
};

/// A sender and receiver, whatever happens to its instances.
#[derive(Debug)]
pub struct Peer {
    id: PeerId,
    name: Arc<str>,
    limits: PeerLimits,
    grants: Grants,
    kind: Kind,
    lasting: Arc<Lasting>,
    served: Mutex<Vec<Arc<OperationId>>>,
    /// Its instance, as a reader of the inbox.
    reader: AtomicU64,
    waits: Mutex<Vec<Wait>>,
}

/// What kind of peer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The embedding program, whose tasks wait independently.
    Main,
    Extension,
    /// A name of programs outside Main: it sends and receives nothing itself.
    Name,
    /// One program under the name with this number.
    Session(PeerId),
}

/// What a new peer has from another.
#[derive(Clone, Copy, Debug)]
enum Origin<'a> {
    Own,
    /// The name of a program.
    Name(&'a Peer),
    /// The peer whose inbox it serves.
    Copied(&'a Peer),
}

/// What stays when grants and limits change.
#[derive(Debug)]
struct Lasting {
    inbox: Arc<Inbox>,
    seat: Seat,
    /// For a copy, the peer that owns the inbox.
    original: Option<PeerId>,
    /// Peers that serve this one's inbox, too.
    copies: Mutex<Vec<PeerId>>,
    phase: PhaseCell,
    stats: PeerStats,
    /// A copy shares them with the original, and a program with its name.
    operations: Arc<Operations>,
}

impl Peer {
    pub(crate) fn main(limits: PeerLimits) -> Self {
        let inbox = Arc::new(Inbox::new(limits.inbox));
        let own = (PeerId::MAIN, weir_names::MAIN.into());
        Self::at(own, limits, Grants::All, Kind::Main, (inbox, Seat::FIRST), Origin::Own)
    }

    pub(crate) fn new(id: PeerId, name: Arc<str>, limits: PeerLimits, access: Access) -> Self {
        let inbox = Arc::new(Inbox::new(limits.inbox));
        let grants = Grants::Fixed(access);
        Self::at((id, name), limits, grants, Kind::Extension, (inbox, Seat::FIRST), Origin::Own)
    }

    /// A name under which programs outside Main may run.
    pub(crate) fn name_of_programs(id: PeerId, name: &PeerName, access: Access) -> Self {
        let inbox = Arc::new(Inbox::new(PeerLimits::NONE.inbox));
        let own = (id, name.shared());
        let grants = Grants::renewable(access);
        Self::at(own, PeerLimits::NONE, grants, Kind::Name, (inbox, Seat::FIRST), Origin::Own)
    }

    /// A program under this name. It has the grants of the name, also when they change.
    pub(crate) fn session(&self, id: PeerId, limits: PeerLimits) -> Self {
        let inbox = Arc::new(Inbox::new(limits.inbox));
        let (own, kind) = ((id, self.name.clone()), Kind::Session(self.id));
        Self::at(own, limits, self.grants.clone(), kind, (inbox, Seat::FIRST), Origin::Name(self))
    }

    pub(crate) fn copy(
        id: PeerId,
        name: Arc<str>,
        limits: PeerLimits,
        access: Access,
        original: &Peer,
    ) -> Self {
        let inbox = original.inbox().clone();
        let seat = inbox.add_seat();
        original.lasting.copies.lock().push(id);
        let grants = Grants::Fixed(access);
        Self::at((id, name), limits, grants, Kind::Extension, (inbox, seat), Origin::Copied(original))
    }

    fn at(
        (id, name): (PeerId, Arc<str>),
        limits: PeerLimits,
        grants: Grants,
        kind: Kind,
        (inbox, seat): (Arc<Inbox>, Seat),
        origin: Origin<'_>,
    ) -> Self {
        let lasting = Lasting {
            inbox,
            seat,
            original: if let Origin::Copied(original) = origin { Some(original.id) } else { None },
            copies: Mutex::default(),
            phase: PhaseCell::default(),
            stats: PeerStats::default(),
            operations: match origin {
                Origin::Own => Arc::default(),
                Origin::Name(peer) | Origin::Copied(peer) => peer.lasting.operations.clone(),
            },
        };
        Self::with((id, name), limits, grants, kind, Arc::new(lasting))
    }

    fn with(
        (id, name): (PeerId, Arc<str>),
        limits: PeerLimits,
        grants: Grants,
        kind: Kind,
        lasting: Arc<Lasting>,
    ) -> Self {
        Self {
            id,
            name,
            limits,
            grants,
            kind,
            lasting,
            served: Mutex::default(),
            reader: AtomicU64::new(ReaderId::FIRST.0),
            waits: Mutex::default(),
        }
    }

    /// The same peer with other limits and grants, without an instance. Others find it only after
    /// [`Bus::replace`](super::Bus::replace).
    pub fn renewed(&self, limits: PeerLimits, access: Access) -> Arc<Self> {
        let (own, lasting) = ((self.id, self.name.clone()), self.lasting.clone());
        Arc::new(Self::with(own, limits, Grants::Fixed(access), self.kind, lasting))
    }

    /// Its number on this bus.
    #[inline]
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// The number that its messages carry as their sender: its own, or that of the name under which a program runs.
    #[inline]
    pub fn sender(&self) -> PeerId {
        match self.kind {
            Kind::Session(name) => name,
            _ => self.id,
        }
    }

    /// Whether nothing else reaches it while it waits. Tasks of a program wait independently.
    pub(crate) fn stands_still(&self) -> bool {
        self.kind == Kind::Extension
    }

    /// Whether it is a program outside Main that has left.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self.kind, Kind::Session(_)) && self.phase() == Phase::Down
    }

    /// Whether programs outside Main run under its name.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.kind, Kind::Name | Kind::Session(_))
    }

    /// Its id as operators write it; `main` for Main.
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// [`name`](Self::name), shared.
    pub fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// How much it may send and hold.
    #[inline]
    pub fn limits(&self) -> &PeerLimits {
        &self.limits
    }

    /// Where its messages wait; copies share one.
    #[inline]
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.lasting.inbox
    }

    /// Its counts so far.
    #[inline]
    pub fn stats(&self) -> &PeerStats {
        &self.lasting.stats
    }

    /// The counts of what is asked of it.
    pub(crate) fn operations(&self) -> &Operations {
        &self.lasting.operations
    }

    /// Whether it takes requests, and if not, why.
    pub fn phase(&self) -> Phase {
        self.lasting.phase.get()
    }

    /// From now on it takes requests, or refuses them.
    pub fn set_phase(&self, phase: Phase) {
        let refuses = self.lasting.phase.set(phase);
        self.inbox().refuse_requests(self.seat(), refuses);
    }

    /// Sets what the instance says of itself. That undoes no stop, and changes nothing while another instance is
    /// current.
    pub fn set_phase_if_up(&self, phase: Phase) {
        if self.is_up() && self.is_current() {
            self.set_phase(phase);
        }
    }

    /// Whether it runs and was not asked to stop.
    pub(crate) fn is_up(&self) -> bool {
        self.lasting.phase.is_up()
    }

    /// Whether an instance is on its way.
    pub fn is_starting(&self) -> bool {
        self.lasting.phase.is_starting()
    }

    /// Whether its instance serves.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.lasting.phase.is_ready()
    }

    /// Counts an answer that came too late.
    #[inline]
    pub fn count_late(&self) {
        self.stats().late.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that did not fit and is not delivered.
    #[inline]
    pub fn count_refused(&self) {
        self.stats().refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts messages that found no room; returns the counts before and after.
    pub(crate) fn count_lost(&self, lost: u32) -> (u64, u64) {
        let before = self.stats().shed.fetch_add(lost.into(), Ordering::Relaxed);
        (before, before + u64::from(lost))
    }

    /// Fails if the peer may neither send nor receive a payload of this size.
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

    /// Counts a payload that the peer sent or received.
    #[inline]
    pub fn note_size(&self, payload: &Bytes) {
        let bytes = payload.len() as u64;
        // Nearly always a load is enough.
        if bytes > self.stats().largest.load(Ordering::Relaxed) {
            self.stats().largest.fetch_max(bytes, Ordering::Relaxed);
        }
    }

    /// The peer that owns the inbox it serves.
    pub(crate) fn owner(&self) -> PeerId {
        self.lasting.original.unwrap_or(self.id)
    }

    /// The copies that serve its inbox; none for a copy.
    pub(crate) fn copies(&self) -> Vec<PeerId> {
        self.lasting.copies.lock().clone()
    }

    pub(crate) fn seat(&self) -> Seat {
        self.lasting.seat
    }

    pub(crate) fn shares_inbox(&self) -> bool {
        self.lasting.original.is_some() || !self.lasting.copies.lock().is_empty()
    }

    /// Contracts that it owns from the start. What a copy fulfils belongs to the owner of its inbox, and a program owns
    /// what it serves.
    pub(crate) fn fulfills(&self) -> Vec<ContractName> {
        if self.lasting.original.is_some() || matches!(self.kind, Kind::Session(_)) {
            return Vec::new();
        }
        self.grants.read(|access| access.map(|access| access.fulfills.clone()).unwrap_or_default())
    }

    /// What this peer waits for with everything else stopped, as in a blocking call.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        self.waits.lock().clone()
    }

    pub(crate) fn set_waits(&self, waits: impl IntoIterator<Item = Wait>) {
        // In place: most peers wait for one thing at a time, again and again.
        let mut current = self.waits.lock();
        current.clear();
        current.extend(waits);
    }

    /// Whether a chain of waits ends here: it waits for nothing, and no other peer serves its inbox.
    pub(crate) fn ends_all_waits(&self) -> bool {
        self.waits.lock().is_empty() && !self.shares_inbox()
    }
}
