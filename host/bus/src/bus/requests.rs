//! Requests: from the look-up of an operation to its one answer.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use weir_metrics::{moment, nanoseconds};
use weir_names::{ContractName, Error, OperationName, RequestPolicy};

use super::{Bus, deadlocks::WaitGuard};
use crate::{
    id::{InstanceId, MessageId, OperationId, parsed},
    inbox::requests::{Refusal, Refused},
    message::{Carried, Request, Responder, ValueTypes},
    peer::{Peer, Phase},
    room::Room,
    trace::Parent,
    waiter::{ReplyTo, Route, Slot, Term, Waiter},
};

/// An operation that a caller has looked up, and its receiver.
#[derive(Clone, Debug)]
pub struct Target {
    route: Arc<Route>,
    /// Whether the caller named the receiver, which need not be the owner.
    is_named: bool,
    /// Whether the look-up needed a grant of the caller: the grant is checked again when grants have changed.
    by_grant: bool,
    /// The operation's number, and the receiver's instance for which it holds.
    number: u32,
    instance: InstanceId,
    /// The version of the owners at the look-up, or before. If it has changed, the receiver is looked up again.
    owners: u64,
}

impl Target {
    /// Bytes of the largest request that its receiver takes.
    pub fn max_request(&self) -> u64 {
        self.route.receiver.limits().message_size
    }

    /// Bytes that values may take in place of a payload. They take more than payloads do, and an inbox is to hold some.
    pub fn max_values(&self) -> u64 {
        let limits = self.route.receiver.limits();
        limits.message_size.min(limits.inbox.bytes / 8)
    }

    /// The name of its receiver.
    pub fn receiver(&self) -> &str {
        self.route.receiver.name()
    }

    /// Whether the operation was looked up with these names.
    pub fn is(&self, contract: &str, operation: &str, provider: Option<&str>) -> bool {
        let Route { operation: own, receiver, .. } = &*self.route;
        own.contract.as_str() == contract
            && own.name.as_str() == operation
            && match provider {
                None => !self.is_named,
                Some(name) => self.is_named && receiver.name() == name,
            }
    }
}

/// A caller's wait for one answer. Dropping it gives up the request, or after [`unanswered`](Self::unanswered) only
/// the answer.
#[derive(Debug)]
#[must_use = "the answer is lost unless awaited"]
pub struct PendingCall {
    waiter: Arc<Waiter>,
    is_over: bool,
    /// Whether dropping this gives up only the answer: a request in the receiver's inbox is still carried out.
    is_unanswered: bool,
    /// The room for which the request waits or waited, if the inbox was full.
    room: Option<Arc<Room>>,
    /// Marks the caller as blocked, if nothing else reaches it while it waits.
    _waits: Option<WaitGuard>,
}

/// A request that was sent. Its deadline counts once the bus [watches](Bus::watch) it. Dropping it gives up the
/// request.
#[derive(Debug)]
#[must_use = "nothing ends the wait unless the bus watches it"]
pub struct SentCall(PendingCall);

/// A request that was sent, and perhaps waits for room in the receiver's inbox.
#[derive(Debug)]
#[must_use = "it does not wait for room unless awaited"]
pub struct Sending(Parked);

/// The room that a request waits for, if any, and the guard of its sender, if the sender is blocked meanwhile.
type Parked = Option<(Arc<Room>, Option<WaitGuard>)>;

impl Sending {
    /// Waits until the request is in the inbox, or has ended without getting there.
    pub async fn sent(self) {
        if let Some((room, _waits)) = &self.0 {
            room.settled().await;
        }
    }
}

impl SentCall {
    /// Makes the end of the wait without an answer, by a drop or at the deadline, also end the instance that has the
    /// request in hand. Other requests that it has in hand fail with it.
    pub fn set_killing(&self) {
        self.0.waiter.set_killing();
    }
}

impl PendingCall {
    /// The number of the request.
    pub fn id(&self) -> MessageId {
        self.waiter.id()
    }

    /// Makes a later drop give up only the answer. A request that still waits for room is given up all the same.
    pub fn unanswered(mut self) -> Self {
        self.is_unanswered = true;
        self
    }

    /// Gives up the request, and ends the instance that has it in hand, also if the wait has ended at its deadline. Other
    /// requests that it has in hand fail with it.
    pub fn kill(mut self) {
        self.is_unanswered = false;
        self.waiter.kill_late();
    }

    /// Waits for the answer, at most until the deadline.
    pub async fn answer(mut self) -> Result<Bytes, Error> {
        self.outcome().await
    }

    /// [`answer`](Self::answer), which may be waited for again until it is there. There is no second one.
    pub async fn outcome(&mut self) -> Result<Bytes, Error> {
        let slot = self.waiter.slot().filter(|_| !self.is_over);
        let Some(slot) = slot else { return Err(Error::Invalid("the request has had its answer".into())) };
        let outcome = slot.outcome().await;
        self.is_over = true;
        outcome
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Only waiting callers bound how many requests wait for room: without its caller, such a request is cancelled.
        let is_parked = self.room.as_ref().is_some_and(|room| room.is_waiting());
        if !self.is_unanswered || is_parked {
            self.waiter.cancel();
        }
        if let Some(slot) = self.waiter.slot() {
            slot.close();
        }
    }
}

impl Bus {
    /// Looks up the receiver of `operation` of `contract`, if `caller` may call it. Fails if the receiver is not the
    /// peer with the name `provider`, where one is given.
    pub fn open(
        &self,
        caller: &Peer,
        contract: &str,
        operation: &str,
        provider: Option<&str>,
    ) -> Result<Target, Error> {
        let contract: ContractName = parsed(contract)?;
        let name: OperationName = parsed(operation)?;
        // Read before the grants: a later change of grants raises the version, and `follow` then checks them again.
        let owners = self.owners.version();
        caller.may_call(&contract, &name)?;
        Ok(Target { owners, ..self.open_granted(contract, name, provider, true)? })
    }

    /// Looks up the receiver of an operation, without a check of grants. `by_grant`: whether requests check the
    /// caller's grant again after grants have changed.
    pub(super) fn open_granted(
        &self,
        contract: ContractName,
        name: OperationName,
        provider: Option<&str>,
        by_grant: bool,
    ) -> Result<Target, Error> {
        let (receiver, owners) = self.owners.find(&contract, provider)?;
        let operation = Arc::new(OperationId { contract, name });
        let mut target = Target {
            route: Arc::new(Route::new(operation, receiver)),
            is_named: provider.is_some(),
            by_grant,
            number: 0,
            instance: InstanceId::NOBODY,
            owners,
        };
        let server = self.server(&target.route.receiver);
        if server.is_ready() {
            refresh(&target.route, &server, &mut target.instance, &mut target.number)?;
        }
        Ok(target)
    }

    /// The types of the values that the receiver takes for the operation in place of payloads. None if it takes payloads
    /// alone, if nobody is there, or if those that serve its inbox do not take the same.
    pub fn value_types(&self, caller: &Peer, target: &mut Target) -> Option<ValueTypes> {
        self.follow(caller, target).ok()?;
        let receiver = &target.route.receiver;
        if receiver.is_ready() && !receiver.has_copies() {
            refresh(&target.route, receiver, &mut target.instance, &mut target.number).ok()?;
            return receiver.value_types(target.number);
        }
        let all = self.servers(receiver).into_iter().filter(|server| server.is_ready());
        let mut all = all.map(|server| server.value_types(server.find(&target.route.operation)?.1));
        let types = all.next()??;
        all.all(|other| other.is_some_and(|other| Arc::ptr_eq(&other, &types))).then_some(types)
    }

    /// Sends a request, and returns the wait for its answer. Values are sent as their payload if the receiver does not take
    /// values of their types. Otherwise, the caller sees to it that they take no more bytes than
    /// [`max_values`](Target::max_values).
    ///
    /// With `blocking`, nothing else reaches the caller meanwhile, so a circle of such waits is refused.
    pub fn call(
        &self,
        caller: &Arc<Peer>,
        target: &mut Target,
        carried: Carried,
        term: Term,
        blocking: bool,
    ) -> Result<SentCall, Error> {
        self.follow(caller, target)?;
        let waits = match blocking {
            true => Some(self.wait_for_answer(caller, &target.route.receiver)?),
            false => None,
        };
        let carried = match carried {
            Carried::Values(values) => {
                let types = self.value_types(caller, target);
                match types.is_some_and(|types| Arc::ptr_eq(&types, &values.types())) {
                    true => Carried::Values(values),
                    false => Carried::Payload(values.payload(caller.limits().message_size)?),
                }
            }
            payload => payload,
        };
        // The guard of the wait for the answer covers the wait for room, too.
        let (waiter, parked) = self.submit(caller, target, carried, term, ReplyTo::Slot(Slot::default()))?;
        let room = parked.map(|(room, _)| room);
        Ok(SentCall(PendingCall { waiter, is_over: false, is_unanswered: false, room, _waits: waits }))
    }

    /// Makes the wait end at its deadline. A request that was answered already needs no timer.
    pub fn watch(&self, SentCall(pending): SentCall) -> PendingCall {
        if !pending.waiter.is_done() {
            self.deadlines.register(&pending.waiter);
        }
        pending
    }

    /// Sends a request to another peer. The answer comes through the caller's inbox, and so does the error if the
    /// request finds no room by the deadline.
    pub fn send(
        &self,
        caller: &Arc<Peer>,
        target: &mut Target,
        payload: Bytes,
        term: Term,
    ) -> Result<(Arc<Waiter>, Sending), Error> {
        self.follow(caller, target)?;
        if target.route.receiver.id() == caller.id() {
            return Err(Error::Invalid(format!("`{}` sends a request to itself", caller.name())));
        }
        let instance = caller.instance();
        caller.inbox().expect_reply(instance);
        let reply_to = ReplyTo::Lane { sender: caller.clone(), instance };
        let (waiter, room) = self
            .submit(caller, target, payload.into(), term, reply_to)
            .inspect_err(|_| caller.inbox().expect_no_reply(instance))?;
        Ok((waiter, Sending(room)))
    }

    /// The term of a request sent now. It ends after `timeout`, or else after the receiver's default timeout, but no
    /// later than the parent's deadline, nor after 7 days.
    pub fn term(&self, target: &Target, timeout: Option<Duration>, parent: Parent) -> Term {
        let sent = Self::now();
        let timeout = timeout.unwrap_or_else(|| self.default_timeout(target));
        let (deadline, allowed) = deadline(sent, timeout, parent.deadline);
        let span = self.traces.open(parent.trace, sent);
        Term { sent: moment(sent.into_std()), allowed, deadline, span }
    }

    /// The default timeout of the present receiver, which may be another peer than at the look-up. Zero if there is
    /// none any more: the request is then refused.
    fn default_timeout(&self, target: &Target) -> Duration {
        let Route { operation, receiver, .. } = &*target.route;
        if target.owners == self.owners.version() {
            return receiver.limits().request_timeout;
        }
        let provider = target.is_named.then(|| receiver.name());
        let now = self.owners.find(&operation.contract, provider);
        now.map_or(Duration::ZERO, |(receiver, _)| receiver.limits().request_timeout)
    }

    /// When a wait for room ends: after `timeout`, or else Main's default, but not after `parent`, nor after 7 days.
    pub(crate) fn deadline_within(&self, timeout: Option<Duration>, parent: Option<Instant>) -> Instant {
        let timeout = timeout.unwrap_or_else(|| self.main().limits().request_timeout);
        deadline(Self::now(), timeout, parent).0
    }

    /// Checks the grant and finds the receiver again, if owners or grants have changed since the look-up. Fails for a
    /// program that has left.
    fn follow(&self, caller: &Peer, target: &mut Target) -> Result<(), Error> {
        if caller.has_left() {
            return Err(Error::PeerGone);
        }
        // Read first: owners or grants that change later raise the version, so the next request looks them up again.
        let owners = self.owners.version();
        if target.owners != owners {
            if target.by_grant {
                caller.may_call(&target.route.operation.contract, &target.route.operation.name)?;
            }
            let provider = target.is_named.then(|| target.route.receiver.name());
            let operation = target.route.operation.clone();
            let (receiver, _) = self.owners.find(&operation.contract, provider)?;
            // Operations have other numbers at another peer: `submit` finds the number again.
            target.instance = InstanceId::NOBODY;
            (target.route, target.owners) = (Arc::new(Route::new(operation, receiver)), owners);
        }
        Ok(())
    }

    /// Puts a request into the receiver's inbox. If that is full, the request waits for room under the policy `block`,
    /// and fails otherwise.
    fn submit(
        &self,
        caller: &Arc<Peer>,
        target: &mut Target,
        carried: Carried,
        term: Term,
        reply_to: ReplyTo,
    ) -> Result<(Arc<Waiter>, Parked), Error> {
        let (payload, values) = match carried {
            Carried::Payload(payload) => (payload, None),
            Carried::Values(values) => (Bytes::new(), Some(values)),
        };
        caller.check_size(&payload)?;
        // Only a request of `send` needs a guard and a deadline here: `call` and `watch` make their own.
        let is_to_wait = matches!(reply_to, ReplyTo::Lane { .. });
        let Target { route, number, instance, .. } = target;
        let receiver = &route.receiver;
        receiver.check_size(&payload)?;
        if let Some(values) = &values {
            caller.note_bytes(values.bytes());
            receiver.note_bytes(values.bytes());
        }
        let other;
        let server = if receiver.is_ready() {
            receiver
        } else {
            other = self.server(receiver);
            &other
        };
        match server.is_ready() {
            true => refresh(route, server, instance, number)?,
            false => check_phase(server)?,
        }
        let waiter = Arc::new(Waiter::new(
            self.next_message_id(),
            caller.sender(),
            term,
            route.clone(),
            caller.limits().message_size,
            reply_to,
        ));
        if is_to_wait {
            self.deadlines.register(&waiter);
        }
        let request = Request {
            number: *number,
            instance: *instance,
            payload,
            values,
            responder: Responder::new(waiter.clone()),
        };
        let pushed = match receiver.inbox().push_request(request) {
            Err(Refused { request, because: Refusal::Full })
                if receiver.limits().when_full == RequestPolicy::Block =>
            {
                self.park(caller, receiver, request, is_to_wait)
            }
            Err(refused) => Err((refused.request, self.refusal(receiver, refused.because))),
            Ok(()) => Ok(None),
        };
        match pushed {
            Ok(room) => {
                caller.stats().sent.fetch_add(1, Ordering::Relaxed);
                Ok((waiter, room))
            }
            Err((request, error)) => {
                waiter.withdraw(&error);
                drop(request);
                Err(error)
            }
        }
    }

    /// Lets a request wait for room, or lets it in if there is room by now. Fails if the wait would never end.
    fn park(
        &self,
        caller: &Arc<Peer>,
        receiver: &Arc<Peer>,
        request: Request,
        is_to_wait: bool,
    ) -> Result<Parked, (Request, Error)> {
        let wait = || self.wait_for_answer(caller, receiver);
        let waits = match (is_to_wait && caller.stands_still()).then(wait).transpose() {
            Ok(waits) => waits,
            Err(circle) => return Err((request, circle)),
        };
        match receiver.inbox().park_request(request) {
            Ok(room) => Ok(room.map(|room| (room, waits))),
            Err(refused) => Err((refused.request, self.refusal(receiver, refused.because))),
        }
    }

    /// A peer that serves the receiver's inbox: one that is ready, else one that is starting, else the receiver itself.
    pub(super) fn server(&self, receiver: &Arc<Peer>) -> Arc<Peer> {
        if receiver.is_ready() {
            return receiver.clone();
        }
        let servers = self.servers(receiver);
        let found = servers.iter().find(|peer| peer.is_ready());
        found.or_else(|| servers.iter().find(|peer| peer.is_starting())).unwrap_or(receiver).clone()
    }

    /// Returns the error for a refused request. A request that found no room counts as lost.
    fn refusal(&self, receiver: &Peer, because: Refusal) -> Error {
        match because {
            Refusal::Down => not_running(receiver),
            Refusal::Full => {
                self.count_lost(receiver, 1);
                Error::Overloaded(receiver.name().to_owned())
            }
        }
    }
}

/// Fails unless requests to this peer wait in its inbox until an instance serves.
fn check_phase(peer: &Peer) -> Result<(), Error> {
    match peer.phase() {
        Phase::Ready | Phase::Starting | Phase::Replacing => Ok(()),
        Phase::Interrupted(reason) => {
            Err(Error::NotReady(format!("`{}` is interrupted: {reason}", peer.name())))
        }
        Phase::Draining => Err(Error::NoProvider(format!("`{}` is stopping", peer.name()))),
        Phase::Down => Err(not_running(peer)),
    }
}

fn not_running(peer: &Peer) -> Error {
    let what = if peer.is_outside() { "connected" } else { "running" };
    Error::NoProvider(format!("`{}` is not {what}", peer.name()))
}

/// Finds the operation's number again if the known number is of another instance. Fails if the present instance does
/// not serve the operation.
fn refresh(route: &Route, server: &Peer, instance: &mut InstanceId, number: &mut u32) -> Result<(), Error> {
    if *instance != server.instance() {
        let operation = &route.operation;
        (*instance, *number) = server.find(operation).ok_or_else(|| server.no_operation(operation))?;
        route.stats.get_or_init(|| route.receiver.operations().of(operation));
    }
    Ok(())
}

/// When a wait ends, and the nanoseconds until then. The subtraction is done only if the parent ends sooner.
fn deadline(now: Instant, timeout: Duration, parent: Option<Instant>) -> (Instant, u64) {
    let timeout = timeout.min(MAX_TIMEOUT);
    let deadline = now + timeout;
    match parent.filter(|parent| *parent < deadline) {
        Some(parent) => (parent, nanoseconds(parent.saturating_duration_since(now))),
        None => (deadline, nanoseconds(timeout)),
    }
}

/// The longest wait for an answer or for room: enough for any purpose, and safe to add to any instant.
const MAX_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);
