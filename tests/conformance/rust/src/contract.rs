//! What the guest serves and calls.

use serde::{Deserialize, Serialize};
use weir_sdk::Shape;

weir_sdk::contract! {
    /// What Weir can do from a language.
    pub(crate) const CONFORMANCE = "conformance@1";

    /// The same bytes.
    pub(crate) const ECHO: fn(bytes) -> bytes = "echo";
    /// `N` bytes.
    pub(crate) const LARGE: fn(bytes) -> bytes = "large";
    /// Adds, and publishes the sum.
    pub(crate) const ADD: fn(Numbers) -> Sum = "add", errors { "overflow": "`left` is over 1,000,000." };
    /// Adds by `tester@1`: `LEFT RIGHT`.
    pub(crate) const RELAY: fn(bytes) -> bytes = "relay";
    /// Fails: `CODE MESSAGE`.
    pub(crate) const FAIL: fn(bytes) -> bytes = "fail";
    /// Panics.
    pub(crate) const BREAK: fn(bytes) -> bytes = "break";
    /// Never waits.
    pub(crate) const SPIN: fn(bytes) -> bytes = "spin";
    /// Calls itself: `LEVELS`.
    pub(crate) const RECURSE: fn(bytes) -> bytes = "recurse";
    /// Calls: `CONTRACT OPERATION PROVIDER MS PAYLOAD`.
    pub(crate) const CALL: fn(bytes) -> bytes = "call";
    /// Calls, and publishes the outcome.
    pub(crate) const SEND: fn(bytes) -> bytes = "send";
    /// Calls, and gives up.
    pub(crate) const CANCEL: fn(bytes) -> bytes = "cancel";
    /// Publishes: `TOPIC PAYLOAD`.
    pub(crate) const PUBLISH: fn(bytes) -> bytes = "publish";
    /// Publishes to one extension: `EXTENSION TOPIC PAYLOAD`.
    pub(crate) const PUBLISH_TO: fn(bytes) -> bytes = "publish-to";
    /// Subscribes to a pattern.
    pub(crate) const SUBSCRIBE: fn(bytes) -> bytes = "subscribe";
    /// Ends a subscription.
    pub(crate) const UNSUBSCRIBE: fn(bytes) -> bytes = "unsubscribe";
    /// Puts a job: `QUEUE MS PAYLOAD`.
    pub(crate) const PUT: fn(bytes) -> bytes = "put";
    /// Takes a job: `QUEUE MS`.
    pub(crate) const TAKE: fn(bytes) -> bytes = "take";
    /// Waits, and publishes that it did: `MS`.
    pub(crate) const SLEEP: fn(bytes) -> bytes = "sleep";
    /// `OWN-NAME SENDER REMAINING`.
    pub(crate) const CONTEXT: fn(bytes) -> bytes = "context";
    /// Declares itself interrupted: `REASON`.
    pub(crate) const INTERRUPT: fn(bytes) -> bytes = "interrupt";
    /// Logs: `LEVEL TEXT`.
    pub(crate) const LOG: fn(bytes) -> bytes = "log";
    /// A value of the configuration.
    pub(crate) const CONFIG: fn(bytes) -> bytes = "config";
    /// A variable of the environment.
    pub(crate) const ENV: fn(bytes) -> bytes = "env";
    /// Reads a file.
    pub(crate) const READ: fn(bytes) -> bytes = "read";
    /// Writes a file: `PATH CONTENT`.
    pub(crate) const WRITE: fn(bytes) -> bytes = "write";

    /// Numbers to add.
    pub(crate) const NUMBERS: topic(Numbers) = "conformance.numbers";
    /// Sums.
    pub(crate) const SUMS: topic(Sum) = "conformance.out.sum";
    /// Jobs, by what the handler is to do.
    pub(crate) const JOBS: queue(bytes) = "conformance-jobs";
}

weir_sdk::contract! {
    /// What the test serves.
    pub(crate) const TESTER = "tester@1";
    /// Adds, or answers something else.
    pub(crate) const TESTER_ADD: fn(Numbers) -> Sum = "add";
}

/// Two numbers.
#[derive(Serialize, Deserialize, Shape)]
pub(crate) struct Numbers {
    /// The first.
    pub(crate) left: i64,
    /// The second.
    pub(crate) right: i64,
}

/// Their sum.
#[derive(Serialize, Deserialize, Shape)]
pub(crate) struct Sum {
    /// `left + right`.
    pub(crate) sum: i64,
}
