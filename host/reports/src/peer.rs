//! Programs outside Main, and their sessions.

use std::{borrow::Cow, fmt, time::SystemTime};

use serde::{Deserialize, Serialize};
use weir_names::{ContractName, PeerName};

use crate::rfc3339;

/// A name with its sessions, at one moment.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PeerStatus {
    /// The name.
    pub name: PeerName,
    /// Contracts that programs under it may serve.
    pub fulfills: Vec<ContractName>,
    /// Its sessions, oldest first.
    pub sessions: Vec<SessionStatus>,
    /// Sessions since Main started.
    pub sessions_so_far: u64,
    /// Attempts with a wrong proof.
    pub denied: u64,
    /// Counts of all sessions since Main started.
    #[serde(flatten)]
    pub counts: PeerCounts,
}

/// A session at one moment.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionStatus {
    /// Its number.
    pub id: SessionId,
    /// The name that it runs under.
    pub name: PeerName,
    /// When it began.
    #[serde(with = "rfc3339")]
    pub since: SystemTime,
    /// How it proved its name: `token`, `uid` or `program`; `main` for a part of Main, which nobody can end.
    pub proof: Cow<'static, str>,
    /// Calls, events and jobs of its own under way.
    pub in_flight: u32,
    /// Messages that wait for it.
    pub waiting: u64,
    /// Bytes of the waiting messages.
    pub waiting_bytes: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Contracts that it serves.
    pub serves: Vec<ContractName>,
    /// Its counts.
    #[serde(flatten)]
    pub counts: PeerCounts,
}

/// The number of a session, never used twice while Main runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(transparent)]
pub struct SessionId(pub u64);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts of one session, or of all under a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PeerCounts {
    /// Requests, events and jobs that it sent.
    pub sent: u64,
    /// Requests and events that it received.
    pub received: u64,
    /// Messages to it that found no room.
    pub shed: u64,
    /// Its answers after the deadline.
    pub late: u64,
}
