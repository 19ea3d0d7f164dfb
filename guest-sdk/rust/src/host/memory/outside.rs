//! The test's side of Main in memory: calls, fakes of other contracts, and settings.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{Either, LocalBoxFuture, select},
};

use super::{Host, Message, MessageId, Options, Response, State, TEST, TIMEOUT, WitError};
use crate::{Contract, Error, Manifest, host::Request, testing::Clock};

pub(crate) type Fake = Rc<dyn Fn(Vec<u8>) -> LocalBoxFuture<'static, Result<Vec<u8>, Error>>>;

/// A request of the test to the extension.
#[derive(Debug)]
pub(super) struct Asked {
    deadline: Duration,
    pub(super) answer: Option<Result<Vec<u8>, WitError>>,
}

impl Host {
    pub(crate) fn new(manifest: Manifest) -> Self {
        Self(Rc::new(State {
            manifest,
            clock: Clock::default(),
            inbox: RefCell::default(),
            last_id: Cell::new(0),
            message_size: Cell::new(u64::MAX),
            sender: RefCell::new("test".to_owned()),
            config: RefCell::default(),
            ready: Cell::new(false),
            interrupted: RefCell::default(),
            served: RefCell::default(),
            asked: RefCell::default(),
            targets: RefCell::default(),
            fakes: RefCell::default(),
            under_way: RefCell::default(),
            subscriptions: RefCell::default(),
            topics: RefCell::default(),
            published: RefCell::default(),
        }))
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.ready.get()
    }

    pub(crate) fn set_sender(&self, name: &str) {
        self.0.sender.replace(name.to_owned());
    }

    pub(crate) fn set_config(&self, key: &str, value: &str) {
        self.0.config.borrow_mut().insert(key.to_owned(), value.to_owned());
    }

    pub(crate) fn set_message_size(&self, bytes: u64) {
        self.0.message_size.set(bytes);
    }

    pub(crate) fn set_fake(&self, contract: Contract, operation: &str, fake: Fake) {
        self.0.fakes.borrow_mut().insert((contract, operation.to_owned()), fake);
    }

    /// Sends a request of the test to the extension, and returns its id.
    pub(crate) fn ask(
        &self,
        contract: Contract,
        operation: &str,
        payload: Vec<u8>,
        timeout: Option<Duration>,
    ) -> Result<MessageId, Error> {
        if let Some(reason) = &*self.0.interrupted.borrow() {
            return Err(Error::NotReady(reason.clone()));
        }
        let served = self.0.served.borrow();
        if !served.iter().any(|(known, _)| *known == contract) {
            return Err(Error::UnknownContract(contract.name().to_owned()));
        }
        let number = served
            .iter()
            .position(|(known, name)| *known == contract && name == operation)
            .ok_or_else(|| Error::Invalid(format!("`{contract}` has no operation `{operation}`")))?;
        let remaining = timeout.unwrap_or(TIMEOUT);
        let id = self.next_id();
        let deadline = self.now().saturating_add(remaining);
        self.0.asked.borrow_mut().insert(id, Asked { deadline, answer: None });
        self.0.inbox.borrow_mut().push(Message::Request(Request {
            id,
            sender: TEST,
            operation: super::number_of(number)?,
            remaining_ms: u32::try_from(remaining.as_millis()).unwrap_or(u32::MAX),
            waited_us: 0,
            payload,
        }));
        Ok(id)
    }

    /// The answer to a request, or `timeout` once its deadline has passed. `None` while it is outstanding.
    pub(crate) fn answer(&self, id: MessageId) -> Option<Result<Vec<u8>, Error>> {
        let mut asked = self.0.asked.borrow_mut();
        let outcome = match asked.get_mut(&id)? {
            Asked { answer: Some(answer), .. } => answer.clone().map_err(Error::from),
            Asked { deadline, .. } if *deadline <= self.now() => Err(Error::Timeout),
            _ => return None,
        };
        asked.remove(&id);
        Some(outcome)
    }

    pub(crate) fn is_answered(&self, id: MessageId) -> bool {
        self.0.asked.borrow().get(&id).is_some_and(|asked| asked.answer.is_some())
    }

    pub(crate) fn deadline(&self, id: MessageId) -> Option<Duration> {
        self.0.asked.borrow().get(&id).map(|asked| asked.deadline)
    }

    /// The number of the extension's requests to fakes that have no answer yet.
    pub(crate) fn requests_under_way(&self) -> usize {
        self.0.under_way.borrow().len()
    }

    pub(crate) fn stop(&self) {
        self.0.inbox.borrow_mut().stop();
    }

    /// Gives back the extension's jobs in hand, and tells the waiting callers that the extension is gone.
    pub(crate) fn gone(&self) {
        self.0.inbox.borrow_mut().queues().give_all_back();
        for asked in self.0.asked.borrow_mut().values_mut() {
            asked.answer.get_or_insert(Err(WitError::PeerGone));
        }
    }

    /// Runs the fakes until all of them wait. Their answers go to the extension's inbox.
    pub(crate) fn poll_fakes(&self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(response)) = self.0.under_way.borrow_mut().poll_next_unpin(cx) {
            self.0.inbox.borrow_mut().push(Message::Response(response));
        }
    }

    /// Calls a fake. The call fails when its timeout or the deadline of the request in hand has passed, and at once if
    /// there is no such fake or that request is answered already.
    pub(super) fn ask_fake(
        &self,
        target: u32,
        payload: &[u8],
        options: Options,
    ) -> LocalBoxFuture<'static, Result<Vec<u8>, WitError>> {
        let targets = self.0.targets.borrow();
        let target = usize::try_from(target).ok().and_then(|target| targets.get(target));
        let fake = target.and_then(|target| self.0.fakes.borrow().get(target).cloned());
        let refused = |why| Box::pin(std::future::ready(Err(WitError::Invalid(why))));
        let Some(fake) = fake else {
            return refused(format!("the contract has no such operation: {target:?} has no fake"));
        };
        if let Some(parent) = options.parent.filter(|id| self.is_answered(*id)) {
            return refused(format!("request {parent} is not in hand"));
        }
        let answer = fake(payload.to_owned());
        let timeout = options.timeout_ms.map_or(TIMEOUT, |ms| Duration::from_millis(ms.into()));
        let parent = options.parent.and_then(|id| self.deadline(id));
        let remaining = parent.map_or(timeout, |deadline| timeout.min(deadline.saturating_sub(self.now())));
        let deadline = self.0.clock.sleep(remaining);
        Box::pin(async move {
            match select(answer, pin!(deadline)).await {
                Either::Left((outcome, _)) => outcome.map_err(WitError::from),
                Either::Right(_) => Err(WitError::Timeout),
            }
        })
    }
}

/// A request of the extension to a fake.
pub(super) struct UnderWay {
    pub(super) id: MessageId,
    pub(super) outcome: LocalBoxFuture<'static, Result<Vec<u8>, WitError>>,
}

impl Future for UnderWay {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let id = self.id;
        self.outcome.as_mut().poll(cx).map(|outcome| Response { id, outcome })
    }
}
