//! Calls of an echo, made and checked in the same way for every side, and native tasks: the baseline of extensions.

use std::{
    fmt::Display,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use async_channel::Sender;
use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio::{runtime, sync::oneshot, time::timeout};
use weir_host::client::ClientOperation;

use super::device::{Device, PATIENCE};
use crate::figure::microseconds;

/// Names of the payload sizes, and bytes.
pub(super) const SIZES: [(&str, u32); 3] = [("16 B", 16), ("1 KiB", 1024), ("10 KiB", 10 * 1024)];

/// Requests that may wait, as in Main's inboxes.
pub(super) const CAPACITY: usize = 256;

/// What answers a call with the payload.
pub(crate) trait Echo: Send + 'static {
    fn call(&mut self, payload: Bytes) -> impl Future<Output = Result<Bytes>> + Send;
}

impl Echo for ClientOperation {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        Ok(Self::call(self, payload).await?)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    pub(crate) number: u32,
    /// Bytes of a payload, at least four.
    pub(crate) size: u32,
    /// Calls under way from the one task that makes them all.
    pub(crate) at_once: u32,
}

impl Calls {
    /// Makes all calls. Returns the time, and each echo as it is afterwards.
    pub(crate) async fn make<E: Echo + Clone>(self, echo: E) -> Result<(Duration, Vec<E>)> {
        let start = Instant::now();
        let echoes = if self.at_once == 1 {
            vec![self.in_turn(echo, self.number).await?]
        } else {
            let share = self.number / self.at_once;
            try_join_all((0..self.at_once).map(|_| self.in_turn(echo.clone(), share))).await?
        };
        Ok((start.elapsed(), echoes))
    }

    /// Makes calls, each after the answer to the one before. Fails if an answer is not what was sent.
    pub(crate) async fn in_turn<E: Echo>(self, mut echo: E, calls: u32) -> Result<E> {
        let size = usize::try_from(self.size)?;
        let mut template = vec![0x5a; size];
        for number in 0..calls {
            let number = number.to_le_bytes();
            *template.first_chunk_mut().context("a payload has no room for a number")? = number;
            let answer = echo.call(Bytes::copy_from_slice(&template)).await?;
            ensure!(
                answer.len() == size && answer.first_chunk() == Some(&number),
                "the echo answered otherwise"
            );
        }
        Ok(echo)
    }
}

/// Nanoseconds of a call in each round.
pub(super) fn per_call(round: Duration, calls: u32) -> f64 {
    1e9 * round.as_secs_f64() / f64::from(calls)
}

/// What one request of a program took in a round, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// Processor time of all processes, and of the server alone.
    pub(super) processor: f64,
    pub(super) server: f64,
    pub(super) time: f64,
    /// The median, and the 99th percentile. Both are zero where the caller does not take the time of each request.
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Round {
    /// Has a caller make a round. It answers with its time, its processor time, the median and the 99th percentile.
    /// `used` is the processor time of the server so far.
    pub(super) fn of(
        caller: &mut Device,
        asked: impl Display,
        number: u32,
        mut used: impl FnMut() -> Result<Duration>,
    ) -> Result<Self> {
        let before = used()?;
        let answer = caller.numbers(asked)?;
        let number = f64::from(number);
        let server = microseconds(used()? - before) / number;
        let parts: Vec<_> = answer.into_iter().map(|part| microseconds(Duration::from_nanos(part))).collect();
        let [time, caller, p50, p99] = *parts else {
            anyhow::bail!("the caller does not answer with four numbers")
        };
        Ok(Self { processor: server + caller / number, server, time: time / number, p50, p99 })
    }
}

/// A thread with a runtime that has timers and sockets, like Main's worker. Dropped, it ends its tasks and itself.
#[derive(Debug)]
pub(super) struct Worker {
    runtime: runtime::Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start() -> Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("native".to_owned()).spawn(move || {
            // The thread ends when the sender is dropped.
            let _stopped = runtime.block_on(stopped);
        })?;
        Ok(Self { runtime: handle, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // The task is not awaited: it ends by itself, or with the runtime.
        let _detached = self.runtime.spawn(task);
    }

    /// Runs a task on the thread, and waits for its result.
    pub(super) fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (tell, told) = mpsc::sync_channel(1);
        self.spawn(async move {
            // Telling fails if nothing waits any more.
            let _told = tell.send(task.await);
        });
        told.recv_timeout(PATIENCE).context("a task does not end")
    }

    /// The time of these calls from a task of the thread.
    pub(super) fn round(&self, calls: Calls, echo: impl Echo + Clone) -> Result<Duration> {
        Ok(self.run(calls.make(echo))??.0)
    }

    /// Processor time of the thread.
    pub(super) fn used(&self) -> Result<Duration> {
        self.run(async { crate::process::of_this_thread() })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already.
            let _ended = thread.join();
        }
    }
}

/// A native echo and its caller, which sets a deadline for each call.
pub(super) fn server() -> (Caller, impl Future<Output = ()> + Send) {
    let (requests, served) = async_channel::bounded::<Request>(CAPACITY);
    let echo = async move {
        while let Ok(request) = served.recv().await {
            // The reply fails if the caller has given up.
            let _answered = request.reply.send(request.payload);
        }
    };
    (Caller { requests, next: 0, within: Some(PATIENCE) }, echo)
}

#[derive(Debug)]
#[expect(dead_code, reason = "the echo has no use for what every request says of itself")]
struct Request {
    id: u64,
    sender: u32,
    operation: u32,
    sent: Instant,
    payload: Bytes,
    reply: oneshot::Sender<Bytes>,
}

#[derive(Clone, Debug)]
pub(super) struct Caller {
    requests: Sender<Request>,
    next: u64,
    /// The deadline of a call, if there is one.
    within: Option<Duration>,
}

impl Caller {
    pub(super) fn without_deadlines(&self) -> Self {
        Self { within: None, ..self.clone() }
    }
}

impl Echo for Caller {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        let (reply, answer) = oneshot::channel();
        self.next += 1;
        let request =
            Request { id: self.next, sender: 0, operation: 0, sent: Instant::now(), payload, reply };
        self.requests.send(request).await.context("the echo has ended")?;
        let answer = match self.within {
            Some(within) => timeout(within, answer).await.context("the echo does not answer")?,
            None => answer.await,
        };
        answer.context("the echo has ended")
    }
}
