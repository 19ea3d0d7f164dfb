//! Main with real extensions, from the outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod abandoned;
mod access;
mod alter;
mod batches;
mod blocking;
mod cancel;
mod concurrency;
mod counted;
mod described;
mod exports;
mod fairness;
mod files;
mod from_memory;
mod frozen;
mod handed_jobs;
#[cfg(feature = "http")]
mod http;
mod instances;
mod lifecycle;
mod limits;
mod messages;
mod network;
mod order;
mod output;
mod peers;
mod plain;
mod queues;
mod quotas;
mod refused;
mod reload;
mod reload_falls_back;
mod reload_meets;
mod reload_under_load;
mod secrets;
mod sections;
mod stages;
mod support;
mod traps;
mod two_queues;
mod typed;
mod versions;
mod versions_canary;
mod versions_cut;
#[cfg(feature = "store")]
mod versions_data;
mod versions_signed;
