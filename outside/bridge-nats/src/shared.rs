//! What all tasks of the bridge share.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    config::Config,
    events::Seen,
    jobs::{Brought, Earlier},
    subject::Subjects,
    tell::Times,
};

/// What all tasks of the bridge share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) subjects: Subjects,
    /// The number of this process, by which it knows itself.
    pub(crate) process: u64,
    pub(crate) times: Times,
    /// Causes with a stranger's words: they cannot use up what is kept for the bridge's own.
    pub(crate) strangers: Times,
    /// Numbers of events of other nodes: a loss while a link was away is seen after it.
    pub(crate) seen: Mutex<Seen>,
    /// Jobs that were brought, by queue: what a server forgets is seen after it.
    brought: Mutex<HashMap<Box<str>, Brought>>,
    stage: watch::Sender<Stage>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Running,
    /// Nothing new begins, and what is in hand goes on.
    Draining,
    Stopped,
}

impl Shared {
    pub(crate) fn new(config: Config) -> Self {
        let subjects = Subjects::new(&config.fleet, &config.node);
        let process = fastrand::u64(1..);
        Self {
            config,
            subjects,
            process,
            times: Times::default(),
            strangers: Times::default(),
            seen: Mutex::default(),
            brought: Mutex::default(),
            stage: watch::Sender::new(Stage::Running),
        }
    }

    /// The deliveries of a job before this one.
    pub(crate) fn deliveries_before(&self, queue: &str, number: u64, delivery: u32) -> Earlier {
        let mut brought = self.brought.lock();
        brought.entry(queue.into()).or_default().before(number, delivery)
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// A wait until nothing new begins.
    pub(crate) fn draining(&self) -> Reached {
        Reached { stage: self.stage.subscribe(), wanted: Stage::Draining }
    }

    /// A wait for the end.
    pub(crate) fn stopped(&self) -> Reached {
        Reached { stage: self.stage.subscribe(), wanted: Stage::Stopped }
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.stage.borrow() >= Stage::Draining
    }

    /// Whether the name is that of a bridge, whose messages came from elsewhere.
    pub(crate) fn is_bridge(sender: &str) -> bool {
        sender.starts_with(crate::config::KIND)
    }
}

/// A wait for a stage.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    stage: watch::Receiver<Stage>,
    wanted: Stage,
}

impl Reached {
    pub(crate) async fn wait(&mut self) {
        let wanted = self.wanted;
        // If all is gone, the end has come.
        drop(self.stage.wait_for(|stage| *stage >= wanted).await);
    }
}
