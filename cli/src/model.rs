//! Main's answers, as far as people see them. Fields of a newer Main are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Number, Value, value::RawValue};

#[derive(Debug, Deserialize)]
pub(crate) struct Extensions {
    pub(crate) extensions: Vec<Extension>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Extension {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) reason: Option<String>,
    pub(crate) since: String,
    pub(crate) compiling: Option<BeingCompiled>,
    pub(crate) restarts: u64,
    pub(crate) cpu_seconds: f64,
    /// Of the last second.
    pub(crate) cpu_share: Option<f64>,
    pub(crate) memory: u64,
    pub(crate) memory_limit: u64,
    pub(crate) inbox_messages: u64,
    pub(crate) inbox_bytes: u64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) shed: u64,
    pub(crate) late: u64,
    /// None: its requests are not checked.
    pub(crate) refused: Option<u64>,
    pub(crate) class: String,
    pub(crate) hash: Option<String>,
    #[serde(default)]
    pub(crate) fulfills: Vec<String>,
    #[serde(default)]
    pub(crate) failures: Vec<Failure>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct BeingCompiled {
    pub(crate) bytes: u64,
    pub(crate) since: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Failure {
    pub(crate) extension: String,
    pub(crate) time: String,
    pub(crate) cause: String,
    pub(crate) hash: Option<String>,
    pub(crate) handling: Option<Handling>,
    pub(crate) limit: Option<LimitHit>,
    #[serde(default)]
    pub(crate) trace: Vec<String>,
    pub(crate) then: String,
    pub(crate) next_restart: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct History {
    pub(crate) history: Vec<HistoryEntry>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct HistoryEntry {
    pub(crate) time: String,
    #[serde(flatten)]
    pub(crate) event: HistoryEvent,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum HistoryEvent {
    Asked {
        order: String,
        by: String,
    },
    State {
        state: String,
        hash: Option<String>,
        reason: Option<String>,
    },
    Failed {
        cause: String,
        hash: Option<String>,
    },
    /// From a newer Main.
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Handling {
    pub(crate) message: Option<u64>,
    pub(crate) sequence: Option<u64>,
    pub(crate) sender: String,
    pub(crate) operation: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LimitHit {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) used: Number,
    pub(crate) allowed: Number,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Spans {
    pub(crate) spans: Vec<Value>,
    pub(crate) recorded: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Span {
    pub(crate) number: u64,
    pub(crate) trace: String,
    pub(crate) span: String,
    pub(crate) parent: Option<String>,
    pub(crate) link: Option<SpanLink>,
    pub(crate) kind: String,
    pub(crate) contract: Option<String>,
    pub(crate) operation: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) topic: Option<String>,
    pub(crate) caller: String,
    pub(crate) provider: Option<String>,
    pub(crate) start: String,
    pub(crate) duration_seconds: f64,
    pub(crate) waited_seconds: Option<f64>,
    pub(crate) worked_seconds: Option<f64>,
    pub(crate) fuel: Option<u64>,
    pub(crate) outcome: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SpanLink {
    pub(crate) trace: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Reloaded {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) changed: Vec<String>,
    pub(crate) failed: Vec<NotReloaded>,
    pub(crate) needs_restart: Vec<String>,
    /// None from an older Main.
    #[serde(default)]
    pub(crate) tables: Vec<String>,
    /// None from an older Main.
    #[serde(default)]
    pub(crate) tables_for_restart: Vec<String>,
    /// None from an older Main.
    #[serde(default)]
    pub(crate) differences: Vec<TableDifference>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NotReloaded {
    pub(crate) extension: String,
    pub(crate) reason: String,
}

impl Reloaded {
    /// Keys of `[main]` that hold now.
    pub(crate) fn keys_of_main(&self) -> impl Iterator<Item = &str> {
        let now = self.differences.iter().filter(|it| it.table == "main" && it.takes_effect == "at-once");
        now.flat_map(|it| &it.keys).map(|difference| &*difference.key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self { added, removed, changed, failed, needs_restart, tables, tables_for_restart, .. } = self;
        [added, removed, changed, needs_restart, tables, tables_for_restart].iter().all(|ids| ids.is_empty())
            && failed.is_empty()
            && self.keys_of_main().next().is_none()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Plan {
    pub(crate) refused: Option<String>,
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) changed: Vec<PlannedChange>,
    pub(crate) main: Vec<Difference>,
    pub(crate) needs_restart: Vec<String>,
    pub(crate) tables: Vec<String>,
    /// None from an older Main.
    #[serde(default)]
    pub(crate) tables_for_restart: Vec<String>,
    /// None from an older Main.
    #[serde(default)]
    pub(crate) table_differences: Vec<TableDifference>,
    /// Of new extensions.
    #[serde(default)]
    pub(crate) faults: Vec<PlannedFault>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TableDifference {
    pub(crate) table: String,
    pub(crate) change: String,
    pub(crate) takes_effect: String,
    pub(crate) keys: Vec<Difference>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PlannedFault {
    pub(crate) extension: String,
    pub(crate) fault: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PlannedChange {
    pub(crate) extension: String,
    pub(crate) keys: Vec<Difference>,
    pub(crate) component: Option<String>,
    pub(crate) fault: Option<String>,
    pub(crate) takes_effect: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Difference {
    pub(crate) key: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// Instead of values that are not shown.
    pub(crate) note: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Limits {
    pub(crate) memory_budget: Option<u64>,
    pub(crate) memory_sum: u64,
    pub(crate) fuel_per_ms: Option<u64>,
    pub(crate) extensions: Vec<ExtensionLimits>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ExtensionLimits {
    pub(crate) id: String,
    pub(crate) class: String,
    pub(crate) memory_sum: u64,
    pub(crate) delayed_seconds: Option<f64>,
    pub(crate) log_dropped: Option<u64>,
    pub(crate) http_refused: Option<u64>,
    pub(crate) http_timed_out: Option<u64>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) dirs: Vec<DirLimits>,
    pub(crate) fixed: Map<String, Value>,
    pub(crate) transfer: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct DirLimits {
    pub(crate) guest: String,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_files: Option<u64>,
    pub(crate) used_bytes: Option<u64>,
    pub(crate) used_files: Option<u64>,
    pub(crate) peak_bytes: Option<u64>,
    pub(crate) peak_files: Option<u64>,
    pub(crate) written_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Limit {
    pub(crate) key: String,
    pub(crate) unit: String,
    pub(crate) allowed: Number,
    pub(crate) text: String,
    pub(crate) used: Option<Number>,
    pub(crate) peak: Option<Number>,
    pub(crate) source: LimitSource,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LimitSource {
    pub(crate) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum LogEntry {
    Line {
        time: String,
        extension: String,
        level: String,
        message: String,
        #[serde(default)]
        fields: Vec<(String, String)>,
    },
    Missed {
        missed: u64,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Event<'a> {
    pub(crate) topic: String,
    pub(crate) sender: String,
    pub(crate) sequence: u64,
    pub(crate) lost: u64,
    #[serde(default)]
    pub(crate) retained: bool,
    #[serde(borrow)]
    pub(crate) payload: Option<&'a RawValue>,
    pub(crate) payload_text: Option<String>,
    pub(crate) payload_base64: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) delivered: u32,
    pub(crate) shed: u32,
    pub(crate) refused: u32,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Topics {
    pub(crate) topics: Vec<Topic>,
    pub(crate) subscriptions: Vec<Subscription>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Topic {
    pub(crate) topic: String,
    pub(crate) sequence: u64,
    pub(crate) rate: u64,
    pub(crate) subscriptions: u64,
    pub(crate) delivered: u64,
    pub(crate) shed: u64,
    pub(crate) refused: u64,
    pub(crate) retain: bool,
    pub(crate) retained_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Subscription {
    pub(crate) subscriber: String,
    pub(crate) pattern: String,
    pub(crate) policy: String,
    pub(crate) waiting: u64,
    pub(crate) bytes: u64,
    pub(crate) messages_limit: Option<u64>,
    pub(crate) bytes_limit: Option<u64>,
    pub(crate) blocked: u64,
    pub(crate) received: u64,
    pub(crate) shed: u64,
    pub(crate) refused: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Queues {
    pub(crate) queues: Vec<Queue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Queue {
    pub(crate) queue: String,
    pub(crate) configured: bool,
    pub(crate) waiting: u64,
    pub(crate) in_hand: u64,
    pub(crate) messages_limit: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_limit: u64,
    pub(crate) when_full: String,
    pub(crate) idle_readers: u64,
    pub(crate) blocked: u64,
    pub(crate) put_rate: u64,
    pub(crate) done_rate: u64,
    pub(crate) done: u64,
    pub(crate) returned: u64,
    pub(crate) dead: u64,
    pub(crate) shed: u64,
    pub(crate) refused: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) sender: String,
    pub(crate) put: String,
    pub(crate) deliveries: u32,
    pub(crate) died_in: Option<String>,
    pub(crate) died_after: Option<u32>,
    pub(crate) bytes: u64,
    pub(crate) payload: Option<Box<RawValue>>,
    pub(crate) payload_text: Option<String>,
    pub(crate) payload_base64: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Peers {
    pub(crate) peers: Vec<Peer>,
    /// An older Main has none.
    #[serde(default)]
    pub(crate) parts: Vec<Part>,
}

/// A part of Main that serves.
#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) restarts: u64,
    pub(crate) reason: Option<String>,
    pub(crate) refused: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) sessions: Vec<PeerSession>,
    pub(crate) denied: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) shed: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PeerSession {
    pub(crate) id: u64,
    pub(crate) since: String,
    pub(crate) proof: String,
    pub(crate) in_flight: u32,
    pub(crate) waiting: u64,
    pub(crate) waiting_bytes: u64,
    pub(crate) serves: Vec<String>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) shed: u64,
    pub(crate) late: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EndedSession {
    pub(crate) id: u64,
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Put {
    pub(crate) id: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Requeued {
    pub(crate) requeued: u64,
}
