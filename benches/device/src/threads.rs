//! The seed's second design: a thread for each, with a runtime and a bounded channel.

use std::{sync::Arc, thread, time::Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::runtime;

use crate::{
    Answering,
    native::{CAPACITY, Message, Request, call},
};

/// Bytes of each stack, as in the seed's class `medium`.
const STACK_BYTES: usize = 1 << 20;

pub(crate) fn start(count: u32) -> Result<Answering> {
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
