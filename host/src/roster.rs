//! What is known of every extension at any moment, for whoever asks: states, use, failures.
//!
//! The supervisor writes here; everybody else reads, from any thread.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, SystemTime},
};

use serde::Serialize;

use crate::{
    bus::{MessageId, Peer},
    config::ExtensionConfig,
    extension::{Output, SharedShare},
    logs::{Logs, rfc3339},
    names::ExtensionId,
    usage::Usage,
};

/// Failure records that are kept of each extension.
const KEPT_FAILURES: usize = 16;

/// Where an extension is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// Configured, and not started yet.
    Loaded,
    /// Its program is loaded, compiled or at work before it is ready.
    Starting,
    /// It serves.
    Ready,
    /// It runs, and says that it cannot serve for now.
    Interrupted,
    /// It was asked to stop and finishes what it has in hand.
    Draining,
    /// It has ended as it should.
    Stopped,
    /// It has ended as it should not, or could not be started.
    Failed,
}

/// One extension at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ExtensionStatus {
    /// Its id.
    pub id: ExtensionId,
    /// Where it is in its life.
    pub state: State,
    /// Why, where there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it came into this state.
    #[serde(serialize_with = "rfc3339")]
    pub since: SystemTime,
    /// How often it was started after the first time.
    pub restarts: u64,
    /// Time for which it ran on the worker thread, by the clock, over all its instances.
    #[serde(rename = "cpu-seconds", serialize_with = "seconds")]
    pub cpu: Duration,
    /// Bytes of linear memory that it has.
    pub memory: u64,
    /// Bytes of linear memory that it may have.
    pub memory_limit: u64,
    /// Messages that wait for it.
    pub inbox_messages: u64,
    /// Bytes of the messages that wait for it.
    pub inbox_bytes: u64,
    /// Messages that it received.
    pub received: u64,
    /// Requests and events that it sent.
    pub sent: u64,
    /// Messages for it that found no room.
    pub shed: u64,
    /// Answers of its that came after the deadline.
    pub late: u64,
    /// The limits class that its limits come from.
    pub class: String,
    /// Contracts that it owns.
    pub fulfills: Vec<crate::names::ContractName>,
    /// Its last failures, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRecord>,
}

/// What is known of one failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailureRecord {
    /// The extension's id.
    pub extension: ExtensionId,
    /// When it failed.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// Why.
    pub cause: String,
    /// SHA-256 of the component, in hexadecimal, where it came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The oldest request that it had in hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handling: Option<FailedRequest>,
    /// The limit that it hit, where that is why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitHit>,
    /// Names of the functions that were running, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
}

/// A limit that an extension hit. In JSON it has the unit of its numbers beside it, and times are in
/// seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitHit {
    /// The key that sets it, or the name under which it is documented.
    pub name: String,
    /// What was used, in the limit's own unit: nanoseconds where that is time.
    pub used: u64,
    /// What was allowed, in the same unit.
    pub allowed: u64,
}

/// A request that an extension had in hand when it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedRequest {
    /// The message's id.
    pub message: MessageId,
    /// Who sent it.
    pub sender: String,
    /// Contract and operation.
    pub operation: String,
}

/// One extension: its configuration, its place on the bus, and what it has used.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) config: Arc<ExtensionConfig>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) usage: Arc<Usage>,
    pub(crate) share: Arc<SharedShare>,
    /// Where its lines go, over all its instances.
    pub(crate) output: Output,
    record: Mutex<Record>,
}

#[derive(Debug)]
struct Record {
    state: State,
    reason: Option<String>,
    since: SystemTime,
    starts: u64,
    failures: VecDeque<FailureRecord>,
}

impl Unit {
    pub(crate) fn new(config: Arc<ExtensionConfig>, peer: Arc<Peer>, logs: Arc<Logs>) -> Self {
        let usage = Arc::<Usage>::default();
        Self {
            output: Output::new(peer.name().into(), logs, config.limits.log_rate, usage.clone()),
            share: Arc::new(SharedShare::new(config.limits.cpu_share)),
            config,
            peer,
            usage,
            record: Mutex::new(Record {
                state: State::Loaded,
                reason: None,
                since: SystemTime::now(),
                starts: 0,
                failures: VecDeque::new(),
            }),
        }
    }

    pub(crate) fn id(&self) -> &ExtensionId {
        &self.config.id
    }

    pub(crate) fn state(&self) -> State {
        self.record().state
    }

    /// Changes the state; returns the one before.
    pub(crate) fn set_state(&self, state: State, reason: Option<String>) -> State {
        let mut record = self.record();
        record.reason = reason;
        record.since = SystemTime::now();
        if state == State::Starting {
            record.starts += 1;
        }
        std::mem::replace(&mut record.state, state)
    }

    pub(crate) fn add_failure(&self, failure: FailureRecord) {
        let failures = &mut self.record().failures;
        if failures.len() >= KEPT_FAILURES {
            failures.pop_front();
        }
        failures.push_back(failure);
    }

    pub(crate) fn status(&self) -> ExtensionStatus {
        let (inbox_messages, inbox_bytes) = self.peer.inbox().depth();
        let stats = self.peer.stats();
        let record = self.record();
        ExtensionStatus {
            id: self.config.id.clone(),
            state: record.state,
            reason: record.reason.clone(),
            since: record.since,
            restarts: record.starts.saturating_sub(1),
            cpu: self.usage.cpu(),
            memory: self.usage.memory.now(),
            memory_limit: self.config.limits.memory,
            inbox_messages,
            inbox_bytes,
            received: stats.received.load(Ordering::Relaxed),
            sent: stats.sent.load(Ordering::Relaxed),
            shed: stats.shed.load(Ordering::Relaxed),
            late: stats.late.load(Ordering::Relaxed),
            class: self.config.limits.class.clone(),
            fulfills: self.config.fulfills.clone(),
            failures: record.failures.iter().cloned().collect(),
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
