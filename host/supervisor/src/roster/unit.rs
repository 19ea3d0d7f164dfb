//! One extension: its versions, its place on the bus, and its use.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use weir_bus::{Access, Bus, InboxLimits, LaneSettings, Peer, PeerLimits, QueueSettings};
use weir_config::{
    Config, ExtensionConfig, HOOKS_CONTRACT, MainConfig, QueueConfig, STORE_CONTRACT, SubscribeGrant,
    Validate,
};
use weir_guest::{Loaded, Output, Settings};
use weir_logs::Logs;
use weir_metrics::Usage;
use weir_names::{ExtensionId, QueueName, TopicPattern};
use weir_reports::{
    ExtensionState, ExtensionStatus, FailureRecord, HttpAnswers, HttpServerStatus, MessageId, ServingVersion,
    VersionChange,
};
use weir_schedule::SharedShare;

use super::{HistoryEntry, HistoryEvent, history::History};

const KEPT_FAILURES: usize = 16;

/// One extension, for as long as Main runs.
#[derive(Debug)]
pub struct Unit {
    id: ExtensionId,
    /// What the extension has used of its limits, over all its instances.
    pub usage: Arc<Usage>,
    logs: Arc<Logs>,
    version: Mutex<Arc<Version>>,
    /// What the operator has configured, if another version may run instead.
    configured: Mutex<Option<Arc<ExtensionConfig>>>,
    record: Mutex<Record>,
}

/// What an extension's instances are made from. A changed configuration or component makes another version.
#[derive(Debug)]
pub struct Version {
    /// The extension's configuration.
    pub config: Arc<ExtensionConfig>,
    /// The extension's peer on the bus, with this version's limits and grants.
    pub peer: Arc<Peer>,
    /// The extension's share of the worker thread.
    pub share: Arc<SharedShare>,
    /// Where the extension's log lines go, over all its instances.
    pub output: Output,
    /// The values that the instances read through `wasi:config/store`.
    pub settings: Arc<Settings>,
    /// Shared with versions that the same instances run under.
    program: Arc<Mutex<Program>>,
}

#[derive(Debug, Default)]
struct Program {
    loaded: Option<Loaded>,
    /// The number of the version, if the extension has `update`.
    number: Option<u64>,
    /// Whether an instance of the program became ready.
    has_served: bool,
    /// Whether the last instance ended as it should, but before it was ready.
    is_brief: bool,
}

impl Version {
    /// Returns the program of this version's instances, once loaded.
    pub fn program(&self) -> Option<Loaded> {
        self.program.lock().loaded.clone()
    }

    /// Keeps the program for the next instance.
    pub fn keep(&self, program: Loaded) {
        self.program.lock().loaded = Some(program);
    }

    /// Returns the number of the version, if the extension has `update` and the version is known.
    pub fn number(&self) -> Option<u64> {
        self.program.lock().number
    }

    /// Notes which version was chosen for the next instance. What a canary takes is counted apart from then on.
    pub fn note_chosen(&self, number: Option<u64>, is_canary: bool) {
        self.program.lock().number = number;
        self.peer.set_canary(is_canary);
    }

    /// Notes that an instance of the loaded program became ready.
    pub fn note_served(&self) {
        self.program.lock().has_served = true;
    }

    /// Whether an instance of this version has served, and its program is still loaded.
    pub fn is_proven(&self) -> bool {
        let program = self.program.lock();
        program.has_served && program.loaded.is_some()
    }

    /// Notes whether the last instance was brief: it ended as it should, and took no messages before. If its program can
    /// be kept, the next one most likely is brief too.
    pub fn note_end(&self, was_brief: bool) {
        let mut program = self.program.lock();
        program.is_brief = was_brief && program.loaded.as_ref().is_some_and(|it| it.program.can_be_kept());
    }

    /// Whether the next instance will most likely end, as it should, before it is ready.
    pub fn is_brief(&self) -> bool {
        self.program.lock().is_brief
    }

    /// Drops the program, so that the next instance loads the component anew.
    pub fn forget_program(&self) {
        let mut program = self.program.lock();
        *program = Program { is_brief: program.is_brief, ..Program::default() };
    }
}

#[derive(Debug)]
struct Record {
    state: ExtensionState,
    reason: Option<String>,
    since: SystemTime,
    starts: u64,
    failures: VecDeque<FailureRecord>,
    failed: BTreeMap<String, u64>,
    history: History,
    /// The serving component in the last history entry.
    served: Option<String>,
    /// The version that runs, if the extension has `update`.
    serving: Option<ServingVersion>,
}

impl Unit {
    /// Makes an extension in its first version, not started, as a new peer on the bus. A copy shares the inbox of
    /// `original`.
    pub fn on_the_bus(
        config: Arc<ExtensionConfig>,
        main: &MainConfig,
        bus: &Bus,
        original: Option<&Peer>,
        logs: Arc<Logs>,
    ) -> Self {
        let (limits, access) = on_the_bus(&config, main);
        let peer = bus.add_peer(&config.id, limits, access, original);
        Self::new(config, peer, logs)
    }

    /// Makes an extension in its first version, not started, with this peer.
    pub fn new(config: Arc<ExtensionConfig>, peer: Arc<Peer>, logs: Arc<Logs>) -> Self {
        let usage = Arc::<Usage>::default();
        let version = Version {
            output: Output::new(config.id.shared(), logs.clone(), config.limits.log_rate, usage.clone()),
            share: Arc::new(SharedShare::new(config.limits.cpu_share)),
            peer,
            settings: Arc::default(),
            program: Arc::default(),
            config: config.clone(),
        };
        Self {
            id: config.id.clone(),
            usage,
            logs,
            version: Mutex::new(Arc::new(version)),
            configured: Mutex::new(config.update.is_some().then(|| config.clone())),
            record: Mutex::new(Record {
                state: ExtensionState::Loaded,
                reason: None,
                since: SystemTime::now(),
                starts: 0,
                failures: VecDeque::new(),
                failed: BTreeMap::new(),
                history: History::default(),
                served: None,
                serving: None,
            }),
        }
    }

    /// Returns the extension's id.
    pub fn id(&self) -> &ExtensionId {
        &self.id
    }

    /// Returns what the operator has configured. With `update`, another version may run instead.
    pub fn configured(&self) -> Arc<ExtensionConfig> {
        self.configured.lock().clone().unwrap_or_else(|| self.version().config.clone())
    }

    /// Notes what the operator has configured.
    pub fn set_configured(&self, config: &Arc<ExtensionConfig>) {
        // Without `update` from now on, the version that runs may still be another one.
        let is_versioned = config.update.is_some() || self.version().config.update.is_some();
        *self.configured.lock() = is_versioned.then(|| config.clone());
    }

    /// Returns the version that the next instance is made from.
    pub fn version(&self) -> Arc<Version> {
        self.version.lock().clone()
    }

    /// Sets the version that the next instance is made from.
    pub fn set_version(&self, version: Arc<Version>) {
        *self.version.lock() = version;
    }

    /// Makes another version, without putting it into use. An unchanged CPU share or log rate goes on from its present
    /// credit, so that a reload does not refill it.
    pub fn next_version(
        &self,
        config: Arc<ExtensionConfig>,
        peer: Arc<Peer>,
        program: Option<Loaded>,
    ) -> Arc<Version> {
        let now = self.version();
        let (old, new) = (&now.config.limits, &config.limits);
        let share = match old.cpu_share == new.cpu_share {
            true => now.share.clone(),
            false => Arc::new(SharedShare::new(new.cpu_share)),
        };
        let output = match old.log_rate == new.log_rate {
            true => now.output.clone(),
            false => Output::new(self.id.shared(), self.logs.clone(), new.log_rate, self.usage.clone()),
        };
        let program = Arc::new(Mutex::new(Program { loaded: program, ..Program::default() }));
        Arc::new(Version { config, peer, share, output, settings: Arc::default(), program })
    }

    /// Makes a version with another configuration for the same instances: all else is that of the present version.
    pub fn same_version(&self, config: Arc<ExtensionConfig>) -> Arc<Version> {
        let now = self.version();
        let Version { peer, share, output, settings, program, .. } = &*now;
        let (share, output, settings) = (share.clone(), output.clone(), settings.clone());
        Arc::new(Version { config, peer: peer.clone(), share, output, settings, program: program.clone() })
    }

    /// Makes a version like the present one, whose program is to be loaded anew. Running instances keep their program.
    pub fn version_anew(&self) -> Arc<Version> {
        let now = self.version();
        self.next_version(now.config.clone(), now.peer.clone(), None)
    }

    /// Sets the state, and returns the state before.
    pub fn set_state(&self, state: ExtensionState, reason: Option<String>) -> ExtensionState {
        let serves = matches!(state, ExtensionState::Ready | ExtensionState::Interrupted);
        let hash = self.version().program().filter(|_| serves).map(|loaded| loaded.program.hash.to_string());
        let mut record = self.record.lock();
        if record.state != state || record.served != hash {
            record.history.add(HistoryEvent::State { state, hash: hash.clone(), reason: reason.clone() });
        }
        record.served = hash;
        record.reason = reason;
        record.since = SystemTime::now();
        std::mem::replace(&mut record.state, state)
    }

    /// Notes a requested change and its asker in the history.
    pub fn asked(&self, order: &'static str, by: &Arc<str>) {
        self.record.lock().history.add(HistoryEvent::Asked { order: order.into(), by: by.clone() });
    }

    /// Returns the last 100 events, oldest first.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.record.lock().history.entries()
    }

    /// Counts a start.
    pub fn count_start(&self) {
        self.record.lock().starts += 1;
    }

    /// Takes back a start that only found out what to run.
    pub fn uncount_start(&self) {
        let mut record = self.record.lock();
        record.starts = record.starts.saturating_sub(1);
    }

    /// Notes a change of the versions in the history.
    pub fn version_changed(&self, change: &VersionChange) {
        let VersionChange { version, standing, serves, reason, .. } = change.clone();
        self.record.lock().history.add(HistoryEvent::Version { version, standing, serves, reason });
    }

    /// Sets the version that runs.
    pub fn set_serving(&self, serving: Option<ServingVersion>) {
        self.record.lock().serving = serving;
    }

    /// Keeps a failure. Of more than 16, the oldest is dropped.
    pub fn add_failure(&self, failure: FailureRecord) {
        let mut record = self.record.lock();
        let (cause, hash) = (failure.cause.clone(), failure.hash.clone());
        record.history.add(HistoryEvent::Failed { cause, hash });
        let limit = failure.limit.as_ref().map(|limit| limit.name.to_string()).unwrap_or_default();
        *record.failed.entry(limit).or_default() += 1;
        if record.failures.len() >= KEPT_FAILURES {
            record.failures.pop_front();
        }
        record.failures.push_back(failure);
    }

    /// Returns the failure that ended a request, if it is still on record.
    pub fn failure_of(&self, message: MessageId) -> Option<FailureRecord> {
        let record = self.record.lock();
        record.failures.iter().rev().find(|failure| failure.in_hand.binary_search(&message).is_ok()).cloned()
    }

    /// Counts the answer to a request by HTTP that the extension serves.
    pub fn count_http_answer(&self, status: u16) {
        // What is above 599 is as bad as what is below. No answer is informational.
        let class = usize::from(status / 100).clamp(2, 5) - 2;
        if let Some(count) = self.usage.http_answers.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn http_answers(&self) -> HttpAnswers {
        let [successes, redirections, client_errors, server_errors] =
            self.usage.http_answers.each_ref().map(|count| count.load(Ordering::Relaxed));
        HttpAnswers { successes, redirections, client_errors, server_errors }
    }

    /// Returns the extension's present status.
    pub fn status(&self) -> ExtensionStatus {
        let version = self.version();
        let Version { config, peer, .. } = &*version;
        let (inbox_messages, inbox_bytes) = peer.inbox().depth();
        let stats = peer.stats();
        let is_checked = config.validate != Validate::Nothing;
        let record = self.record.lock();
        ExtensionStatus {
            id: self.id.clone(),
            state: record.state,
            reason: record.reason.clone(),
            since: record.since,
            compiling: None,
            hash: version.program().map(|loaded| loaded.program.hash.to_string()),
            version: record.serving,
            restarts: record.starts.saturating_sub(1),
            cpu: self.usage.cpu(),
            cpu_share: Duration::from_nanos(self.usage.cpu_second.now()).as_secs_f64(),
            memory: self.usage.memory.now(),
            memory_limit: config.limits.memory,
            inbox_messages,
            inbox_bytes,
            received: stats.received.load(Ordering::Relaxed),
            sent: stats.sent.load(Ordering::Relaxed),
            shed: stats.shed.load(Ordering::Relaxed),
            late: stats.late.load(Ordering::Relaxed),
            refused: is_checked.then(|| stats.refused.load(Ordering::Relaxed)),
            class: config.limits.class.clone(),
            fulfills: config.fulfills.clone(),
            exports: config
                .exports
                .iter()
                .map(|(contract, export)| (contract.clone(), export.to_string()))
                .collect(),
            http: config.serves_http.as_ref().map(|http| HttpServerStatus {
                path: http.path.to_string(),
                socket: http.socket.clone(),
                answers: self.http_answers(),
            }),
            failures: record.failures.iter().cloned().collect(),
            failed: record.failed.clone(),
        }
    }
}

/// Returns the limits and grants of an extension, as the bus takes them.
pub(crate) fn on_the_bus(extension: &ExtensionConfig, main: &MainConfig) -> (PeerLimits, Access) {
    let limits = &extension.limits;
    let inbox = InboxLimits { messages: limits.inbox_messages, bytes: limits.inbox_bytes };
    let limits = PeerLimits {
        message_size: limits.message_size,
        inbox,
        when_full: extension.when_full,
        request_timeout: limits.request_timeout.unwrap_or(main.request_timeout),
        subscriptions: limits.fixed().subscriptions,
    };
    // Hooks and stores in the configuration imply a grant to call the contracts that give access to them.
    let hooks = (!extension.runs.is_empty()).then(|| HOOKS_CONTRACT.parse().ok()).flatten();
    let stores = (!extension.grants.stores.is_empty()).then(|| STORE_CONTRACT.parse().ok()).flatten();
    let http = extension.http_contract();
    let access = Access {
        is_concurrent: http.is_some(),
        fulfills: extension.fulfills.iter().cloned().chain(http).collect(),
        calls: extension
            .requires
            .iter()
            .chain(extension.wanted())
            .cloned()
            .chain(hooks)
            .chain(stores)
            .map(Into::into)
            .collect(),
        publishes: extension.publishes.clone(),
        subscribes: extension.subscribes.iter().map(lane_of).collect(),
        puts: extension.puts.clone(),
        takes: extension.takes.clone(),
    };
    (limits, access)
}

/// Configures the queues and retained topics of the bus.
pub fn configure_traffic(bus: &Bus, config: &Config) {
    let queue = |(name, queue): (QueueName, QueueConfig)| {
        let takers = config.extensions.iter().filter(|extension| extension.takes.contains(&name));
        // If neither an extension nor a program takes the jobs, the embedding program does, without a limit.
        let takers = takers.map(|taker| taker.limits.message_size);
        let outside = config.peers.iter().filter(|peer| peer.takes.contains(&name));
        let takers = takers.chain(outside.map(|peer| peer.limits.message_size));
        let max_payload = takers.max().unwrap_or(u64::MAX);
        let QueueConfig { messages, bytes, when_full, max_deliveries, dead_letter, store, .. } = queue;
        (name, QueueSettings { messages, bytes, when_full, max_deliveries, max_payload, store }, dead_letter)
    };
    bus.configure_queues(config.all_queues().into_iter().map(queue).collect());
    bus.retain(config.retained());
}

/// Configures what the bus records of traces.
pub fn configure_traces(bus: &Bus, main: &MainConfig) {
    let sampled = u32::MAX.checked_div(main.trace_one_in).unwrap_or(0);
    bus.configure_traces(sampled, usize::try_from(main.trace_spans).unwrap_or(usize::MAX));
}

/// Returns a granted subscription, as the bus takes it. Without bounds of its own, only those of the inbox hold.
pub fn lane_of(grant: &SubscribeGrant) -> (TopicPattern, LaneSettings) {
    let delivery = LaneSettings {
        policy: grant.policy,
        messages: grant.messages.unwrap_or(u32::MAX),
        bytes: grant.bytes.unwrap_or(u64::MAX),
    };
    (grant.topic.clone(), delivery)
}
