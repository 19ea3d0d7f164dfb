//! The same for programs without async code: every call waits on the caller's own thread.
//!
//! Safe to call any number of times from a plain loop, and from `spawn_blocking`. A call from inside
//! an async task would stop that task's whole thread, so it fails with [`BlockingError::InAsync`]
//! instead.

use std::{
    convert::Infallible,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use weir_bus::{Error, MessageId, Receipt};
use weir_config::Config;
use weir_hooks::{HookCall, HookDirConfig, HookError, HookReport};
use weir_names::HookDirName;
use weir_schedule::{Alarm, drive, is_worker_thread};
use weir_supervisor::{ControlError, ReloadReport};

use crate::{
    client::{CallOptions, Job, ReceivedEvent, SubscribeOptions},
    host::{StartError, WorkerPanicked},
    limits::LimitsReport,
};

/// Why a blocking call failed.
#[derive(Debug, thiserror::Error)]
pub enum BlockingError<E> {
    /// It was made from inside an async task, or from a handler on Main's worker thread.
    #[error(
        "blocking call from inside an async task; use the async form, or move the call to a thread of its own"
    )]
    InAsync,
    /// The call itself failed.
    #[error(transparent)]
    Call(#[from] E),
}

/// [`Main`](crate::Main), for blocking code.
#[derive(Debug)]
pub struct Main(crate::Main);

/// [`Client`](crate::Client), for blocking code.
#[derive(Clone, Debug)]
pub struct Client(crate::Client);

/// [`Control`](crate::Control), for blocking code.
#[derive(Clone, Debug)]
pub struct Control(crate::Control);

/// [`Queue`](crate::Queue), for blocking code.
#[derive(Clone, Debug)]
pub struct Queue(crate::Queue);

/// [`Subscriber`](crate::Subscriber), for blocking code.
#[derive(Debug)]
pub struct Subscriber(crate::Subscriber);

/// [`Hooks`](crate::Hooks), for blocking code.
#[derive(Clone, Debug)]
pub struct Hooks(crate::Hooks);

/// [`HookDir`](crate::HookDir), for blocking code: hooks run on the thread of whoever calls.
#[derive(Clone, Debug)]
pub struct HookDir(crate::HookDir);

impl Main {
    /// Starts Main and the extensions that start with it; returns when each is ready or has failed.
    ///
    /// # Errors
    ///
    /// As [`Builder::start`](crate::Builder::start).
    pub fn start(builder: crate::Builder) -> Result<Self, BlockingError<StartError>> {
        wait(builder.start()).map(Self)
    }

    /// Sends requests and events, and subscribes.
    #[must_use]
    pub fn client(&self) -> Client {
        Client(self.0.client().clone())
    }

    /// Starts and stops extensions and says how they are.
    #[must_use]
    pub fn control(&self) -> Control {
        Control(self.0.control().clone())
    }

    /// Runs directories of hooks.
    #[must_use]
    pub fn hooks(&self) -> Hooks {
        Hooks(self.0.hooks().clone())
    }

    /// Stops every extension, dependents first, and returns when the last has ended.
    ///
    /// # Errors
    ///
    /// [`BlockingError::InAsync`] inside an async task, where it cannot wait: Main then shuts down by
    /// itself. Otherwise as [`crate::Main::shutdown`].
    pub fn shutdown(self) -> Result<(), BlockingError<WorkerPanicked>> {
        match refuse_in_async() {
            Err(refused) => {
                self.0.abandon();
                Err(refused)
            }
            Ok(()) => Ok(self.0.shutdown_now()?),
        }
    }
}

impl Client {
    /// Calls an operation of a contract and waits for the answer.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::call`].
    pub fn call(
        &self,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, BlockingError<Error>> {
        wait(self.0.call(contract, operation, payload))
    }

    /// [`call`](Self::call) with a timeout or to a named provider.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::call`].
    pub fn call_with(
        &self,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
        options: CallOptions,
    ) -> Result<Bytes, BlockingError<Error>> {
        wait(self.0.call_with(contract, operation, payload, options))
    }

    /// Publishes an event; says who got it. Waits only where a subscriber has its publishers wait.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::publish`].
    pub fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, BlockingError<Error>> {
        wait(self.0.publish(topic, payload))
    }

    /// [`publish`](Self::publish), waiting for room for at most so long.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::publish`].
    pub fn publish_within(
        &self,
        timeout: Duration,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, BlockingError<Error>> {
        wait(self.0.publish_within(timeout, topic, payload))
    }

    /// A shared queue, to put into and to take from. Never waits.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::queue`].
    pub fn queue(&self, name: &str) -> Result<Queue, Error> {
        self.0.queue(name).map(Queue)
    }

    /// Subscribes to every topic that matches `pattern`. Never waits.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::subscribe`].
    pub fn subscribe(&self, pattern: &str) -> Result<Subscriber, Error> {
        self.0.subscribe(pattern).map(Subscriber)
    }

    /// [`subscribe`](Self::subscribe), with a capacity and a policy of its own.
    ///
    /// # Errors
    ///
    /// As [`crate::Client::subscribe`].
    pub fn subscribe_with(&self, pattern: &str, options: SubscribeOptions) -> Result<Subscriber, Error> {
        self.0.subscribe_with(pattern, options).map(Subscriber)
    }
}

impl Hooks {
    /// [`crate::Hooks::get`], for blocking code. Never waits.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn get(&self, name: &str) -> Result<HookDir, HookError> {
        self.0.get(name).map(HookDir)
    }

    /// [`crate::Hooks::open`], for blocking code. Never waits.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open(&self, config: HookDirConfig) -> Result<HookDir, HookError> {
        self.0.open(config).map(HookDir)
    }

    /// The names of the directories that the operator has configured.
    #[must_use]
    pub fn names(&self) -> Vec<HookDirName> {
        self.0.names()
    }
}

impl From<crate::HookDir> for HookDir {
    fn from(dir: crate::HookDir) -> Self {
        Self(dir)
    }
}

impl HookDir {
    /// [`crate::HookDir::run`], on this thread: it costs no hop to Main's worker thread and back, and what hooks
    /// do with files is done here, but for streams that they poll.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn run(&self, call: HookCall) -> Result<HookReport, BlockingError<HookError>> {
        refuse_in_async()?;
        Ok(self.0.run_here(call)?)
    }
}

impl Subscriber {
    /// Waits for the next event, for at most `timeout`; none when that has passed, or Main has ended.
    ///
    /// # Errors
    ///
    /// Fails only inside an async task.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<ReceivedEvent>, BlockingError<Error>> {
        refuse_in_async()?;
        Ok(within(self.0.next(), Instant::now().checked_add(timeout)).flatten())
    }
}

impl Queue {
    /// Puts a job at the end.
    ///
    /// # Errors
    ///
    /// As [`crate::Queue::put`].
    pub fn put(&self, payload: impl Into<Bytes>) -> Result<MessageId, BlockingError<Error>> {
        wait(self.0.put(payload))
    }

    /// [`put`](Self::put), waiting for room for at most so long.
    ///
    /// # Errors
    ///
    /// As [`crate::Queue::put`].
    pub fn put_within(
        &self,
        timeout: Duration,
        payload: impl Into<Bytes>,
    ) -> Result<MessageId, BlockingError<Error>> {
        wait(self.0.put_within(timeout, payload))
    }

    /// Waits for a job for at most `timeout`; none when that has passed, or as [`crate::Queue::take`].
    ///
    /// # Errors
    ///
    /// Fails only inside an async task.
    pub fn take(&mut self, timeout: Duration) -> Result<Option<Job>, BlockingError<Error>> {
        refuse_in_async()?;
        Ok(within(self.0.take(), Instant::now().checked_add(timeout)).flatten())
    }
}

impl Control {
    /// [`crate::Control::start`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn start(&self, id: &str) -> Result<(), BlockingError<ControlError>> {
        wait(self.0.start(id))
    }

    /// [`crate::Control::stop`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn stop(&self, id: &str) -> Result<(), BlockingError<ControlError>> {
        wait(self.0.stop(id))
    }

    /// [`crate::Control::restart`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn restart(&self, id: &str) -> Result<(), BlockingError<ControlError>> {
        wait(self.0.restart(id))
    }

    /// [`crate::Control::reload_extension`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn reload_extension(&self, id: &str) -> Result<(), BlockingError<ControlError>> {
        wait(self.0.reload_extension(id))
    }

    /// [`crate::Control::reload`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn reload(&self) -> Result<ReloadReport, BlockingError<ControlError>> {
        wait(self.0.reload())
    }

    /// [`crate::Control::reload_with`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn reload_with(&self, config: Config) -> Result<ReloadReport, BlockingError<ControlError>> {
        wait(self.0.reload_with(config))
    }

    /// [`crate::Control::ping`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn ping(&self) -> Result<(), BlockingError<ControlError>> {
        wait(self.0.ping())
    }

    /// [`crate::Control::limits`], for blocking code.
    ///
    /// # Errors
    ///
    /// Fails only inside an async task.
    pub fn limits(&self) -> Result<LimitsReport, BlockingError<Infallible>> {
        wait(async { Ok(self.0.limits().await) })
    }

    /// [`crate::Control::limits_of`], for blocking code.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn limits_of(&self, id: &str) -> Result<LimitsReport, BlockingError<ControlError>> {
        wait(self.0.limits_of(id))
    }

    /// All else of [`crate::Control`], which never waits.
    #[must_use]
    pub fn as_async(&self) -> &crate::Control {
        &self.0
    }
}

/// Drives `work` on this thread to its end.
fn wait<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<T, BlockingError<E>> {
    refuse_in_async()?;
    // Without a deadline it is done when it returns.
    within(work, None).ok_or(BlockingError::InAsync)?.map_err(BlockingError::Call)
}

fn refuse_in_async<E>() -> Result<(), BlockingError<E>> {
    if is_worker_thread() || in_async_task() { Err(BlockingError::InAsync) } else { Ok(()) }
}

/// Drives `work` on this thread to its end, or until `deadline`.
fn within<T>(work: impl Future<Output = T>, deadline: Option<Instant>) -> Option<T> {
    let alarm = Alarm::default();
    drive(alarm.within(deadline, work), &alarm)
}

/// Whether this thread is polling a tokio task just now.
///
/// That a runtime's handle is at hand says nothing: it is in `spawn_blocking` too, where blocking is
/// right. But only a task that is being polled has a cooperation budget that can be used up.
fn in_async_task() -> bool {
    /// More than tokio grants a task for one poll.
    const MORE_THAN_A_BUDGET: usize = 256;

    let mut context = Context::from_waker(Waker::noop());
    tokio::runtime::Handle::try_current().is_ok()
        && (0..MORE_THAN_A_BUDGET).any(|_| match tokio::task::coop::poll_proceed(&mut context) {
            Poll::Ready(unit) => {
                unit.made_progress();
                false
            }
            Poll::Pending => true,
        })
}
