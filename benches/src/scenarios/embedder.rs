//! A program that embeds Main, and calls extensions from a thread with its own runtime.

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio::{runtime::Runtime, time::timeout};
use weir_host::{Builder, CallOptions, Client, Main, client::Subscriber};

use super::{
    client::{ensure_running, ensure_started},
    tasks::PATIENCE,
};

/// Main, and the calling runtime. Dropped, it shuts down.
#[derive(Debug)]
pub(super) struct Embedder {
    main: Main,
    runtime: Runtime,
}

impl Embedder {
    /// Starts Main. Every extension must be ready.
    pub(super) fn start(builder: Builder) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let main = runtime.block_on(builder.start())?;
        ensure_started(main.control())?;
        Ok(Self { main, runtime })
    }

    pub(super) fn client(&self) -> &Client {
        self.main.client()
    }

    /// The answer of the owner of `contract` to an operation with numbers as arguments.
    pub(super) fn ask(&self, contract: &str, operation: &str, arguments: &[u32]) -> Result<Bytes> {
        let mut answers = self.ask_all(&[contract.to_owned()], operation, arguments)?;
        answers.pop().context("nobody was asked")
    }

    /// The answers of the owners of these contracts, called at the same time.
    pub(super) fn ask_all(
        &self,
        contracts: &[String],
        operation: &str,
        arguments: &[u32],
    ) -> Result<Vec<Bytes>> {
        let arguments: Bytes = arguments.iter().flat_map(|number| number.to_le_bytes()).collect();
        let calls = contracts.iter().map(|contract| {
            let options = CallOptions::default().timeout(PATIENCE);
            self.client().call_with(contract, operation, arguments.clone(), options)
        });
        let answers = self.runtime.block_on(try_join_all(calls)).map_err(Into::into);
        self.unless_ended(answers)
    }

    /// Runs a task of this program to its end.
    pub(super) fn run<T>(&self, task: impl Future<Output = Result<T>>) -> Result<T> {
        let outcome = self.runtime.block_on(task);
        self.unless_ended(outcome)
    }

    /// Publishes, and receives as many events in answer.
    pub(super) fn publish_and_hear(
        &self,
        topic: &str,
        payload: String,
        (answers, number): (&mut Subscriber, u32),
    ) -> Result<Vec<Bytes>> {
        let heard = self.runtime.block_on(async {
            self.client().publish(topic, payload).await?;
            let mut heard = Vec::new();
            for _ in 0..number {
                let event = timeout(PATIENCE, answers.next()).await.context("nothing more is heard")?;
                heard.push(event.context("Main has ended")?.payload);
            }
            Ok(heard)
        });
        self.unless_ended(heard)
    }

    /// An extension's own error explains more than its consequences.
    fn unless_ended<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.or_else(|error| {
            ensure_running(self.main.control())?;
            Err(error)
        })
    }
}
