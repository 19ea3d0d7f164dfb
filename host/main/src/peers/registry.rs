//! Every name and session of one Main.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use weir_bus::{Access, Bus, InboxLimits, Peer, PeerLimits};
use weir_config::{Config, PeerConfig, PeerSessionLimits, TokenHash};
use weir_names::{PeerName, harmless};
use weir_openrpc::Descriptions;
use weir_supervisor::lane_of;

use super::{
    PeerCounts, PeerError, PeerStatus, Proof, Session, SessionEnd, SessionId, SessionStatus, session::Traced,
};
use crate::contracts::Provider;

/// Bytes of a stranger's name in the log.
const NAME_SHOWN: usize = 64;

/// Names with their sessions.
#[derive(Debug)]
pub(crate) struct Registry {
    bus: Arc<Bus>,
    /// Time for requests to programs whose name has no `limits.request-timeout`.
    request_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Names stay, because messages carry their numbers.
    names: BTreeMap<PeerName, Name>,
    sessions: BTreeMap<SessionId, Arc<Live>>,
    /// The number of the last session.
    last: u64,
    /// Attempts under names that no peer has.
    unknown: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Name {
    config: PeerConfig,
    source: Source,
    /// Owns what the name may serve until a session serves it.
    peer: Arc<Peer>,
    /// Sessions since Main started.
    so_far: u64,
    /// Wrong proofs of the name.
    denied: u64,
    /// Counts of sessions that have ended.
    ended: PeerCounts,
}

/// Where the grants of a name come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The operator's file.
    Operator,
    /// The embedding program.
    Program,
    /// A part of Main.
    Main,
    /// It was in the operator's file, and no session begins under it.
    Removed,
}

/// A session while it lasts, shared by its holder, its clients and the registry.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: SessionId,
    pub(crate) name: PeerName,
    pub(crate) peer: Arc<Peer>,
    pub(crate) limits: PeerSessionLimits,
    /// A permit for each of its own messages under way.
    pub(crate) room: Arc<Semaphore>,
    /// Tells that its grants have changed.
    pub(crate) regranted: Arc<Notify>,
    /// Tells all that wait for jobs now that its grants have changed.
    pub(crate) may_take_anew: Notify,
    pub(crate) traced: Traced,
    /// The contracts that it describes, or why they were refused.
    pub(super) described: OnceLock<Result<Arc<Descriptions>, weir_bus::Error>>,
    since: SystemTime,
    proof: Proven,
    end: watch::Sender<Option<SessionEnd>>,
}

/// What proved that a program may use its name, or who vouched for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proven {
    Token(TokenHash),
    Uid(u32),
    ByProgram,
    ByMain,
}

impl Registry {
    pub(crate) fn new(bus: Arc<Bus>, request_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { bus, request_timeout, state: Mutex::default() })
    }

    /// Takes over the names of the operator's file. Sessions have the new grants at once. A session whose name, proof
    /// or contract was taken back ends.
    pub(crate) fn configure(&self, config: &Config) {
        let mut state = self.state.lock();
        let is_gone = |name: &PeerName| !config.peers.iter().any(|peer| peer.name == *name);
        for (name, known) in &mut state.names {
            if known.source == Source::Operator && is_gone(name) {
                self.change(known, Source::Removed, PeerConfig::new(name.clone()));
            }
        }
        for peer in &config.peers {
            let name = &peer.name;
            match state.names.get_mut(name) {
                Some(known) if known.source == Source::Main => {
                    tracing::error!(
                        "`{name}` is not a peer of the configuration: `{name}` is a part of Main"
                    );
                }
                Some(known) => self.change(known, Source::Operator, peer.clone()),
                None => match self.add(peer.clone(), Source::Operator) {
                    Ok(new) => drop(state.names.insert(name.clone(), new)),
                    Err(error) => tracing::error!("`{name}` is not a peer: {error}"),
                },
            }
        }
        for session in state.sessions.values().cloned().collect::<Vec<_>>() {
            let Some(name) = state.names.get(&session.name) else { continue };
            if !name.still_admits(&session) || self.bus.serves_beyond_grants(&session.peer) {
                self.finish(&mut state, session.id, SessionEnd::Revoked);
            } else {
                session.regrant();
            }
        }
    }

    /// Begins a session under a known name. Without a proof, the embedding program or a part of Main vouches for the
    /// name.
    pub(super) fn admit(self: Arc<Self>, name: &str, proof: Option<Proof<'_>>) -> Result<Session, PeerError> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(PeerError::Stopping);
        }
        let known = state.names.get_mut(name).filter(|known| known.source != Source::Removed);
        let Some(known) = known else {
            state.unknown += 1;
            let denied = state.unknown;
            if denied.is_power_of_two() {
                tracing::warn!(
                    name = harmless(name, NAME_SHOWN),
                    denied,
                    "no peer has the name of a program"
                );
            }
            return Err(PeerError::Denied);
        };
        let proven = match proof {
            None if known.source == Source::Main => Some(Proven::ByMain),
            None => Some(Proven::ByProgram),
            Some(proof) => known.proven(proof),
        };
        let Some(proven) = proven else {
            known.denied += 1;
            if known.denied.is_power_of_two() {
                let (denied, proof) = (known.denied, proof.map(|proof| proof.to_string()));
                tracing::warn!(peer = name, proof, denied, "wrong proofs of a name");
            }
            return Err(PeerError::Denied);
        };
        let config = known.config.clone();
        let sessions = state.sessions.values().filter(|session| session.name == config.name).count();
        let allowed = config.limits.sessions;
        if u32::try_from(sessions).is_ok_and(|sessions| sessions >= allowed) {
            return Err(PeerError::TooMany { name: config.name, allowed });
        }
        state.last += 1;
        let id = SessionId(state.last);
        let Some(known) = state.names.get_mut(name) else { return Err(PeerError::Denied) };
        known.so_far += 1;
        let live = Arc::new(Live {
            id,
            peer: self.bus.arrive(&known.peer, self.limits_of(&config)),
            name: config.name,
            room: Arc::new(Semaphore::new(usize::try_from(config.limits.in_flight).unwrap_or(usize::MAX))),
            limits: config.limits,
            regranted: Arc::default(),
            may_take_anew: Notify::new(),
            traced: Traced::default(),
            described: OnceLock::new(),
            since: SystemTime::now(),
            proof: proven,
            end: watch::Sender::new(None),
        });
        state.sessions.insert(id, live.clone());
        drop(state);
        tracing::debug!(peer = %live.name, session = %id, "a session begins");
        Ok(Session::new(self.bus.clone(), live, self))
    }

    /// Begins a session under the first of these names that the proof is for.
    pub(super) fn admit_one(
        self: Arc<Self>,
        names: &[PeerName],
        proof: Proof<'_>,
    ) -> Result<Session, PeerError> {
        let mut state = self.state.lock();
        let mut is_for = |name: &&PeerName| {
            let known = state.names.get_mut(*name).filter(|known| known.source != Source::Removed);
            known.is_some_and(|known| known.proven(proof).is_some())
        };
        let name = names.iter().find(&mut is_for).or(names.first());
        drop(state);
        // A wrong proof counts for one name.
        name.map_or(Err(PeerError::Denied), |name| self.admit(name.as_str(), Some(proof)))
    }

    /// Sets the grants of a name that the operator did not configure, and begins a session under it.
    pub(super) fn open_from(
        self: Arc<Self>,
        source: Source,
        config: PeerConfig,
    ) -> Result<Session, PeerError> {
        config.check()?;
        let name = config.name.clone();
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(PeerError::Stopping);
        }
        for contract in &config.fulfills {
            let owner = self.bus.owner_of(contract).filter(|owner| owner.name() != name.as_str());
            if let Some(owner) = owner {
                return Err(PeerError::Owned { contract: contract.clone(), owner: owner.name().to_owned() });
            }
        }
        match state.names.get_mut(&name) {
            Some(known) if known.source == Source::Operator => return Err(PeerError::Configured(name)),
            Some(known) if known.source == Source::Main && source != Source::Main => {
                return Err(PeerError::OfMain(name));
            }
            Some(known) => self.change(known, source, config),
            None => {
                let new = self.add(config, source)?;
                state.names.insert(name.clone(), new);
            }
        }
        for session in state.sessions.values().filter(|session| session.name == name) {
            session.regrant();
        }
        drop(state);
        self.admit(name.as_str(), None)
    }

    pub(super) fn list(&self) -> Vec<PeerStatus> {
        let state = self.state.lock();
        let status = |(name, known): (&PeerName, &Name)| {
            let own = state.sessions.values().filter(|session| session.name == *name);
            let sessions: Vec<_> = own.map(|session| self.status(session)).collect();
            let is_listed = known.source == Source::Operator || !sessions.is_empty();
            let counts = sessions.iter().fold(known.ended, |all, session| sum(all, session.counts));
            is_listed.then(|| PeerStatus {
                name: name.clone(),
                fulfills: known.config.fulfills.clone(),
                sessions,
                sessions_so_far: known.so_far,
                denied: known.denied,
                counts,
            })
        };
        state.names.iter().filter_map(status).collect()
    }

    /// What each session describes, and the contracts that it serves now.
    pub(crate) fn described(&self) -> Vec<Provider> {
        let state = self.state.lock();
        let described = |session: &Arc<Live>| {
            let descriptions = session.described.get()?.as_ref().ok()?.clone();
            Some(Provider { name: session.name.to_string(), serves: session.peer.serves(), descriptions })
        };
        state.sessions.values().filter_map(described).collect()
    }

    /// Ends a session that its holder has left.
    pub(super) fn leave(&self, id: SessionId) {
        self.finish(&mut self.state.lock(), id, SessionEnd::Left);
    }

    /// Ends a session, but one of a part of Main only if `any`. False if no session was ended.
    pub(super) fn end(&self, id: SessionId, any: bool) -> bool {
        let mut state = self.state.lock();
        let is_of_main = state.sessions.get(&id).is_some_and(|session| session.proof == Proven::ByMain);
        (any || !is_of_main) && self.finish(&mut state, id, SessionEnd::Ended)
    }

    /// Ends all sessions, and begins no more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for id in state.sessions.keys().copied().collect::<Vec<_>>() {
            self.finish(&mut state, id, SessionEnd::Stopping);
        }
    }

    /// Ends a session. False if there is none with this number.
    fn finish(&self, state: &mut State, id: SessionId, why: SessionEnd) -> bool {
        let Some(session) = state.sessions.remove(&id) else { return false };
        self.bus.leave(&session.peer);
        session.room.close();
        session.end.send_replace(Some(why));
        if let Some(name) = state.names.get_mut(&session.name) {
            name.ended = sum(name.ended, counts(&session.peer));
        }
        tracing::debug!(peer = %session.name, session = %id, ?why, "a session ends");
        true
    }

    fn add(&self, config: PeerConfig, source: Source) -> Result<Name, weir_bus::Error> {
        let peer = self.bus.add_name(&config.name, access(&config))?;
        Ok(Name { config, source, peer, so_far: 0, denied: 0, ended: PeerCounts::default() })
    }

    /// Gives a known name another configuration, and its grants to the bus.
    fn change(&self, name: &mut Name, source: Source, config: PeerConfig) {
        // Fails only for a new name.
        let _known = self.bus.add_name(&config.name, access(&config));
        (name.source, name.config) = (source, config);
    }

    fn limits_of(&self, config: &PeerConfig) -> PeerLimits {
        let limits = &config.limits;
        PeerLimits {
            message_size: limits.message_size,
            inbox: InboxLimits { messages: limits.inbox_messages, bytes: limits.inbox_bytes },
            when_full: config.when_full,
            request_timeout: limits.request_timeout.unwrap_or(self.request_timeout),
            subscriptions: limits.subscriptions.into(),
        }
    }

    fn status(&self, session: &Live) -> SessionStatus {
        let (waiting, waiting_bytes) = session.peer.inbox().depth();
        let under_way = usize::try_from(session.limits.in_flight).unwrap_or(usize::MAX);
        let under_way = under_way.saturating_sub(session.room.available_permits());
        SessionStatus {
            id: session.id,
            name: session.name.clone(),
            since: session.since,
            proof: match session.proof {
                Proven::Token(_) => "token",
                Proven::Uid(_) => "uid",
                Proven::ByProgram => "program",
                Proven::ByMain => "main",
            }
            .into(),
            in_flight: u32::try_from(under_way).unwrap_or(u32::MAX),
            waiting,
            waiting_bytes,
            subscriptions: self.bus.subscriptions_of(&session.peer).len() as u64,
            serves: session.peer.serves(),
            counts: counts(&session.peer),
        }
    }
}

impl Name {
    /// What proves the name, if the proof is right.
    fn proven(&self, proof: Proof<'_>) -> Option<Proven> {
        match proof {
            Proof::Token(token) => {
                let hash = self.config.tokens.iter().find(|hash| hash.matches(token))?;
                Some(Proven::Token(*hash))
            }
            Proof::Uid(uid) => (self.config.uid == Some(uid)).then_some(Proven::Uid(uid)),
        }
    }

    /// Whether the session could begin again: the name is there, and the proof is still right.
    fn still_admits(&self, session: &Live) -> bool {
        self.source != Source::Removed
            && match session.proof {
                Proven::Token(hash) => self.config.tokens.contains(&hash),
                Proven::Uid(uid) => self.config.uid == Some(uid),
                Proven::ByProgram | Proven::ByMain => true,
            }
    }
}

impl Live {
    /// Tells that its grants have changed.
    fn regrant(&self) {
        self.regranted.notify_one();
        self.may_take_anew.notify_waiters();
    }

    /// Waits until the session ends.
    pub(crate) async fn ended(&self) -> SessionEnd {
        let mut end = self.end.subscribe();
        let end = end.wait_for(Option::is_some).await;
        end.ok().and_then(|end| *end).unwrap_or(SessionEnd::Left)
    }
}

fn sum(one: PeerCounts, other: PeerCounts) -> PeerCounts {
    PeerCounts {
        sent: one.sent + other.sent,
        received: one.received + other.received,
        shed: one.shed + other.shed,
        late: one.late + other.late,
    }
}

fn counts(peer: &Peer) -> PeerCounts {
    let stats = peer.stats();
    PeerCounts {
        sent: stats.sent.load(Ordering::Relaxed),
        received: stats.received.load(Ordering::Relaxed),
        shed: stats.shed.load(Ordering::Relaxed),
        late: stats.late.load(Ordering::Relaxed),
    }
}

/// The grants of a name, as the bus takes them.
fn access(config: &PeerConfig) -> Access {
    Access {
        fulfills: config.fulfills.clone(),
        calls: config.wants.clone(),
        publishes: config.publishes.clone(),
        subscribes: config.subscribes.iter().map(lane_of).collect(),
        puts: config.puts.clone(),
        takes: config.takes.clone(),
        is_concurrent: false,
    }
}
