//! The versions of an extension, and what became of each.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use weir_metrics::DurationsSnapshot;
use weir_names::ExtensionId;

use crate::{OperationStatus, rfc3339, seconds, seconds_if_any};

/// Errors that the host makes because of the extension. All others are its own answers, or its callers' mistakes.
const FAULTS: [&str; 5] = ["limit-exceeded", "overloaded", "peer-gone", "timeout", "trapped"];

/// What Main knows of a version of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Standing {
    /// It has not run long enough to be trusted.
    Probation,
    /// It has held, or an operator has accepted it.
    Proven,
    /// It did not hold, or an operator has rolled it back. It is not run again.
    Refused,
    /// A standing that this version does not know, in an answer of another version of Main.
    #[serde(other)]
    Other,
}

impl Standing {
    /// The standing in one word, as JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probation => "probation",
            Self::Proven => "proven",
            Self::Refused => "refused",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the requests to a version and its memory came to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct VersionFigures {
    /// Requests that ended in an error, by its [case](weir_names::Error::case).
    pub failed: BTreeMap<String, u64>,
    /// From the send to the outcome, of each request.
    pub durations: DurationsSnapshot,
    /// Bytes of its linear memory, at the moment when it had most of all that were looked at.
    pub memory: u64,
}

impl VersionFigures {
    /// The sum of these operations.
    pub fn of(operations: impl IntoIterator<Item = OperationStatus>, memory: u64) -> Self {
        let mut sum = Self { memory, ..Self::default() };
        for OperationStatus { failed, durations, .. } in operations {
            let failed = failed.into_iter().map(|(case, count)| (case.into_owned(), count)).collect();
            sum.add(&Self { failed, durations, memory });
        }
        sum
    }

    /// Adds figures of another time.
    pub fn add(&mut self, other: &Self) {
        for (case, count) in &other.failed {
            *self.failed.entry(case.clone()).or_default() += count;
        }
        self.durations.add(&other.durations);
        self.memory = self.memory.max(other.memory);
    }

    /// What came to these figures since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let was = |case: &String| before.failed.get(case).copied().unwrap_or_default();
        let failed = self.failed.iter().map(|(case, count)| (case.clone(), count.saturating_sub(was(case))));
        Self {
            failed: failed.filter(|(_, count)| *count > 0).collect(),
            durations: self.durations.since(&before.durations),
            memory: self.memory,
        }
    }

    /// Requests that ended.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.durations.buckets.iter().sum()
    }

    /// Requests that ended in an error by the fault of the extension: it trapped, was too slow, or took too much.
    #[must_use]
    pub fn faults(&self) -> u64 {
        FAULTS.iter().filter_map(|case| self.failed.get(*case)).sum()
    }

    /// Requests that ended in any other error, such as one that the extension answered with.
    #[must_use]
    pub fn other_errors(&self) -> u64 {
        self.failed.values().sum::<u64>() - self.faults()
    }

    /// The 99th percentile of the durations: the bound of its bucket. None without requests, or above all bounds.
    #[must_use]
    pub fn p99(&self) -> Option<Duration> {
        self.durations.quantile(99, 100)
    }
}

/// A version of an extension: a component, with the stanza that it ran under.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VersionStatus {
    /// Its number, from 1. A later version has a higher number.
    pub number: u64,
    /// SHA-256 of the component, in hexadecimal.
    pub hash: String,
    /// What Main knows of it.
    pub standing: Standing,
    /// When that became its standing.
    #[serde(with = "rfc3339")]
    pub since: SystemTime,
    /// How long it has run, as a version on probation.
    #[serde(with = "seconds")]
    pub ran: Duration,
    /// Its failures on probation.
    pub failures: u64,
    /// What its requests and memory came to.
    #[serde(default)]
    pub figures: VersionFigures,
    /// Why it has its standing, if there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A change of the version that an extension runs, or of its standing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VersionChange {
    /// When it was decided.
    #[serde(with = "rfc3339")]
    pub time: SystemTime,
    /// The version that it is about.
    pub version: u64,
    /// Its standing from then on.
    pub standing: Standing,
    /// The version that serves from then on.
    pub serves: u64,
    /// Why.
    pub reason: String,
    /// Requests to the version so far.
    pub requests: u64,
    /// Those that ended in an error.
    pub failed: u64,
    /// The 99th percentile of their durations, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds_if_any")]
    pub p99: Option<Duration>,
    /// Bytes of its linear memory, at most.
    pub memory: u64,
}

/// The versions of one extension with `update`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VersionsStatus {
    /// The extension.
    pub extension: ExtensionId,
    /// The version that runs, or ran last.
    pub serving: Option<u64>,
    /// The version on probation that one of several instances runs, while the others run the version that serves.
    #[serde(default)]
    pub canary: Option<u64>,
    /// The version that comes back if the present one does not hold.
    pub fallback: Option<u64>,
    /// Why another version runs than the configured one.
    pub held_back: Option<String>,
    /// How long a version must run on probation.
    #[serde(with = "seconds")]
    pub prove_for: Duration,
    /// Whether versions outlive Main, because `main.state-dir` is set.
    pub is_kept: bool,
    /// The versions, latest first.
    pub versions: Vec<VersionStatus>,
    /// The last changes, oldest first.
    pub changes: VecDeque<VersionChange>,
    /// What is known of the extension's data. None if all versions can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataStatus>,
}

/// The data of an extension whose versions do not all read what the others write.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DataStatus {
    /// The oldest version that can read what is in the stores, by the versions of manifests. None if all can.
    pub since: Option<String>,
    /// What was in the stores before a version changed its form, oldest first.
    pub snapshots: Vec<DataSnapshot>,
    /// What was in the stores before it was restored for a version that has not been ready since.
    pub put_aside: Option<DataSnapshot>,
}

/// What was in the stores of an extension.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DataSnapshot {
    /// SHA-256 of its file, in hexadecimal.
    pub hash: String,
    /// Bytes of its file.
    pub bytes: u64,
    /// When it was taken.
    #[serde(with = "rfc3339")]
    pub taken: SystemTime,
    /// The oldest version that can read it, by the versions of manifests. None if all can.
    pub since: Option<String>,
    /// The number of the version that it was taken for, before that ran.
    pub before: u64,
}

/// The version that an extension runs, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServingVersion {
    /// Its number.
    pub number: u64,
    /// What Main knows of it.
    pub standing: Standing,
    /// Whether it runs although another one is configured, which was refused or cannot be read.
    pub is_held_back: bool,
}
