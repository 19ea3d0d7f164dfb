//! Weir's entries, each with its own Main.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use tokio::runtime::Runtime;
use weir_host::{
    CallOptions, Config, HandlerError, Main, MainConfig, Service,
    blocking::wait,
    hooks::{HookCall, HookDir, HookReport},
};

use super::{
    HOOKS, node,
    site::{Site, ensure_hello},
};
use crate::scenarios::tasks::PATIENCE;

/// A plain loop on the calling thread.
#[derive(Debug)]
pub(super) struct Blocking {
    hooks: HookDir,
    /// Dropped last: it runs the hooks.
    _main: Main,
}

impl Blocking {
    pub(super) fn start(site: &Site) -> Result<Self> {
        let main = wait(builder().start())?;
        Ok(Self { hooks: main.hooks().open(site.config()?)?, _main: main })
    }

    pub(super) fn round(&self, nodes: u32) -> Result<Duration> {
        let start = Instant::now();
        for number in 0..nodes {
            let node = node(number);
            check(&self.hooks.run_blocking(call(&node))?, &node)?;
        }
        Ok(start.elapsed())
    }
}

/// A loop of async code: in a task of another runtime, or of Main's own.
#[derive(Debug)]
pub(super) struct Async {
    hooks: HookDir,
    main: Main,
    runtime: Runtime,
}

impl Async {
    pub(super) fn start(site: &Site) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // The handler exists before Main, the hooks after it.
        let opened = Arc::new(OnceLock::new());
        let for_handler = opened.clone();
        let on_worker = Service::new("loop@1".parse()?).on("round".parse()?, move |request| {
            let hooks = for_handler.get().cloned();
            async move { answer(hooks, &request.payload).await.map_err(told) }
        });
        let main = runtime.block_on(builder().serve(on_worker).start())?;
        let hooks = main.hooks().open(site.config()?)?;
        let hooks = opened.get_or_init(|| hooks).clone();
        Ok(Self { hooks, main, runtime })
    }

    pub(super) fn round_in_a_task(&self, nodes: u32) -> Result<Duration> {
        self.runtime.block_on(round(&self.hooks, nodes))
    }

    pub(super) fn round_on_the_worker(&self, nodes: u32) -> Result<Duration> {
        let options = CallOptions::default().timeout(PATIENCE);
        let nodes = nodes.to_le_bytes().to_vec();
        let call = self.main.client().call_with("loop@1", "round", nodes, options);
        let answer = self.runtime.block_on(call)?;
        Ok(Duration::from_nanos(u64::from_le_bytes(answer.as_ref().try_into()?)))
    }
}

async fn round(hooks: &HookDir, nodes: u32) -> Result<Duration> {
    let start = Instant::now();
    for number in 0..nodes {
        let node = node(number);
        check(&hooks.run(call(&node)).await?, &node)?;
    }
    Ok(start.elapsed())
}

async fn answer(hooks: Option<HookDir>, nodes: &[u8]) -> Result<Bytes> {
    let hooks = hooks.context("the hooks are not open yet")?;
    let time = round(&hooks, u32::from_le_bytes(nodes.try_into()?)).await?;
    Ok(u64::try_from(time.as_nanos())?.to_le_bytes().to_vec().into())
}

fn told(error: anyhow::Error) -> HandlerError {
    HandlerError::new("round", format!("{error:#}"))
}

pub(super) fn builder() -> weir_host::Builder {
    Main::builder(Config::new(MainConfig::default(), Vec::new()))
}

fn call(node: &str) -> HookCall {
    HookCall::new().param("NODE", node)
}

fn check(report: &HookReport, node: &str) -> Result<()> {
    let all = report.is_success() && report.runs.len() == HOOKS.len();
    ensure!(all, "the hooks of `{node}` did not end well: {report:?}");
    ensure_hello(report.runs.last().map_or(b"", |last| &last.stdout), node)
}
