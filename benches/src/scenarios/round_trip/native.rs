//! Two tasks of one thread: one calls, the other echoes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_channel::{Receiver, Sender};
use bytes::Bytes;
use tokio::{sync::oneshot, time::timeout};

use crate::scenarios::{
    calls::{Calls, Echo},
    tasks::{PATIENCE, Worker},
};

/// Requests that may wait, as in Main's inboxes.
const CAPACITY: usize = 256;

/// A thread with two echoes, one for each way.
#[derive(Debug)]
pub(super) struct Native {
    worker: Worker,
    server: Caller,
    pair: Pair,
}

impl Native {
    pub(super) fn start() -> Result<Self> {
        let worker = Worker::start()?;
        let (server, echo) = server();
        worker.spawn(echo);
        let (there, came) = async_channel::bounded(CAPACITY);
        let (back, answers) = async_channel::bounded(CAPACITY);
        worker.spawn(async move {
            while let Ok(payload) = came.recv().await {
                if back.send(payload).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self { worker, server, pair: Pair { there, answers } })
    }

    /// Calls with deadlines, of a server that any number of tasks could call.
    pub(super) fn round(&self, calls: Calls) -> Result<Duration> {
        self.worker.run(calls.make(self.server.clone()))?
    }

    /// The same without deadlines.
    pub(super) fn round_without_deadlines(&self, calls: Calls) -> Result<Duration> {
        self.worker.run(calls.make(Caller { within: None, ..self.server.clone() }))?
    }

    /// Calls of a server with a single caller.
    pub(super) fn round_through_channels(&self, calls: Calls) -> Result<Duration> {
        self.worker.run(calls.make(self.pair.clone()))?
    }
}

/// An echo and its caller, which sets a deadline for each call.
pub(in crate::scenarios) fn server() -> (Caller, impl Future<Output = ()> + Send) {
    let (requests, served) = async_channel::bounded::<Request>(CAPACITY);
    let echo = async move {
        while let Ok(request) = served.recv().await {
            // Fails if the caller has given up.
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
pub(in crate::scenarios) struct Caller {
    requests: Sender<Request>,
    next: u64,
    within: Option<Duration>,
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

#[derive(Clone, Debug)]
struct Pair {
    there: Sender<Bytes>,
    answers: Receiver<Bytes>,
}

impl Echo for Pair {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        self.there.send(payload).await.context("the echo has ended")?;
        self.answers.recv().await.context("the echo has ended")
    }
}
