//! A subscription's room against that of the inbox.

use super::Parts;
use crate::{error::ConfigError, limits::LimitKey};

impl Parts<'_> {
    pub(super) fn subscriptions(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for party in self.parties() {
            let [messages, bytes] = party.room();
            for (item, grant) in party.subscribes.iter().enumerate() {
                let path = format!("{}.subscribes[{}]", party.path, item + 1);
                let at = party.at.and_then(|at| at.item("subscribes", item));
                for (name, limit, wanted, (allowed, source)) in [
                    ("messages", LimitKey::INBOX_MESSAGES, grant.messages.map(u64::from), &messages),
                    ("bytes", LimitKey::INBOX_BYTES, grant.bytes, &bytes),
                ] {
                    let Some(wanted) = wanted.filter(|wanted| wanted > allowed) else { continue };
                    let message = format!(
                        "in `{path}`: `{name}` is {} and `{key}` only {}{source}: lower `{name}`, or raise \
                         `limits.{key}`",
                        limit.shape.text(wanted),
                        limit.shape.text(*allowed),
                        key = limit.name,
                    );
                    let location = at.and_then(|at| at.of(name));
                    errors.push(ConfigError::new(format!("{path}.{name}"), message, location));
                }
            }
        }
        errors
    }
}
