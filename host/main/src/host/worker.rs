//! The worker thread. Everything that waits for it learns of its end, even by a panic.

use std::{
    future::Future,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::sys::signal::{
    SigSet,
    Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP},
};
use tokio::runtime::{Handle, Runtime};
use weir_bus::Bus;

use crate::peers::Registry;

/// The name of the thread, as `ps -L` shows it.
const THREAD_NAME: &str = "weir-main";

/// Time for blocking work, such as file operations, after all else has ended.
const BLOCKING_GRACE: Duration = Duration::from_millis(100);

/// Main ended by its own fault: its worker thread panicked. The panic is on stderr, and nothing of Main runs any
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("main has ended by a fault of its own: its worker thread panicked")]
pub struct WorkerPanicked;

#[derive(Debug)]
pub(super) struct Worker(Option<JoinHandle<()>>);

impl Worker {
    /// Runs `work` on its own thread; drops `ending` when all has ended.
    pub(super) fn start(
        runtime: WorkerRuntime,
        work: impl Future<Output = ()> + Send + 'static,
        ending: async_channel::Sender<()>,
    ) -> io::Result<Self> {
        let body = move || {
            // Declared first, so that it is dropped last.
            let _ending = ending;
            block_signals();
            weir_schedule::mark_worker_thread();
            runtime.run(work);
        };
        thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(body).map(|thread| Self(Some(thread)))
    }

    /// Waits for the thread's end. On the worker thread itself, and after an earlier `join`, returns `Ok` at once.
    pub(super) fn join(&mut self) -> Result<(), WorkerPanicked> {
        match self.0.take() {
            Some(thread) if !weir_schedule::is_worker_thread() => thread.join().map_err(|_| WorkerPanicked),
            _ => Ok(()),
        }
    }
}

/// Blocks the signals that the process gets from outside, on this thread and those that it starts. Handlers of the
/// embedding program would else run here. Signals for what a thread itself does stay: wasmtime needs some, and a blocked
/// one would end the process.
fn block_signals() {
    let mut blocked = SigSet::all();
    let own = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP];
    own.into_iter().for_each(|signal| blocked.remove(signal));
    // Fails only for a wrong argument.
    let _blocked = blocked.thread_block();
}

/// Ends the sessions of peers and closes the bus when dropped, so that every wait ends.
#[derive(Debug)]
pub(super) struct OpenBus(pub(super) Arc<Bus>, pub(super) Arc<Registry>);

impl Drop for OpenBus {
    fn drop(&mut self) {
        self.1.close();
        self.0.close();
    }
}

/// A runtime whose drop never waits, not even in async code or while blocking work hangs.
#[derive(Debug)]
pub(super) struct WorkerRuntime {
    pub(super) handle: Handle,
    runtime: Option<Runtime>,
}

impl WorkerRuntime {
    pub(super) fn new(blocking_threads: usize) -> io::Result<Self> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("weir-blocking")
            .on_thread_start(block_signals)
            .max_blocking_threads(blocking_threads)
            // Otherwise extensions that keep each other busy delay a wake-up from another thread by more polls.
            .global_queue_interval(2)
            .build()
            .map(|runtime| Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    fn run(mut self, work: impl Future<Output = ()>) {
        if let Some(runtime) = &self.runtime {
            runtime.block_on(work);
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(BLOCKING_GRACE);
        }
    }
}

impl Drop for WorkerRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::{client::Client, test_bus};
    use weir_bus::Error;

    #[tokio::test]
    async fn a_runtime_for_which_there_is_no_thread_is_dropped_in_async_code() {
        drop(WorkerRuntime::new(1).unwrap());
    }

    #[tokio::test]
    async fn a_panic_on_the_worker_ends_every_wait() {
        let bus = test_bus::bus();
        bus.serve_from_main(&"a@1".parse().unwrap(), &["do".to_owned()]).unwrap();
        let client = Client::new(bus.clone());
        let mut subscriber = client.subscribe("t").unwrap();
        let (ending, ended) = async_channel::bounded(1);
        let (go, gone) = oneshot::channel::<()>();
        let open = OpenBus(bus.clone(), Registry::new(bus, Duration::ZERO));
        let work = async move {
            let _open = open;
            gone.await.unwrap();
            panic!("on purpose");
        };
        let mut worker = Worker::start(WorkerRuntime::new(1).unwrap(), work, ending).unwrap();
        let call = client.call("a@1", "do", "");
        let panic = async {
            assert_eq!(client.waiters(), 1);
            go.send(()).unwrap();
        };
        let (answer, ()) = tokio::join!(biased; call, panic);
        assert_eq!(answer, Err(Error::Ended));
        assert_eq!(subscriber.next().await, None);
        assert!(ended.recv().await.is_err());
        assert_eq!(worker.join(), Err(WorkerPanicked));
    }
}
