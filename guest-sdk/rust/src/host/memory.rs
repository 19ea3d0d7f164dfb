//! Main in memory, for tests: it has one extension, and fakes of the contracts that the extension calls. The
//! manifest is also the extension's grants.
//!
//! This module has the extension's side, and `outside` the test's.

mod lanes;
mod outside;
mod queues;
mod topics;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    fmt,
    future::{Future, poll_fn},
    process::ExitCode,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use futures_util::{future::LocalBoxFuture, stream::FuturesUnordered};

use self::{
    lanes::Lanes,
    outside::{Asked, Fake, UnderWay},
    topics::Topic,
};
use super::{Answer, BATCH, Message, MessageId, Options, Peer, Response, WitError};
use crate::{
    Contract, Error, Manifest,
    bindings::weir::iec::types::Size,
    program::Program,
    testing::{Clock, Published},
};

/// The timeout of requests without one of their own.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The numbers of the test and the extension as senders.
const TEST: Peer = 1;
const EXTENSION: Peer = 2;

#[derive(Clone)]
pub(crate) struct Host(Rc<State>);

pub(crate) struct Inbox(Host);

struct State {
    manifest: Manifest,
    clock: Clock,
    inbox: RefCell<Lanes>,
    last_id: Cell<MessageId>,
    message_size: Cell<u64>,
    /// The name under which the test sends.
    sender: RefCell<String>,
    config: RefCell<HashMap<String, String>>,
    ready: Cell<bool>,
    interrupted: RefCell<Option<String>>,
    /// The operations that the extension serves, by their numbers.
    served: RefCell<Vec<(Contract, String)>>,
    /// The test's requests to the extension, until the test has read their outcome.
    asked: RefCell<HashMap<MessageId, Asked>>,
    /// The operations that the extension has opened, by their numbers.
    targets: RefCell<Vec<(Contract, String)>>,
    fakes: RefCell<HashMap<(Contract, String), Fake>>,
    /// The extension's requests to fakes.
    under_way: RefCell<FuturesUnordered<UnderWay>>,
    /// The pattern of each subscription, by its number. `None` once the subscription has ended.
    subscriptions: RefCell<Vec<Option<String>>>,
    topics: RefCell<BTreeMap<String, Topic>>,
    published: RefCell<Vec<Published>>,
}

impl Inbox {
    pub(crate) fn readable(&self) -> impl Future<Output = ()> + use<> {
        self.0.readable()
    }
}

impl Host {
    /// Prints how to run the extension, and fails: there is no Main outside a component.
    pub(crate) fn run(program: Program) -> ExitCode {
        eprintln!(
            "`{}` is an extension: build it with `--target wasm32-wasip2` and give it to `weir run`, \
             or test it with `weir_sdk::testing`",
            program.manifest.id
        );
        ExitCode::FAILURE
    }

    pub(crate) fn serve(&self, contract: Contract, operations: &[String]) -> Result<u32, Error> {
        let mut served = self.0.served.borrow_mut();
        let first = number_of(served.len())?;
        served.extend(operations.iter().map(|operation| (contract, operation.clone())));
        Ok(first)
    }

    pub(crate) async fn receive(&self) -> Option<Message> {
        loop {
            let taken = self.0.inbox.borrow_mut().take(self.requests_under_way());
            match taken {
                Ok(next) => return next,
                Err(lanes::Empty) => self.readable().await,
            }
        }
    }

    pub(crate) async fn respond_and_receive(
        &self,
        request: MessageId,
        answer: &Answer,
    ) -> Result<Option<Message>, WitError> {
        self.respond(request, answer)?;
        Ok(self.receive().await)
    }

    pub(crate) fn respond(&self, request: MessageId, answer: &Answer) -> Result<(), WitError> {
        self.check_size(answer.as_deref().unwrap_or_default())?;
        match self.0.asked.borrow_mut().get_mut(&request) {
            Some(Asked { answer: Some(_), .. }) => {
                Err(WitError::Invalid(format!("request {request} is answered already")))
            }
            Some(asked) => {
                asked.answer = Some(answer.clone().map_err(WitError::Handler));
                Ok(())
            }
            // The caller no longer waits, so nobody needs the answer.
            None => Ok(()),
        }
    }

    /// Takes up to [`BATCH`] messages that wait. Returns an error if there are none, and an empty list on stop.
    pub(crate) fn take(&self) -> Result<Vec<Message>, WitError> {
        let mut inbox = self.0.inbox.borrow_mut();
        let mut messages = Vec::new();
        for _ in 0..BATCH {
            match inbox.take(self.requests_under_way()) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => return Ok(messages),
                Err(lanes::Empty) => break,
            }
        }
        if messages.is_empty() { Err(WitError::Timeout) } else { Ok(messages) }
    }

    pub(crate) fn inbox(&self) -> Inbox {
        Inbox(self.clone())
    }

    /// The number of an operation. Fakes stand for every provider, so the named one does not matter.
    pub(crate) fn open(
        &self,
        contract: Contract,
        operation: &str,
        _provider: Option<&str>,
    ) -> Result<u32, Error> {
        let Manifest { id, requires, wants, .. } = self.0.manifest;
        if !requires.contains(&contract) && !wants.contains(&contract) {
            return Err(Error::PermissionDenied(format!(
                "`{id}` may not call `{contract}`; `requires` or `wants` would grant it"
            )));
        }
        if !self.0.fakes.borrow().keys().any(|(known, _)| *known == contract) {
            return Err(Error::UnknownContract(contract.name().to_owned()));
        }
        let mut targets = self.0.targets.borrow_mut();
        targets.push((contract, operation.to_owned()));
        number_of(targets.len() - 1)
    }

    pub(crate) fn call(
        &self,
        target: u32,
        payload: &[u8],
        options: Options,
    ) -> LocalBoxFuture<'static, Result<Vec<u8>, WitError>> {
        self.ask_fake(target, payload, options)
    }

    pub(crate) fn send(&self, target: u32, payload: &[u8], options: Options) -> Result<MessageId, WitError> {
        self.check_size(payload)?;
        let id = self.next_id();
        let outcome = self.ask_fake(target, payload, options);
        self.0.under_way.borrow_mut().push(UnderWay { id, outcome });
        Ok(id)
    }

    pub(crate) fn cancel(&self, request: MessageId) {
        let mut under_way = self.0.under_way.borrow_mut();
        *under_way = std::mem::take(&mut *under_way).into_iter().filter(|call| call.id != request).collect();
    }

    pub(crate) fn ready(&self) {
        self.0.ready.set(true);
        self.0.interrupted.replace(None);
    }

    pub(crate) fn interrupted(&self, reason: &str) {
        self.0.interrupted.replace(Some(reason.to_owned()));
    }

    pub(crate) fn own_name(&self) -> String {
        self.0.manifest.id.to_owned()
    }

    pub(crate) fn name_of(&self, peer: Peer) -> Option<String> {
        match peer {
            TEST => Some(self.0.sender.borrow().clone()),
            EXTENSION => Some(self.own_name()),
            _ => None,
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "Main can fail to read the configuration")]
    pub(crate) fn config(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.0.config.borrow().get(key).cloned())
    }

    pub(crate) fn now(&self) -> Duration {
        self.0.clock.now()
    }

    pub(crate) fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        self.0.clock.sleep(duration)
    }

    fn readable(&self) -> impl Future<Output = ()> + use<> {
        let host = self.clone();
        poll_fn(move |cx| {
            let mut inbox = host.0.inbox.borrow_mut();
            if inbox.is_readable(host.requests_under_way()) {
                return Poll::Ready(());
            }
            inbox.wake_when_readable(cx.waker());
            Poll::Pending
        })
    }

    fn check_size(&self, payload: &[u8]) -> Result<(), WitError> {
        let (bytes, allowed) = (payload.len() as u64, self.0.message_size.get());
        if bytes > allowed {
            return Err(WitError::TooLarge(Size { bytes, allowed }));
        }
        Ok(())
    }

    fn next_id(&self) -> MessageId {
        let id = self.0.last_id.get() + 1;
        self.0.last_id.set(id);
        id
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("manifest", &self.0.manifest).finish_non_exhaustive()
    }
}

fn number_of(place: usize) -> Result<u32, Error> {
    u32::try_from(place).map_err(Error::failed)
}
