//! Extensions whose exported functions are operations: what they cannot have.

use weir_names::{ContractName, InterfaceName};

use super::Judged;
use crate::{Validate, error::ConfigError};

impl Judged<'_> {
    /// Reports what does not go together with exports, and `per-call` without them.
    pub(super) fn exports(&self, errors: &mut Vec<ConfigError>) {
        for (index, extension) in self.extensions() {
            let id = &extension.id;
            let mut report = |key: &str, item, message: String| {
                let places = self.places_of_extension(index);
                let at =
                    places.and_then(|at| at.of_item(key, item).or_else(|| at.of(key)).or_else(|| at.here()));
                errors.push(ConfigError::new(format!("extension[{id}].{key}"), message, at));
            };
            if extension.per_call && extension.exports.is_empty() {
                let message = format!(
                    "`{id}` has no calls to make instances for: `per-call` is for contracts with an `export`"
                );
                report("instances", 0, message);
            }
            if extension.per_call && extension.instances > 1 {
                report(
                    "instances",
                    0,
                    format!("`{id}` has an instance for each call, so it has one at a time"),
                );
            }
            let own = |contract: &&ContractName| extension.fulfills.contains(contract);
            if let Some(contract) = extension.imports.values().find(own) {
                let message = format!(
                    "`{id}` would wait for itself: it fulfills `{contract}`, which answers an import"
                );
                report("imports", 0, message);
            }
            let of_none = |name: &InterfaceName| !extension.imports.contains_key(name);
            if let Some(place) = extension.snake_case_imports.iter().position(of_none) {
                report(
                    "snake-case-imports",
                    place,
                    format!("no contract of `{id}` answers this: `imports` lacks it"),
                );
            }
            if let Some(contract) = extension.exports.keys().find(|it| !extension.fulfills.contains(it)) {
                report(
                    "fulfills",
                    0,
                    format!("`{id}` has an export for `{contract}`, and does not fulfill that"),
                );
            }
            if extension.exports.is_empty() {
                continue;
            }
            let own = extension.fulfills.iter().position(|it| !extension.exports.contains_key(it));
            if let Some(own) = own {
                let message = format!(
                    "`{id}` runs by itself for one contract and is called for another: give each contract an `export`, or none"
                );
                report("fulfills", own, message);
            }
            if extension.validate != Validate::Nothing {
                let message =
                    format!("the arguments of the exports of `{id}` are always checked: remove `validate`");
                report("validate", 0, message);
            }
            for (key, is_empty) in
                [("subscribes", extension.subscribes.is_empty()), ("takes", extension.takes.is_empty())]
            {
                if !is_empty {
                    let message =
                        format!("the exports of `{id}` are called for requests alone: remove `{key}`");
                    report(key, 0, message);
                }
            }
        }
    }
}
