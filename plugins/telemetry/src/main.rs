//! Counts events: the contract `telemetry@1`.
//!
//! It subscribes to the patterns in `topics` of its `config` table, separated by commas; by default
//! `settings.changed.>`. The operator must grant all of them. An event that two patterns match counts twice.
//!
//! It keeps the counts through `local.storage@1` if there is one. It saves `save-after-s` seconds (default 30) after
//! the first unsaved event, so that nothing wakes up while nothing happens, and at a stop if events are unsaved.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    process::ExitCode,
    task::Poll,
    time::{Duration, Instant},
};

use futures_util::task::AtomicWaker;
use weir_contracts::{settings, storage, telemetry};
use weir_sdk::{CallOptions, Context, Empty, Error, Event, Extension, log};

use self::counts::Counts;

mod counts;
mod minute;

weir_sdk::manifest! {
    id: "telemetry",
    fulfills: &[telemetry::CONTRACT],
    wants: &[storage::CONTRACT],
    subscribes: &[">"],
}

/// The key of the counts in storage.
const STORED: &str = "telemetry/counts";

/// The default of `save-after-s`.
const SAVE_AFTER: Duration = Duration::from_secs(30);

/// Time for storage to answer. It is short, since start and stop wait for the answer, but go on without one.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    extension().run()
}

fn extension() -> Extension<Telemetry> {
    Extension::new(MANIFEST, Telemetry::new())
        .on_start(Telemetry::start)
        .on_any_event(async |telemetry: &Telemetry, _: &Context, event| {
            telemetry.count(&event);
            Ok(())
        })
        .on(telemetry::SNAPSHOT, async |telemetry: &Telemetry, _: &Context, _: Empty| {
            Ok(telemetry.counts.borrow_mut().snapshot(telemetry.started.elapsed()))
        })
        .background(Telemetry::save_changes)
        .on_stop(Telemetry::stop)
}

struct Telemetry {
    started: Instant,
    counts: RefCell<Counts>,
    save_after: Cell<Duration>,
    /// Whether the stored counts are added. Until then they must not be replaced.
    is_loaded: Cell<bool>,
    /// Whether there were events since the last attempt to save.
    is_changed: Cell<bool>,
    changed: AtomicWaker,
    /// Whether there were events since the last successful save.
    is_unsaved: Cell<bool>,
}

impl Telemetry {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            counts: RefCell::new(Counts::new()),
            save_after: Cell::new(SAVE_AFTER),
            is_loaded: Cell::new(false),
            is_changed: Cell::new(false),
            changed: AtomicWaker::new(),
            is_unsaved: Cell::new(false),
        }
    }

    async fn start(&self, context: &Context) -> Result<(), Error> {
        let topics = context.config("topics")?;
        let patterns = topics.as_deref().unwrap_or(settings::CHANGED.pattern()).split(',').map(str::trim);
        for pattern in patterns.filter(|pattern| !pattern.is_empty()) {
            context.subscribe(pattern)?;
        }
        if let Some(text) = context.config("save-after-s")? {
            let Ok(seconds @ 1..) = text.parse::<u32>() else {
                return Err(Error::invalid_argument(format_args!(
                    "`save-after-s` must be a number of seconds from 1, not `{text}`"
                )));
            };
            self.save_after.set(Duration::from_secs(seconds.into()));
        }
        if let Err(error) = self.load(context).await {
            log::warn("earlier counts are not there yet", &[("error", &error)]);
        }
        Ok(())
    }

    fn count(&self, event: &Event<Vec<u8>>) {
        self.counts.borrow_mut().add(&event.topic, event.lost, self.started.elapsed());
        self.is_changed.set(true);
        self.is_unsaved.set(true);
        self.changed.wake();
    }

    async fn save_changes(&self, context: &Context) -> Result<(), Error> {
        loop {
            poll_fn(|cx| {
                self.changed.register(cx.waker());
                if self.is_changed.get() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            context.sleep(self.save_after.get()).await;
            self.save(context).await;
        }
    }

    async fn stop(&self, context: &Context) -> Result<(), Error> {
        if self.is_unsaved.get() {
            self.save(context).await;
        }
        Ok(())
    }

    /// Saves the counts. If that fails, the next event causes the next attempt.
    async fn save(&self, context: &Context) {
        self.is_changed.set(false);
        match self.try_save(context).await {
            Ok(()) => self.is_unsaved.set(self.is_changed.get()),
            Err(error) => log::warn("the counts were not saved", &[("error", &error)]),
        }
    }

    async fn try_save(&self, context: &Context) -> Result<(), Error> {
        if !self.is_loaded.get() {
            self.load(context).await?;
        }
        let value = serde_json::to_value(self.counts.borrow().totals())?;
        let entry = storage::Entry { key: STORED.into(), value };
        context.call_with(storage::SET, &entry, CallOptions::new().timeout(STORAGE_TIMEOUT)).await?;
        Ok(())
    }

    async fn load(&self, context: &Context) -> Result<(), Error> {
        let key = storage::Key { key: STORED.into() };
        let found =
            context.call_with(storage::GET, &key, CallOptions::new().timeout(STORAGE_TIMEOUT)).await?;
        match found.value.map(serde_json::from_value).transpose() {
            Ok(totals) => self.counts.borrow_mut().add_all(totals.unwrap_or_default()),
            // Any caller of storage can write there.
            Err(error) => log::warn("what is stored are no counts, and is replaced", &[("error", &error)]),
        }
        self.is_loaded.set(true);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
