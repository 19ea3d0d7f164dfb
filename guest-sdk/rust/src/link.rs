//! The link to Main, which all handlers of an extension share: the targets that were looked up, and the
//! requests under way with their waiting callers.

mod jobs;

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use self::jobs::Jobs;
use crate::{
    Contract, Error,
    host::{Host, MessageId, Options, Response, WitError},
    task::Spawned,
};

pub(crate) struct Link {
    pub(crate) host: Host,
    pub(crate) jobs: Jobs,
    pub(crate) spawned: Spawned,
    /// Whether messages are received. Only then can an answer come through the inbox.
    receiving: Cell<bool>,
    targets: RefCell<Vec<Target>>,
    under_way: RefCell<HashMap<MessageId, Slot>>,
    /// The pattern of each subscription, after the subscription's number.
    patterns: RefCell<Vec<(u32, String)>>,
}

#[derive(Debug)]
struct Target {
    contract: Contract,
    operation: &'static str,
    provider: Option<Box<str>>,
    number: u32,
}

#[derive(Debug)]
enum Slot {
    Waiting(Option<Waker>),
    Answered(Result<Vec<u8>, WitError>),
}

impl Link {
    pub(crate) fn new(host: Host) -> Self {
        Self {
            jobs: Jobs::new(host.clone()),
            host,
            spawned: Spawned::default(),
            receiving: Cell::new(false),
            targets: RefCell::default(),
            under_way: RefCell::default(),
            patterns: RefCell::default(),
        }
    }

    /// Notes that answers and jobs come through the inbox from now on.
    pub(crate) fn start_receiving(&self) {
        self.receiving.set(true);
        self.jobs.open();
    }

    /// Notes that no answer comes through the inbox any more. Callers that wait get an error.
    pub(crate) fn stop_receiving(&self) {
        self.receiving.set(false);
        for slot in self.under_way.borrow_mut().values_mut() {
            if matches!(slot, Slot::Waiting(_)) {
                slot.fill(Err(WitError::PeerGone));
            }
        }
    }

    pub(crate) fn awaits_answers(&self) -> bool {
        self.under_way.borrow().values().any(|slot| matches!(slot, Slot::Waiting(_)))
    }

    /// Sends a request and waits for its answer. Other messages are served meanwhile, but in `on_start` and `on_stop`
    /// the whole component waits.
    pub(crate) async fn call(
        &self,
        (contract, operation): (Contract, &'static str),
        provider: Option<&str>,
        payload: &[u8],
        options: Options,
    ) -> Result<Vec<u8>, Error> {
        let target = self.target(contract, operation, provider)?;
        if !self.receiving.get() {
            return Ok(self.host.call(target, payload, options).await?);
        }
        let id = self.host.send(target, payload, options)?;
        self.under_way.borrow_mut().insert(id, Slot::Waiting(None));
        Ok(PendingCall { link: self, id }.await?)
    }

    pub(crate) fn answered(&self, response: Response) {
        // There is no slot if the caller gave up while the answer was in the inbox.
        if let Some(slot) = self.under_way.borrow_mut().get_mut(&response.id) {
            slot.fill(response.outcome);
        }
    }

    /// Subscribes, and keeps the pattern for events that leave out their topic.
    pub(crate) fn subscribe(&self, pattern: &str) -> Result<u32, Error> {
        let subscription = self.host.subscribe(pattern)?;
        let mut patterns = self.patterns.borrow_mut();
        if !patterns.iter().any(|(known, _)| *known == subscription) {
            patterns.push((subscription, pattern.to_owned()));
        }
        Ok(subscription)
    }

    pub(crate) fn unsubscribe(&self, pattern: &str) -> Result<(), Error> {
        let mut patterns = self.patterns.borrow_mut();
        let Some(place) = patterns.iter().position(|(_, known)| known == pattern) else {
            return Err(Error::Invalid(format!("there is no subscription to `{pattern}`")));
        };
        let (subscription, _) = patterns.swap_remove(place);
        self.host.unsubscribe(subscription)
    }

    /// The topic of an event that leaves it out: the pattern of its subscription, which is a single topic. Empty if the
    /// subscription has ended.
    pub(crate) fn topic_of(&self, subscription: u32) -> String {
        let patterns = self.patterns.borrow();
        let known = patterns.iter().find(|(known, _)| *known == subscription);
        known.map(|(_, topic)| topic.clone()).unwrap_or_default()
    }

    fn target(
        &self,
        contract: Contract,
        operation: &'static str,
        provider: Option<&str>,
    ) -> Result<u32, Error> {
        let known = self.targets.borrow().iter().find_map(|target| {
            (target.operation == operation
                && target.contract == contract
                && target.provider.as_deref() == provider)
                .then_some(target.number)
        });
        if let Some(number) = known {
            return Ok(number);
        }
        let number = self.host.open(contract, operation, provider)?;
        let provider = provider.map(Into::into);
        self.targets.borrow_mut().push(Target { contract, operation, provider, number });
        Ok(number)
    }
}

impl Slot {
    fn fill(&mut self, outcome: Result<Vec<u8>, WitError>) {
        if let Self::Waiting(waker) = std::mem::replace(self, Self::Answered(outcome))
            && let Some(waker) = waker
        {
            waker.wake();
        }
    }
}

/// Waits for one answer. Dropping it before the answer cancels the request.
struct PendingCall<'a> {
    link: &'a Link,
    id: MessageId,
}

impl Future for PendingCall<'_> {
    type Output = Result<Vec<u8>, WitError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut under_way = self.link.under_way.borrow_mut();
        match under_way.remove(&self.id) {
            Some(Slot::Answered(outcome)) => Poll::Ready(outcome),
            _ => {
                under_way.insert(self.id, Slot::Waiting(Some(cx.waker().clone())));
                Poll::Pending
            }
        }
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if let Some(Slot::Waiting(_)) = self.link.under_way.borrow_mut().remove(&self.id) {
            self.link.host.cancel(self.id);
        }
    }
}
