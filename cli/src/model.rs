//! Main's answers around its reports, as far as people see them. Fields of a newer Main are ignored.

use serde::Deserialize;
use serde_json::{Map, Number, Value, value::RawValue};
use weir_host::{
    control::{ExtensionStatus, HistoryEntry, PartStatus},
    limits::{DirLimits, LimitUnit},
    peers::PeerStatus,
    traffic::{JobStatus, QueueStatus},
};

#[derive(Debug, Deserialize)]
pub(crate) struct Extensions {
    pub(crate) extensions: Vec<ExtensionStatus>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct History {
    pub(crate) history: Vec<HistoryEntry>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Spans {
    pub(crate) spans: Vec<Value>,
    pub(crate) recorded: u64,
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
pub(crate) struct Limit {
    pub(crate) key: String,
    pub(crate) unit: LimitUnit,
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
pub(crate) struct Queues {
    pub(crate) queues: Vec<QueueStatus>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Job {
    #[serde(flatten)]
    pub(crate) status: JobStatus,
    pub(crate) payload: Option<Box<RawValue>>,
    pub(crate) payload_text: Option<String>,
    pub(crate) payload_base64: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Peers {
    pub(crate) peers: Vec<PeerStatus>,
    /// An older Main has none.
    #[serde(default)]
    pub(crate) parts: Vec<PartStatus>,
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
