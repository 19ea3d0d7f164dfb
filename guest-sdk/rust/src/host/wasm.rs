//! Main inside a component: the imports of `weir:iec`, and the clock of WASI.

use std::{
    future::{Future, ready},
    process::ExitCode,
    time::Duration,
};

use wasip2::clocks::monotonic_clock;
use wstd::runtime::AsyncPollable;

use super::{Answer, BATCH, Message, MessageId, Options, Peer, WitError};
use crate::{
    Contract, Error, Receipt,
    bindings::{
        wasi::config::store,
        weir::iec::{channel, events, lifecycle, peers, queues, requests},
    },
    program::Program,
};

#[derive(Clone, Debug)]
pub(crate) struct Host;

/// Waits until the inbox has messages, while other futures run.
#[derive(Debug)]
pub(crate) struct Inbox(AsyncPollable);

impl Inbox {
    pub(crate) fn readable(&self) -> impl Future<Output = ()> + use<> {
        self.0.wait_for()
    }
}

impl Host {
    pub(crate) fn run(program: Program) -> ExitCode {
        match wstd::runtime::block_on(program.run(Self)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                lifecycle::error(&error.to_string());
                ExitCode::FAILURE
            }
        }
    }

    pub(crate) fn serve(&self, contract: Contract, operations: &[String]) -> Result<u32, Error> {
        Ok(channel::serve(contract.name(), operations)?)
    }

    pub(crate) fn receive(&self) -> impl Future<Output = Option<Message>> {
        ready(channel::receive())
    }

    pub(crate) fn respond_and_receive(
        &self,
        request: MessageId,
        answer: &Answer,
    ) -> impl Future<Output = Result<Option<Message>, WitError>> {
        ready(channel::respond_and_receive(request, answer.as_deref()))
    }

    pub(crate) fn respond(&self, request: MessageId, answer: &Answer) -> Result<(), WitError> {
        channel::respond(request, answer.as_deref())
    }

    /// Takes up to [`BATCH`] messages that wait. Returns an error if there are none, and an empty list on stop.
    pub(crate) fn take(&self) -> Result<Vec<Message>, WitError> {
        channel::receive_batch(BATCH, channel::BatchOrder::AnyOrder, Some(0))
    }

    pub(crate) fn inbox(&self) -> Inbox {
        Inbox(AsyncPollable::new(channel::subscribe_inbox()))
    }

    pub(crate) fn open(
        &self,
        contract: Contract,
        operation: &str,
        provider: Option<&str>,
    ) -> Result<u32, Error> {
        Ok(requests::open(contract.name(), operation, provider)?)
    }

    pub(crate) fn call(
        &self,
        target: u32,
        payload: &[u8],
        options: Options,
    ) -> impl Future<Output = Result<Vec<u8>, WitError>> {
        ready(requests::call(target, payload, options))
    }

    pub(crate) fn send(&self, target: u32, payload: &[u8], options: Options) -> Result<MessageId, WitError> {
        requests::send(target, payload, options)
    }

    pub(crate) fn cancel(&self, request: MessageId) {
        requests::cancel(request);
    }

    pub(crate) fn subscribe(&self, pattern: &str) -> Result<u32, Error> {
        Ok(events::subscribe(pattern)?)
    }

    pub(crate) fn unsubscribe(&self, subscription: u32) -> Result<(), Error> {
        Ok(events::unsubscribe(subscription)?)
    }

    pub(crate) fn publish(
        &self,
        to: Option<&str>,
        topic: &str,
        payload: &[u8],
        options: Options,
    ) -> Result<Receipt, Error> {
        let receipt = match to {
            None => events::publish(topic, payload, options),
            Some(extension) => events::publish_to(extension, topic, payload, options),
        }?;
        Ok(receipt.into())
    }

    pub(crate) fn open_queue(&self, queue: &str) -> Result<u32, Error> {
        Ok(queues::open(queue)?)
    }

    pub(crate) fn put(&self, queue: u32, payload: &[u8], options: Options) -> Result<MessageId, Error> {
        Ok(queues::put(queue, payload, options)?)
    }

    /// Asks Main for this many jobs more than those in hand.
    pub(crate) fn take_jobs(&self, queue: u32, jobs: u32) -> Result<(), Error> {
        Ok(queues::take(queue, queues::Taking::Next(jobs))?)
    }

    pub(crate) fn done(&self, job: MessageId) -> Result<(), Error> {
        Ok(queues::done(job)?)
    }

    pub(crate) fn give_back(&self, job: MessageId) -> Result<(), Error> {
        Ok(queues::give_back(job)?)
    }

    pub(crate) fn ready(&self) {
        lifecycle::ready();
    }

    pub(crate) fn interrupted(&self, reason: &str) {
        lifecycle::interrupted(reason);
    }

    pub(crate) fn own_name(&self) -> String {
        peers::own_name()
    }

    pub(crate) fn name_of(&self, peer: Peer) -> Option<String> {
        peers::name_of(peer)
    }

    pub(crate) fn config(&self, key: &str) -> Result<Option<String>, Error> {
        store::get(key).map_err(|error| match error {
            store::Error::Upstream(text) | store::Error::Io(text) => Error::handler("config", text),
        })
    }

    /// The time since some fixed moment. `Instant` would add 22 KB, mostly formatting, to a small component.
    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_clock::now())
    }

    pub(crate) fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        let timer = wstd::time::Timer::after(duration.into());
        async move {
            timer.wait().await;
        }
    }
}
