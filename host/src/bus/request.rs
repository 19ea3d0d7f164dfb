//! Requests: from the caller's number for an operation to the one answer.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    Answer, Bus, Error, OperationId, Peer, PeerId, Phase, Request, Waiter,
    inbox::{ReaderId, Refusal, Refused},
    peer::parsed,
    pending::{ReplyTo, Slot},
};
use crate::names::{ContractName, OperationName};

/// An operation that a caller has looked up, and who answers it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    operation: Arc<OperationId>,
    receiver: Arc<Peer>,
    /// Whether the caller named the receiver, who need not be the owner.
    is_named: bool,
    /// The operation's number, and the receiver's instance for which it holds.
    number: u32,
    reader: ReaderId,
    /// The routes by which the receiver was found.
    routes: u64,
}

impl Target {
    pub(crate) fn is(&self, contract: &str, operation: &str, provider: Option<&str>) -> bool {
        self.operation.contract.as_str() == contract
            && self.operation.name.as_str() == operation
            && match provider {
                None => !self.is_named,
                Some(name) => self.is_named && self.receiver.name() == name,
            }
    }
}

/// One caller that waits for one answer. Dropped, it gives up.
#[derive(Debug)]
#[must_use = "the answer is lost unless awaited"]
pub(crate) struct PendingCall {
    waiter: Arc<Waiter>,
    /// The caller, where nothing else reaches it while it waits.
    blocked: Option<Arc<Peer>>,
}

impl PendingCall {
    pub(crate) async fn answer(self) -> Result<Bytes, Error> {
        match self.waiter.slot() {
            Some(slot) => self.waiter.outcome(slot).await,
            None => Err(Error::PeerGone),
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.waiter.cancel();
        if let Some(caller) = &self.blocked {
            caller.set_waits_for(None);
        }
    }
}

impl Bus {
    /// Looks up who answers `operation` of `contract`, if `caller` may call it.
    pub(crate) fn open(
        &self,
        caller: &Peer,
        contract: &str,
        operation: &str,
        provider: Option<&str>,
    ) -> Result<Target, Error> {
        let contract: ContractName = parsed(contract)?;
        let name: OperationName = parsed(operation)?;
        caller.may_call(&contract)?;
        let (receiver, routes) = self.route(&contract, provider)?;
        let mut target = Target {
            operation: Arc::new(OperationId { contract, name }),
            receiver,
            is_named: provider.is_some(),
            number: 0,
            reader: ReaderId::NOBODY,
            routes,
        };
        if target.receiver.phase() == Phase::Ready {
            target.refresh()?;
        }
        Ok(target)
    }

    /// Sends a request whose answer somebody waits for.
    ///
    /// With `blocking`, nothing else reaches the caller meanwhile: a circle of such waits is refused.
    pub(crate) fn call(
        &self,
        caller: &Arc<Peer>,
        target: &mut Target,
        payload: Bytes,
        deadline: Instant,
        blocking: bool,
    ) -> Result<PendingCall, Error> {
        self.follow(target)?;
        if blocking {
            self.refuse_circle(caller, &target.receiver)?;
        }
        let waiter = self.submit(caller, target, payload, deadline, ReplyTo::Slot(Slot::default()))?;
        let blocked = blocking.then(|| {
            caller.set_waits_for(Some(target.receiver.id()));
            caller.clone()
        });
        Ok(PendingCall { waiter, blocked })
    }

    /// Sends a request whose answer comes through the caller's inbox.
    pub(crate) fn send(
        &self,
        caller: &Arc<Peer>,
        target: &mut Target,
        payload: Bytes,
        deadline: Instant,
    ) -> Result<Arc<Waiter>, Error> {
        self.follow(target)?;
        if target.receiver.id() == caller.id() {
            return Err(Error::Invalid(format!("`{}` sends a request to itself", caller.name())));
        }
        let reader = caller.reader();
        caller.inbox().expect_reply(reader);
        let reply_to = ReplyTo::Lane { sender: caller.clone(), reader };
        self.submit(caller, target, payload, deadline, reply_to)
            .inspect_err(|_| caller.inbox().expect_no_reply(reader))
    }

    /// When a request ends: after `timeout`, else the receiver's default, and never after `parent`.
    pub(crate) fn deadline(
        &self,
        target: &Target,
        timeout: Option<Duration>,
        parent: Option<Instant>,
    ) -> Instant {
        let timeout = timeout.unwrap_or(target.receiver.limits().request_timeout).min(MAX_TIMEOUT);
        let deadline = Self::now() + timeout;
        parent.map_or(deadline, |parent| parent.min(deadline))
    }

    /// Finds the receiver again if the routes have changed since.
    fn follow(&self, target: &mut Target) -> Result<(), Error> {
        if target.routes != self.routes_version() {
            let provider = target.is_named.then(|| target.receiver.name());
            let (receiver, routes) = self.route(&target.operation.contract, provider)?;
            // Numbers are each peer's own.
            target.reader = ReaderId::NOBODY;
            (target.receiver, target.routes) = (receiver, routes);
        }
        Ok(())
    }

    fn submit(
        &self,
        caller: &Arc<Peer>,
        target: &mut Target,
        payload: Bytes,
        deadline: Instant,
        reply_to: ReplyTo,
    ) -> Result<Arc<Waiter>, Error> {
        caller.check_size(&payload)?;
        let receiver = target.receiver.clone();
        receiver.check_size(&payload)?;
        match receiver.is_ready() {
            true => target.refresh()?,
            false => receiver.takes_requests()?,
        }
        let waiter = self.pending.register(Waiter::new(
            self.next_message_id(),
            deadline,
            receiver.clone(),
            caller.limits().message_size,
            reply_to,
            self.pending.clone(),
        ));
        let request = Request {
            sender: caller.id(),
            operation: target.operation.clone(),
            number: target.number,
            reader: target.reader,
            sent: Self::now(),
            payload,
            answer: Answer(waiter.clone()),
        };
        if let Err(refused) = receiver.inbox().push_request(request) {
            waiter.withdraw();
            let Refused { request, because } = refused;
            drop(request);
            return Err(match because {
                Refusal::Down => not_running(&receiver),
                Refusal::Full => {
                    self.count_lost(&receiver, 1);
                    Error::Overloaded(receiver.name().to_owned())
                }
            });
        }
        caller.stats().sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(waiter)
    }

    /// Fails if `receiver` waits, by however many others, for `caller`. Nobody waits for an instance that
    /// is still to take over.
    fn refuse_circle(&self, caller: &Peer, receiver: &Arc<Peer>) -> Result<(), Error> {
        if caller.is_successor() {
            return Ok(());
        }
        let mut circle = vec![caller.name().to_owned()];
        let mut next = Some(receiver.clone());
        while let Some(peer) = next {
            circle.push(peer.name().to_owned());
            if peer.id() == caller.id() {
                return Err(Error::WouldDeadlock(circle));
            }
            next = peer.waits_for().and_then(|id: PeerId| self.peer(id));
        }
        Ok(())
    }
}

impl Peer {
    /// Fails with the reason if requests to this peer are refused.
    fn takes_requests(&self) -> Result<(), Error> {
        match self.phase() {
            Phase::Ready | Phase::Starting | Phase::Replacing => Ok(()),
            Phase::Interrupted(reason) => {
                Err(Error::NotReady(format!("`{}` is interrupted: {reason}", self.name())))
            }
            Phase::Draining => Err(Error::NoProvider(format!("`{}` is stopping", self.name()))),
            Phase::Down => Err(not_running(self)),
        }
    }
}

fn not_running(peer: &Peer) -> Error {
    Error::NoProvider(format!("`{}` is not running", peer.name()))
}

impl Target {
    /// Finds the operation's number again if the receiver has been started anew since.
    fn refresh(&mut self) -> Result<(), Error> {
        if self.reader != self.receiver.reader() {
            (self.reader, self.number) = self
                .receiver
                .find(&self.operation)
                .ok_or_else(|| self.receiver.no_operation(&self.operation))?;
        }
        Ok(())
    }
}

/// No request waits longer: far enough for any purpose, and safe to add to any instant.
const MAX_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);
