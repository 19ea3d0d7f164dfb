//! One extension: what it is made of, its place on the bus, and what it has used.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, SystemTime},
};

use weir_bus::{Access, Bus, InboxLimits, LaneSettings, Peer, PeerLimits, QueueSettings};
use weir_config::{Config, ExtensionConfig, HOOKS_CONTRACT, MainConfig, QueueConfig, SubscribeGrant};
use weir_guest::{Loaded, Output};
use weir_logs::Logs;
use weir_metrics::Usage;
use weir_names::{ExtensionId, QueueName, Topic, TopicPattern};
use weir_schedule::SharedShare;

use super::{ExtensionState, ExtensionStatus, FailureRecord, HistoryEntry, HistoryEvent, history::History};

/// Failure records that are kept of each extension.
const KEPT_FAILURES: usize = 16;

/// One extension, for as long as Main runs.
#[derive(Debug)]
pub struct Unit {
    id: ExtensionId,
    /// What it uses of its limits, over all its instances.
    pub usage: Arc<Usage>,
    logs: Arc<Logs>,
    version: Mutex<Arc<Version>>,
    record: Mutex<Record>,
}

/// What instances of an extension are made from. Another configuration or another component is another
/// version.
#[derive(Debug)]
pub struct Version {
    /// What is configured of it.
    pub config: Arc<ExtensionConfig>,
    /// Its place on the bus, with the limits and grants of this version.
    pub peer: Arc<Peer>,
    /// Its share of the worker thread.
    pub share: Arc<SharedShare>,
    /// Where its lines go, over all its instances.
    pub output: Output,
    /// What its instances run. Shared with versions of the same instances.
    program: Arc<Mutex<Program>>,
}

#[derive(Debug, Default)]
struct Program {
    /// Once it is loaded.
    loaded: Option<Loaded>,
    /// An instance that ran it was ready.
    has_served: bool,
    /// The last instance ended as it should, and was never ready.
    is_brief: bool,
}

impl Version {
    /// What its instances run, once that is loaded.
    pub fn program(&self) -> Option<Loaded> {
        self.slot().loaded.clone()
    }

    /// Keeps the program for the next instance.
    pub fn keep(&self, program: Loaded) {
        self.slot().loaded = Some(program);
    }

    /// An instance of it is ready.
    pub fn note_served(&self) {
        self.slot().has_served = true;
    }

    /// Whether it can be started as it was when it served.
    pub fn is_proven(&self) -> bool {
        let program = self.slot();
        program.has_served && program.loaded.is_some()
    }

    /// How its last instance ended tells how the next most likely will.
    pub fn note_end(&self, was_brief: bool) {
        let mut program = self.slot();
        program.is_brief = was_brief && program.loaded.as_ref().is_some_and(|it| it.program.can_be_kept());
    }

    /// Whether its next instance will most likely end before it is ready, as it should.
    pub fn is_brief(&self) -> bool {
        self.slot().is_brief
    }

    /// The next instance is to be loaded anew.
    pub fn forget_program(&self) {
        let mut program = self.slot();
        *program = Program { is_brief: program.is_brief, ..Program::default() };
    }

    fn slot(&self) -> MutexGuard<'_, Program> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Record {
    state: ExtensionState,
    reason: Option<String>,
    since: SystemTime,
    starts: u64,
    failures: VecDeque<FailureRecord>,
    history: History,
    /// The component whose service is in the history.
    served: Option<String>,
}

impl Unit {
    /// An extension in its first version, not started.
    pub fn new(config: Arc<ExtensionConfig>, peer: Arc<Peer>, logs: Arc<Logs>) -> Self {
        let usage = Arc::<Usage>::default();
        let version = Version {
            output: Output::new(config.id.shared(), logs.clone(), config.limits.log_rate, usage.clone()),
            share: Arc::new(SharedShare::new(config.limits.cpu_share)),
            peer,
            program: Arc::default(),
            config: config.clone(),
        };
        Self {
            id: config.id.clone(),
            usage,
            logs,
            version: Mutex::new(Arc::new(version)),
            record: Mutex::new(Record {
                state: ExtensionState::Loaded,
                reason: None,
                since: SystemTime::now(),
                starts: 0,
                failures: VecDeque::new(),
                history: History::default(),
                served: None,
            }),
        }
    }

    /// Its id.
    pub fn id(&self) -> &ExtensionId {
        &self.id
    }

    /// What its next instance is made from.
    pub fn version(&self) -> Arc<Version> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes this the version that its next instance is made from.
    pub fn set_version(&self, version: Arc<Version>) {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = version;
    }

    /// Another version, which is not in use yet. What counts over time goes on where it is: a reload
    /// renews neither the share nor the lines that may be logged.
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
        Arc::new(Version { config, peer, share, output, program })
    }

    /// The present version under another configuration of the same instances.
    pub fn same_version(&self, config: Arc<ExtensionConfig>) -> Arc<Version> {
        let now = self.version();
        let Version { peer, share, output, program, .. } = &*now;
        let (share, output, program) = (share.clone(), output.clone(), program.clone());
        Arc::new(Version { config, peer: peer.clone(), share, output, program })
    }

    /// The present version, to be loaded anew. What runs of it keeps its program.
    pub fn version_anew(&self) -> Arc<Version> {
        let now = self.version();
        self.next_version(now.config.clone(), now.peer.clone(), None)
    }

    /// Changes the state; returns the one before.
    pub fn set_state(&self, state: ExtensionState, reason: Option<String>) -> ExtensionState {
        let serves = matches!(state, ExtensionState::Ready | ExtensionState::Interrupted);
        let hash = self.version().program().filter(|_| serves).map(|loaded| loaded.program.hash.to_string());
        let mut record = self.record();
        if record.state != state || record.served != hash {
            record.history.add(HistoryEvent::State { state, hash: hash.clone(), reason: reason.clone() });
        }
        record.served = hash;
        record.reason = reason;
        record.since = SystemTime::now();
        std::mem::replace(&mut record.state, state)
    }

    /// Notes down that somebody asked for a change.
    pub fn asked(&self, order: &'static str, by: &Arc<str>) {
        self.record().history.add(HistoryEvent::Asked { order, by: by.clone() });
    }

    /// What happened to it, oldest first: the last 100 events.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.record().history.entries()
    }

    /// Counts a start.
    pub fn count_start(&self) {
        self.record().starts += 1;
    }

    /// Keeps a failure, and forgets the oldest beyond 16.
    pub fn add_failure(&self, failure: FailureRecord) {
        let mut record = self.record();
        let (cause, hash) = (failure.cause.clone(), failure.hash.clone());
        record.history.add(HistoryEvent::Failed { cause, hash });
        if record.failures.len() >= KEPT_FAILURES {
            record.failures.pop_front();
        }
        record.failures.push_back(failure);
    }

    /// How it is at this moment.
    pub fn status(&self) -> ExtensionStatus {
        let version = self.version();
        let Version { config, peer, .. } = &*version;
        let (inbox_messages, inbox_bytes) = peer.inbox().depth();
        let stats = peer.stats();
        let record = self.record();
        ExtensionStatus {
            id: self.id.clone(),
            state: record.state,
            reason: record.reason.clone(),
            since: record.since,
            compiling: None,
            hash: version.program().map(|loaded| loaded.program.hash.to_string()),
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
            class: config.limits.class.clone(),
            fulfills: config.fulfills.clone(),
            failures: record.failures.iter().cloned().collect(),
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an extension may send, hold and reach, as the bus heeds it.
pub fn on_the_bus(extension: &ExtensionConfig, main: &MainConfig) -> (PeerLimits, Access) {
    let limits = &extension.limits;
    let inbox = InboxLimits { messages: limits.inbox_messages, bytes: limits.inbox_bytes };
    let limits = PeerLimits {
        message_size: limits.message_size,
        inbox,
        when_full: extension.when_full,
        request_timeout: limits.request_timeout.unwrap_or(main.request_timeout),
        subscriptions: limits.fixed().subscriptions,
    };
    // What it may run, it may ask for.
    let hooks = (!extension.runs.is_empty()).then(|| HOOKS_CONTRACT.parse().ok()).flatten();
    let access = Access {
        fulfills: extension.fulfills.clone(),
        calls: extension.requires.iter().chain(&extension.wants).cloned().chain(hooks).collect(),
        publishes: extension.publishes.clone(),
        subscribes: extension.subscribes.iter().map(subscription).collect(),
        puts: extension.puts.clone(),
        takes: extension.takes.clone(),
    };
    (limits, access)
}

/// The shared queues, as the bus heeds them.
pub fn queues_on_the_bus(config: &Config) -> Vec<QueueOnTheBus> {
    let queue = |(name, queue): (QueueName, QueueConfig)| {
        let takers = config.extensions.iter().filter(|extension| extension.takes.contains(&name));
        // Where no extension takes, programs do.
        let max_payload = takers.map(|taker| taker.limits.message_size).max().unwrap_or(u64::MAX);
        let QueueConfig { messages, bytes, when_full, max_deliveries, dead_letter, .. } = queue;
        (name, QueueSettings { messages, bytes, when_full, max_deliveries, max_payload }, dead_letter)
    };
    config.all_queues().into_iter().map(queue).collect()
}

/// A queue, and where its dead jobs go.
type QueueOnTheBus = (QueueName, QueueSettings, Option<QueueName>);

/// Tells the bus of the shared queues and of the topics whose last value is kept.
pub fn configure_traffic(bus: &Bus, queues: Vec<QueueOnTheBus>, retained: Vec<Topic>) {
    bus.configure_queues(queues);
    bus.retain(retained);
}

/// What the inbox has is the default.
fn subscription(grant: &SubscribeGrant) -> (TopicPattern, LaneSettings) {
    let delivery = LaneSettings {
        policy: grant.policy,
        messages: grant.messages.unwrap_or(u32::MAX),
        bytes: grant.bytes.unwrap_or(u64::MAX),
    };
    (grant.topic.clone(), delivery)
}
