//! Extensions that end at once, started one after the other.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use weir_host::{
    CallOptions, Config, Control, HandlerError, Main, MainConfig, Service,
    blocking::{BlockingError, wait},
    config::CpuShare,
    control::{ControlError, ExtensionState, ExtensionStatus},
};

use crate::{guests::Guests, scenarios::tasks::PATIENCE};

const BRIEF: &str = "brief";

/// A Main with an extension that ends at once, and another that holds the program of both.
#[derive(Debug)]
pub(super) struct Brief(Main);

impl Brief {
    pub(super) fn start(guests: &Guests) -> Result<Self> {
        let mut extensions = Vec::new();
        for id in [BRIEF, "holder"] {
            let mut extension = guests.extension(id, BRIEF)?;
            extension.limits.cpu_share = CpuShare::WHOLE;
            extension.autostart = id != BRIEF;
            if extension.autostart {
                extension.grants.env.insert("STAY".to_owned(), "1".to_owned());
            }
            extensions.push(extension);
        }
        // The handler exists before Main, Main's control after it.
        let control = Arc::new(OnceLock::<Control>::new());
        let for_handler = control.clone();
        let starter = Service::new("starter@1".parse()?).on("start".parse()?, move |request| {
            let control = for_handler.get().cloned();
            async move { answer(control, &request.payload).await.map_err(told) }
        });
        let config = Config::new(MainConfig::default(), extensions);
        let main = wait(Main::builder(config).serve(starter).start())?;
        control.get_or_init(|| main.control().clone());
        let holder = main.control().status("holder")?;
        ensure!(
            holder.state == ExtensionState::Ready,
            "the holder is {:?}: {:?}",
            holder.state,
            holder.reason
        );
        // The first read from disk is not part of a start. Later starts check the ending.
        let _ended = wait(main.control().start(BRIEF));
        Ok(Self(main))
    }

    /// Starts by a waiting plain thread. Returns their time, and the part in which instances were made and
    /// ran.
    pub(super) fn by_a_thread(&self, count: u32) -> Result<(Duration, Duration)> {
        let control = self.0.control();
        let before = control.status(BRIEF)?;
        let start = Instant::now();
        for _ in 0..count {
            match wait(control.start(BRIEF)) {
                Err(BlockingError::Call(ControlError::NotStarted { .. })) => {}
                other => bail!("it did not end by itself: {other:?}"),
            }
        }
        let time = start.elapsed();
        let after = ended(control, before.restarts, count)?;
        Ok((time, after.cpu - before.cpu))
    }

    pub(super) fn on_the_worker(&self, count: u32) -> Result<Duration> {
        let options = CallOptions::default().timeout(PATIENCE);
        let count = count.to_le_bytes().to_vec();
        let answer = wait(self.0.client().call_with("starter@1", "start", count, options))?;
        Ok(Duration::from_nanos(u64::from_le_bytes(answer.as_ref().try_into()?)))
    }
}

/// The handler's answer: nanoseconds.
async fn answer(control: Option<Control>, count: &[u8]) -> Result<Bytes> {
    let control = control.context("Main is not there yet")?;
    let count = u32::from_le_bytes(count.try_into()?);
    let before = control.status(BRIEF)?.restarts;
    let start = Instant::now();
    for _ in 0..count {
        // It has ended without becoming ready, so the start reports that.
        match control.start(BRIEF).await {
            Err(ControlError::NotStarted { .. }) => {}
            other => bail!("it did not end by itself: {other:?}"),
        }
    }
    let time = start.elapsed();
    ended(&control, before, count)?;
    Ok(u64::try_from(time.as_nanos())?.to_le_bytes().to_vec().into())
}

fn told(error: anyhow::Error) -> HandlerError {
    HandlerError::new("start", format!("{error:#}"))
}

/// It must have been started this often, and have ended well each time.
fn ended(control: &Control, before: u64, count: u32) -> Result<ExtensionStatus> {
    let status = control.status(BRIEF)?;
    let restarts = status.restarts - before;
    ensure!(restarts == u64::from(count), "it was started {restarts} times, not {count}");
    ensure!(
        status.state == ExtensionState::Stopped && status.failures.is_empty(),
        "it is {:?}: {:?}",
        status.state,
        status.failures.last()
    );
    Ok(status)
}
