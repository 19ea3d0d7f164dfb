//! Which policies an operator can choose, and where.

use weir_names::Policy;

use super::error::quote;

/// Of a subscription: every one.
pub(super) const OF_EVENTS: &str = "`block`, `reject`, `drop-oldest`, `drop-newest` or `latest`";

/// Of a queue.
pub(super) const OF_JOBS: &str = "`reject`, `block`, `drop-oldest` or `drop-newest`";

/// Of an inbox, for requests.
pub(super) const OF_REQUESTS: &str = "`reject` or `block`";

/// The policy of that name; `choice` says which there are.
pub(super) fn named(text: &str, choice: &str) -> Result<Policy, String> {
    let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| format!("{} is not a policy: {choice}", quote(text)))
}

/// The policy, if a queue can have it.
pub(super) fn of_jobs(policy: Policy) -> Result<Policy, String> {
    match policy {
        Policy::Latest => {
            Err(format!("`latest` keeps one of each topic, and jobs have no topics: {OF_JOBS}"))
        }
        policy => Ok(policy),
    }
}

/// The policy, if requests can have it.
pub(super) fn of_requests(policy: Policy) -> Result<Policy, String> {
    match policy {
        Policy::Reject | Policy::Block => Ok(policy),
        lossy => Err(format!("`{lossy}` is for events and jobs, and requests are never lost: {OF_REQUESTS}")),
    }
}
