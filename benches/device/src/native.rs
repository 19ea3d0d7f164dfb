//! The seed's designs, natively: each receiver looks into its crossbeam channel every 5 ms; or a thread for each, with a
//! runtime and a bounded channel.

use std::{
    future::pending,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use crossbeam_channel::TryRecvError;
use tokio::{runtime, sync::oneshot};

use crate::Answering;

/// Messages that may wait for one: as in the class `min`.
const CAPACITY: usize = 64;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// Bytes of each stack, as in the seed's class `medium`.
const STACK_BYTES: usize = 1 << 20;

/// The receivers are tasks of one thread; the seed's thread for each takes more.
pub(crate) fn polled(count: u32) -> Result<Answering> {
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..count).map(|_| crossbeam_channel::bounded::<Request>(CAPACITY)).unzip();
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    for receiver in receivers {
        let _detached = runtime.spawn(poll(receiver));
    }
    let body = move || runtime.block_on(pending::<()>());
    let _thread = thread::Builder::new().name("native".to_owned()).spawn(body)?;
    Ok(Box::new(move |_, _, argument| {
        let last = senders.last().context("there is nobody")?;
        call(argument, |request| Ok(last.send(request)?))
    }))
}

async fn poll(receiver: crossbeam_channel::Receiver<Request>) {
    loop {
        match receiver.try_recv() {
            Ok(request) => {
                // Fails if the caller has given up.
                let _answered = request.answer.send(request.payload);
            }
            Err(TryRecvError::Empty) => tokio::time::sleep(INTERVAL).await,
            Err(TryRecvError::Disconnected) => return,
        }
    }
}

pub(crate) fn threads(count: u32) -> Result<Answering> {
    let senders = (0..count).map(|number| {
        let (sender, receiver) = async_channel::bounded::<Request>(CAPACITY);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let body = move || {
            runtime.block_on(async {
                while let Ok(request) = receiver.recv().await {
                    // Fails if the caller has given up.
                    let _answered = request.answer.send(request.payload);
                }
            });
        };
        let _thread =
            thread::Builder::new().name(format!("native-{number}")).stack_size(STACK_BYTES).spawn(body)?;
        anyhow::Ok(sender)
    });
    let senders = senders.collect::<Result<Vec<_>>>()?;
    let mut filled = Vec::new();
    Ok(Box::new(move |_, operation, argument| match operation {
        "fill" => {
            filled.push(fill(argument.parse()?)?);
            Ok(argument.to_owned())
        }
        _ => {
            let last = senders.last().context("there is nobody")?;
            call(argument, |request| Ok(last.send_blocking(request)?))
        }
    }))
}

/// Both ends of a channel with this many messages.
fn fill(count: u32) -> Result<(async_channel::Sender<Message>, async_channel::Receiver<Message>)> {
    let channel = async_channel::bounded(usize::try_from(count)?);
    let operation: Arc<str> = "operation".into();
    for id in 0..count.into() {
        let payload = Bytes::from(vec![0; 16]);
        channel.0.send_blocking(Message {
            id,
            sender: 1,
            sent: Instant::now(),
            operation: operation.clone(),
            payload,
        })?;
    }
    Ok(channel)
}

#[derive(Debug)]
struct Request {
    payload: Bytes,
    answer: oneshot::Sender<Bytes>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is only as large as it is")]
struct Message {
    id: u64,
    sender: u32,
    sent: Instant,
    operation: Arc<str>,
    payload: Bytes,
}

fn call(argument: &str, send: impl FnOnce(Request) -> Result<()>) -> Result<String> {
    let (answer, answered) = oneshot::channel();
    send(Request { payload: Bytes::from(argument.to_owned()), answer })?;
    let answer = answered.blocking_recv().context("nobody answers")?;
    Ok(String::from_utf8(answer.into())?)
}
