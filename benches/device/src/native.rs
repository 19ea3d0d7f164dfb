//! Messages to native receivers, and calls of one.

use std::{sync::Arc, time::Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::sync::oneshot;

/// Messages that may wait for one: as in the class `min`.
pub(crate) const CAPACITY: usize = 64;

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) payload: Bytes,
    pub(crate) answer: oneshot::Sender<Bytes>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is only as large as it is")]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) sender: u32,
    pub(crate) sent: Instant,
    pub(crate) operation: Arc<str>,
    pub(crate) payload: Bytes,
}

pub(crate) fn call(argument: &str, send: impl FnOnce(Request) -> Result<()>) -> Result<String> {
    let (answer, answered) = oneshot::channel();
    send(Request { payload: Bytes::from(argument.to_owned()), answer })?;
    let answer = answered.blocking_recv().context("nobody answers")?;
    Ok(String::from_utf8(answer.into())?)
}
