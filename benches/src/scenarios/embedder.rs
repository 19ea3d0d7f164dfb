//! A program that embeds Main, and calls extensions from plain threads or from its own runtime.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio::{runtime::Runtime, time::timeout};
use weir_host::{
    Builder, CallOptions, Client, Config, Control, ExtensionConfig, HandlerError, Main, MainConfig, Service,
    blocking::{wait, wait_for},
    client::Subscriber,
    control::{ExtensionState, ExtensionStatus},
};

use super::device::{PATIENCE, wait_until};

/// Main, and the calling runtime.
#[derive(Debug)]
pub(super) struct Embedder {
    main: Main,
    runtime: Runtime,
}

impl Drop for Embedder {
    /// Waits for Main's end, so that it takes no time from what is measured next.
    fn drop(&mut self) {
        let control = self.main.control();
        // Refused only in async code, where nothing is measured.
        let _ended = wait_for(PATIENCE, async {
            control.begin_shutdown().await;
            control.ended().await;
        });
    }
}

/// What work on the worker thread uses. It is set once Main has started.
pub(super) type Later<T> = Arc<OnceLock<T>>;

impl Embedder {
    /// Starts Main. Every extension that starts with it must be ready.
    pub(super) fn start(builder: Builder) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let main = runtime.block_on(builder.start())?;
        ensure_running(main.control())?;
        Ok(Self { main, runtime })
    }

    pub(super) fn main(&self) -> &Main {
        &self.main
    }

    pub(super) fn client(&self) -> &Client {
        self.main.client()
    }

    pub(super) fn control(&self) -> &Control {
        self.main.control()
    }

    /// The answer of the owner of `contract` to an operation with numbers as arguments.
    pub(super) fn ask(&self, contract: &str, operation: &str, arguments: &[u32]) -> Result<Bytes> {
        let mut answers = self.ask_all(&[contract.to_owned()], operation, arguments)?;
        answers.pop().context("nobody was asked")
    }

    /// The answers of the owners of these contracts, called at the same time.
    pub(super) fn ask_all(
        &self,
        contracts: &[String],
        operation: &str,
        arguments: &[u32],
    ) -> Result<Vec<Bytes>> {
        let arguments = payload(arguments);
        let calls = contracts
            .iter()
            .map(|contract| self.client().call_with(contract, operation, arguments.clone(), patient()));
        self.run(async { Ok(try_join_all(calls).await?) })
    }

    /// Has the service that [`on_the_worker`] made do its work, and returns the time of that.
    pub(super) fn timed(&self, arguments: &[u32]) -> Result<Duration> {
        let answer = self.ask(TIMED, "go", arguments)?;
        Ok(Duration::from_nanos(u64::from_le_bytes(answer.as_ref().try_into()?)))
    }

    /// Runs a task of this program to its end. An extension's own error explains more than its consequences.
    pub(super) fn run<T>(&self, task: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(task).or_else(|error| {
            ensure_running(self.control())?;
            Err(error)
        })
    }

    /// Publishes an event, and returns the payloads of the `number` events that answer it.
    pub(super) fn publish_and_hear(
        &self,
        topic: &str,
        payload: String,
        (answers, number): (&mut Subscriber, u32),
    ) -> Result<Vec<Bytes>> {
        self.run(async {
            self.client().publish(topic, payload).await?;
            let mut heard = Vec::new();
            for _ in 0..number {
                let event = timeout(PATIENCE, answers.next()).await.context("nothing more is heard")?;
                heard.push(event.context("Main has ended")?.payload);
            }
            Ok(heard)
        })
    }

    pub(super) fn start_all(&self, ids: &[&str]) -> Result<()> {
        ids.iter().try_for_each(|id| Ok(wait(self.control().start(id))?))
    }

    pub(super) fn stop_all(&self, ids: &[&str]) -> Result<()> {
        ids.iter().try_for_each(|id| Ok(wait(self.control().stop(id))?))
    }

    pub(super) fn running(&self, id: &str) -> Result<ExtensionStatus> {
        let status = self.control().status(id)?;
        ensure!(runs(&status), "`{id}` is {:?}: {:?}", status.state, status.failures.last());
        Ok(status)
    }

    /// Calls the echo repeatedly, with a pause before each call: from a plain thread, or from this program's runtime.
    /// Returns the time of each.
    ///
    /// Without the pause the next request would arrive before the echo looks, and one turn of the echo would
    /// serve many calls.
    pub(super) fn echo(&self, is_blocking: bool, calls: usize) -> Result<Vec<Duration>> {
        const PAUSE: Duration = Duration::from_millis(1);
        const REQUEST: &[u8] = b"sixteen bytes ok";

        let call = || self.client().call("echo@1", "echo", REQUEST);
        let times = (0..calls).map(|_| {
            let (time, answer) = if is_blocking {
                wait_until(Instant::now() + PAUSE);
                let start = Instant::now();
                let answer = wait(call());
                (start.elapsed(), answer.context("the echo failed")?)
            } else {
                let (time, answer) = self.runtime.block_on(async {
                    tokio::time::sleep(PAUSE).await;
                    let start = Instant::now();
                    let answer = call().await;
                    (start.elapsed(), answer)
                });
                (time, answer.context("the echo failed")?)
            };
            ensure!(answer == REQUEST, "the echo answered otherwise");
            Ok(time)
        });
        times.collect()
    }
}

/// The contract of the service that [`on_the_worker`] makes.
const TIMED: &str = "timed@1";

/// A service of Main that does something on its worker thread, told by numbers, and says how long it took.
pub(super) fn on_the_worker<T, F>(
    work: impl Fn(T, Vec<u32>) -> F + Send + Sync + 'static,
) -> Result<(Service, Later<T>)>
where
    T: Clone + Send + Sync + 'static,
    F: Future<Output = Result<Duration>> + Send + 'static,
{
    // A handler is there before Main, and so before what Main gives.
    let later = Later::<T>::default();
    let with = later.clone();
    let service = Service::new(TIMED.parse()?).on("go".parse()?, move |request| {
        let work = with.get().map(|with| work(with.clone(), numbers(&request.payload)));
        async move {
            let time = async { work.context("Main has not started yet")?.await }.await;
            let nanoseconds = time.and_then(|time| Ok(u64::try_from(time.as_nanos())?));
            let answer = nanoseconds.map(|time| Bytes::from(time.to_le_bytes().to_vec()));
            answer.map_err(|error| HandlerError::new("go", format!("{error:#}")))
        }
    });
    Ok((service, later))
}

/// Main with these extensions, and with the defaults of all else.
pub(super) fn builder(extensions: Vec<ExtensionConfig>) -> Builder {
    Main::builder(Config::new(MainConfig::default(), extensions))
}

pub(super) fn patient() -> CallOptions {
    CallOptions::default().timeout(PATIENCE)
}

/// A message of numbers: four bytes each, little-endian.
pub(super) fn payload(numbers: &[u32]) -> Bytes {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub(super) fn numbers(payload: &[u8]) -> Vec<u32> {
    payload.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect()
}

/// Every extension that starts with Main must run.
pub(super) fn ensure_running(control: &Control) -> Result<()> {
    for extension in control.extensions() {
        let waits = extension.state == ExtensionState::Loaded;
        let ExtensionStatus { id, state, reason, .. } = &extension;
        let failure = extension.failures.last();
        ensure!(waits || runs(&extension), "`{id}` is {state:?}: {reason:?}, {failure:?}");
    }
    Ok(())
}

fn runs(extension: &ExtensionStatus) -> bool {
    matches!(extension.state, ExtensionState::Ready | ExtensionState::Interrupted)
}
