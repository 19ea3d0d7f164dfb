//! The policies that an operator can choose.

use weir_names::{Policy, QueuePolicy, RequestPolicy};

use super::error::quote;

pub(super) const OF_EVENTS: &str = "`block`, `reject`, `drop-oldest`, `drop-newest` or `latest`";

pub(super) const OF_JOBS: &str = "`reject`, `block`, `drop-oldest` or `drop-newest`";

pub(super) const OF_REQUESTS: &str = "`reject` or `block`";

pub(super) fn of_events(text: &str) -> Result<Policy, String> {
    known(text).ok_or_else(|| unknown(text, OF_EVENTS))
}

pub(super) fn of_jobs(text: &str) -> Result<QueuePolicy, String> {
    let found = QueuePolicy::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| match known(text) {
        Some(latest) => format!("`{latest}` keeps one of each topic, and jobs have no topics: {OF_JOBS}"),
        None => unknown(text, OF_JOBS),
    })
}

pub(super) fn of_requests(text: &str) -> Result<RequestPolicy, String> {
    let found = RequestPolicy::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| match known(text) {
        Some(lossy) => {
            format!("`{lossy}` is for events and jobs, and requests are never lost: {OF_REQUESTS}")
        }
        None => unknown(text, OF_REQUESTS),
    })
}

fn known(text: &str) -> Option<Policy> {
    Policy::ALL.into_iter().find(|policy| policy.name() == text)
}

fn unknown(text: &str, choice: &str) -> String {
    format!("{} is not a policy: {choice}", quote(text))
}
