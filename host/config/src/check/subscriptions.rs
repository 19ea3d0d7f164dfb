//! A subscription's room against that of the inbox.

use super::{Parts, SubscribeLocations};
use crate::{
    LIMIT_KEYS,
    error::{ConfigError, Location},
};

impl Parts<'_> {
    pub(super) fn subscriptions(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for party in self.parties() {
            for (item, grant) in party.subscribes.iter().enumerate() {
                let path = format!("{}.subscribes[{}]", party.path, item + 1);
                let place = |part: fn(&SubscribeLocations) -> Option<&Location>| {
                    party.location(|at| at.subscribes.get(item).and_then(part))
                };
                let messages = (grant.messages.map(u64::from), place(|at| at.messages.as_ref()));
                let bytes = (grant.bytes, place(|at| at.bytes.as_ref()));
                for (name, limit, (wanted, location)) in
                    [("messages", "inbox.messages", messages), ("bytes", "inbox.bytes", bytes)]
                {
                    let key = LIMIT_KEYS.iter().find(|key| key.name == limit);
                    let Some((key, wanted)) = key.zip(wanted) else { continue };
                    let Some((allowed, source)) = party.limit(key).filter(|(allowed, _)| wanted > *allowed)
                    else {
                        continue;
                    };
                    let message = format!(
                        "in `{path}`: `{name}` is {} and `{limit}` only {}{source}: lower `{name}`, or raise \
                         `limits.{limit}`",
                        key.shape.text(wanted),
                        key.shape.text(allowed),
                    );
                    errors.push(ConfigError::new(format!("{path}.{name}"), message, location));
                }
            }
        }
        errors
    }
}
