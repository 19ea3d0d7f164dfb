//! A Main with a client of one of the embedders' two kinds.

use std::{
    fmt, thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use tokio::runtime::Runtime;
use weir_host::{
    Builder, Control, Main,
    blocking::wait,
    control::{ExtensionState, ExtensionStatus},
};

/// Time between an answer and the next call.
const PAUSE: Duration = Duration::from_millis(1);

/// How the embedding program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blocking,
    Async,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocking => "blocking client",
            Self::Async => "async client",
        })
    }
}

/// A Main and its client. Dropped, it shuts down.
#[derive(Debug)]
pub(super) struct Host {
    runtime: Runtime,
    main: Either,
}

#[derive(Debug)]
enum Either {
    Blocking(Main),
    Async(Main),
}

impl Host {
    /// Starts Main. Every extension that starts with it must be ready.
    pub(super) fn start(kind: Kind, builder: Builder) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let main = match kind {
            Kind::Blocking => Either::Blocking(wait(builder.start())?),
            Kind::Async => Either::Async(runtime.block_on(builder.start())?),
        };
        let host = Self { runtime, main };
        ensure_started(&host.control())?;
        Ok(host)
    }

    pub(super) fn control(&self) -> Control {
        match &self.main {
            Either::Blocking(main) => main.control().clone(),
            Either::Async(main) => main.control().clone(),
        }
    }

    pub(super) fn start_all<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let control = self.control();
        self.runtime.block_on(async {
            for id in ids {
                control.start(id).await?;
            }
            Ok(())
        })
    }

    pub(super) fn stop_all<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let control = self.control();
        self.runtime.block_on(async {
            for id in ids {
                control.stop(id).await?;
            }
            Ok(())
        })
    }

    pub(super) fn running(&self, id: &str) -> Result<ExtensionStatus> {
        let status = self.control().status(id)?;
        ensure!(runs(&status), "`{id}` is {:?}: {:?}", status.state, status.failures.last());
        Ok(status)
    }

    pub(super) fn call(&self, contract: &str, operation: &str) -> Result<Bytes> {
        Ok(match &self.main {
            Either::Blocking(main) => wait(main.client().call(contract, operation, ""))?,
            Either::Async(main) => self.runtime.block_on(main.client().call(contract, operation, ""))?,
        })
    }

    /// Calls the echo repeatedly, with a pause before each call. Returns the time of each.
    ///
    /// Without the pause the next request would arrive before the echo looks, and one turn of the echo would
    /// serve many calls.
    pub(super) fn echo(&self, calls: usize) -> Result<Vec<Duration>> {
        const REQUEST: &[u8] = b"sixteen bytes ok";
        let mut times = Vec::with_capacity(calls);
        match &self.main {
            Either::Blocking(main) => {
                let client = main.client();
                for _ in 0..calls {
                    wait_until(Instant::now() + PAUSE);
                    let start = Instant::now();
                    let answer = wait(client.call("echo@1", "echo", REQUEST));
                    times.push(start.elapsed());
                    ensure!(answer.context("the echo failed")? == REQUEST, "the echo answered otherwise");
                }
            }
            Either::Async(main) => self.runtime.block_on(async {
                for _ in 0..calls {
                    tokio::time::sleep(PAUSE).await;
                    let start = Instant::now();
                    let answer = main.client().call("echo@1", "echo", REQUEST).await;
                    times.push(start.elapsed());
                    ensure!(answer.context("the echo failed")? == REQUEST, "the echo answered otherwise");
                }
                Ok(())
            })?,
        }
        Ok(times)
    }
}

/// Every extension that starts with Main must be ready.
pub(super) fn ensure_started(control: &Control) -> Result<()> {
    for extension in control.extensions() {
        let waits = extension.state == ExtensionState::Loaded;
        ensure!(waits || runs(&extension), "`{}` did not start: {:?}", extension.id, extension.reason);
    }
    Ok(())
}

/// Every extension that starts with Main must still run.
pub(super) fn ensure_running(control: &Control) -> Result<()> {
    for extension in control.extensions() {
        let waits = extension.state == ExtensionState::Loaded;
        ensure!(waits || runs(&extension), "`{}` ended: {:?}", extension.id, extension.failures.last());
    }
    Ok(())
}

/// Waits on this thread. The token of an old waker ends a park at once.
pub(super) fn wait_until(end: Instant) {
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

fn runs(extension: &ExtensionStatus) -> bool {
    matches!(extension.state, ExtensionState::Ready | ExtensionState::Interrupted)
}
