//! Serves an echo from a thread of its own.

use std::{sync::mpsc, thread};

use anyhow::{Context, Result};
use weir_peer::Requests;

use crate::{Answering, connect, processor_time, runtime};

pub(crate) fn start(socket: &str, name: &str, contract: &str) -> Result<Answering> {
    let (tell, told) = mpsc::sync_channel(1);
    let [socket, name, contract] = [socket, name, contract].map(str::to_owned);
    let _thread = thread::Builder::new().name("serving".to_owned()).spawn(move || {
        let served = runtime().and_then(|runtime| {
            let requests = runtime.block_on(async {
                let peer = connect(&socket, &name).await?;
                anyhow::Ok(peer.serve(&contract, &["echo"]).await?)
            })?;
            Ok((runtime, requests))
        });
        match served {
            // Fails if nothing waits any more.
            Err(error) => drop(tell.send(Err(error))),
            Ok((runtime, requests)) => {
                drop(tell.send(Ok(())));
                runtime.block_on(echo(requests));
            }
        }
    })?;
    told.recv().context("the server has ended")??;
    Ok(Box::new(|_| Ok(processor_time().to_string())))
}

async fn echo(mut requests: Requests) {
    while let Some(request) = requests.next().await {
        let payload = request.payload().clone();
        request.answer(Ok(payload)).await;
    }
}
