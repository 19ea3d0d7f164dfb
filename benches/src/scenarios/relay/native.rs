//! Three tasks of one thread: one calls, one routes, one echoes.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, Result};
use async_channel::Sender;
use bytes::Bytes;
use tokio::{sync::oneshot, time::timeout};

use crate::scenarios::{
    calls::{Calls, Echo},
    tasks::{PATIENCE, Worker},
};

/// Requests that may wait, as in Main's inboxes.
const CAPACITY: usize = 256;

#[derive(Debug)]
pub(super) struct Native {
    worker: Worker,
    caller: Caller,
}

impl Native {
    pub(super) fn start() -> Result<Self> {
        let worker = Worker::start()?;
        let (owner, owned) = async_channel::bounded::<Request>(CAPACITY);
        worker.spawn(async move {
            while let Ok(request) = owned.recv().await {
                // Fails if the caller has given up.
                let _answered = request.reply.send(request.payload);
            }
        });
        let (router, routed) = async_channel::bounded::<Addressed>(CAPACITY);
        let owners = HashMap::from([("echo@1", owner)]);
        worker.spawn(async move {
            while let Ok(Addressed { contract, request }) = routed.recv().await {
                // Without an owner, the caller hears that its request is gone.
                if let Some(owner) = owners.get(contract)
                    && owner.send(request).await.is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { worker, caller: Caller { router } })
    }

    pub(super) fn round(&self, calls: Calls) -> Result<Duration> {
        self.worker.run(calls.make(self.caller.clone()))?
    }
}

#[derive(Debug)]
struct Addressed {
    contract: &'static str,
    request: Request,
}

#[derive(Debug)]
#[expect(dead_code, reason = "the echo has only one operation")]
struct Request {
    operation: u32,
    payload: Bytes,
    reply: oneshot::Sender<Bytes>,
}

#[derive(Clone, Debug)]
struct Caller {
    router: Sender<Addressed>,
}

impl Echo for Caller {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        let (reply, answer) = oneshot::channel();
        let request = Request { operation: 0, payload, reply };
        self.router.send(Addressed { contract: "echo@1", request }).await.context("the router has ended")?;
        timeout(PATIENCE, answer).await.context("no answer comes")?.context("nobody owns the contract")
    }
}
