//! The seed's first design: each receiver looks into its crossbeam channel every 5 ms. Here they are tasks of
//! one thread; the seed's thread for each takes more.

use std::{future::pending, thread, time::Duration};

use anyhow::{Context, Result};
use crossbeam_channel::{TryRecvError, bounded};
use tokio::runtime;

use crate::{
    Answering,
    native::{CAPACITY, Request, call},
};

const INTERVAL: Duration = Duration::from_millis(5);

pub(crate) fn start(count: u32) -> Result<Answering> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| bounded::<Request>(CAPACITY)).unzip();
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
