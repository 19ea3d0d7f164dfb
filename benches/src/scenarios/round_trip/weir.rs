//! Main with an echo, and a handler that calls it.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use weir_host::{
    Client, Config, HandlerError, Main, MainConfig, Service,
    config::{ComponentSource, CpuShare},
};

use crate::scenarios::{Bench, calls::Calls, embedder::Embedder};

/// A Main with a handler that calls from the worker thread, like every caller that shares a thread with Main.
#[derive(Debug)]
pub(super) struct Weir {
    embedder: Embedder,
}

impl Weir {
    pub(super) fn start(bench: &Bench, component: &str) -> Result<Self> {
        let mut echo = bench.guests.echo()?;
        echo.component = ComponentSource::Path(bench.guests.component(component));
        // It is busy all the time.
        echo.limits.cpu_share = CpuShare::WHOLE;
        // A handler is registered before Main's client exists.
        let client = Arc::new(OnceLock::new());
        let for_handler: Arc<OnceLock<Client>> = client.clone();
        let caller = Service::new("caller@1".parse()?).on("go".parse()?, move |request| {
            let client = for_handler.get().cloned();
            async move { go(client, &request.payload).await.map_err(told) }
        });
        let config = Config::new(MainConfig::default(), vec![echo]);
        let embedder = Embedder::start(Main::builder(config).serve(caller))?;
        client.get_or_init(|| embedder.client().clone());
        Ok(Self { embedder })
    }

    pub(super) fn round(&self, calls: Calls) -> Result<Duration> {
        let Calls { number, size, at_once } = calls;
        let answer = self.embedder.ask("caller@1", "go", &[number, size, at_once])?;
        Ok(Duration::from_nanos(u64::from_le_bytes(answer.as_ref().try_into()?)))
    }
}

/// The handler's answer: nanoseconds.
async fn go(client: Option<Client>, arguments: &[u8]) -> Result<Bytes> {
    let client = client.context("Main has not started yet")?;
    let [number, size, at_once] = arguments.as_chunks().0 else { anyhow::bail!("three numbers are needed") };
    let [number, size, at_once] = [number, size, at_once].map(|number| u32::from_le_bytes(*number));
    let time = Calls { number, size, at_once }.make(client.operation("echo@1", "echo")?).await?;
    Ok(u64::try_from(time.as_nanos())?.to_le_bytes().to_vec().into())
}

fn told(error: anyhow::Error) -> HandlerError {
    HandlerError::new("go", format!("{error:#}"))
}
