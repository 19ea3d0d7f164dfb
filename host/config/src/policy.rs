//! The policies that an operator can choose.

use weir_names::{Policy, QueuePolicy, RequestPolicy};

use super::{error::quote, kind::choice};

pub(super) fn of_events(text: &str) -> Result<Policy, String> {
    known(text).ok_or_else(|| unknown(text, &Policy::ALL.map(Policy::name)))
}

pub(super) fn of_jobs(text: &str) -> Result<QueuePolicy, String> {
    let found = QueuePolicy::ALL.into_iter().find(|policy| policy.name() == text);
    let words = QueuePolicy::ALL.map(QueuePolicy::name);
    found.ok_or_else(|| match known(text) {
        Some(latest) => {
            format!("`{latest}` keeps one of each topic, and jobs have no topics: {}", choice(words))
        }
        None => unknown(text, &words),
    })
}

pub(super) fn of_requests(text: &str) -> Result<RequestPolicy, String> {
    let found = RequestPolicy::ALL.into_iter().find(|policy| policy.name() == text);
    let words = RequestPolicy::ALL.map(RequestPolicy::name);
    found.ok_or_else(|| match known(text) {
        Some(lossy) => {
            format!("`{lossy}` is for events and jobs, and requests are never lost: {}", choice(words))
        }
        None => unknown(text, &words),
    })
}

fn known(text: &str) -> Option<Policy> {
    Policy::ALL.into_iter().find(|policy| policy.name() == text)
}

fn unknown(text: &str, words: &[&str]) -> String {
    format!("{} is not a policy: {}", quote(text), choice(words.iter().copied()))
}
