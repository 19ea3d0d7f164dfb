//! A subscription's room against that of the inbox.

use super::Parts;
use crate::{LIMIT_KEYS, error::ConfigError};

impl Parts<'_> {
    pub(super) fn subscriptions(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for (index, extension) in self.extensions() {
            for (item, grant) in extension.subscribes.iter().enumerate() {
                let path = format!("extension[{}].subscribes[{}]", extension.id, item + 1);
                let locations = || self.locations.extensions.get(index)?.subscribes.get(item);
                let messages =
                    (grant.messages.map(u64::from), locations().and_then(|at| at.messages.as_ref()));
                let bytes = (grant.bytes, locations().and_then(|at| at.bytes.as_ref()));
                for (name, limit, (wanted, location)) in
                    [("messages", "inbox.messages", messages), ("bytes", "inbox.bytes", bytes)]
                {
                    let key = LIMIT_KEYS.iter().find(|key| key.name == limit);
                    let Some((key, wanted)) = key.zip(wanted) else { continue };
                    let Some(allowed) = (key.get)(&extension.limits).filter(|allowed| wanted > *allowed)
                    else {
                        continue;
                    };
                    let message = format!(
                        "in `{path}`: `{name}` is {} and `{limit}` only {} ({}): lower `{name}`, or raise \
                         `limits.{limit}`",
                        key.shape.text(wanted),
                        key.shape.text(allowed),
                        extension.limits.source(key),
                    );
                    errors.push(ConfigError::new(format!("{path}.{name}"), message, location.cloned()));
                }
            }
        }
        errors
    }
}
