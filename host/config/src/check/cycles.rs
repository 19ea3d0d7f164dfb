//! Cycles in `requires`.

use std::collections::BTreeSet;

use weir_names::{ContractName, ExtensionId};

use super::Parts;
use crate::{
    error::{ConfigError, Location, listed},
    order::{dependencies, order},
};

impl Parts<'_> {
    pub(super) fn cycles(&self, errors: &mut Vec<ConfigError>) {
        for cycle in order(&dependencies(&self.config.extensions)).cycles {
            let round: Vec<_> = cycle.iter().chain(cycle.first()).copied().collect();
            let mut waits =
                round.iter().zip(round.iter().skip(1)).filter_map(|(from, to)| self.wait(*from, *to));
            let Some(first) = waits.next() else {
                continue;
            };
            let message = if first.from == first.to {
                format!(
                    "`{}` requires `{}`, which it fulfills itself: remove it there",
                    first.from, first.contract
                )
            } else {
                let names = round.iter().filter_map(|index| self.config.extensions.get(*index));
                let names = listed(names.map(|extension| extension.id.as_str()), " -> ");
                format!("`requires` forms a cycle: {names}: move one of them to `wants`")
            };
            let error =
                ConfigError::new(format!("extension[{}].requires", first.from), message, first.location);
            errors.push(waits.fold(error, |error, wait| {
                error.note(
                    wait.location,
                    format!("`{}` requires `{}` of `{}` here", wait.from, wait.contract, wait.to),
                )
            }));
        }
    }

    fn wait(&self, from: usize, to: usize) -> Option<Wait<'_>> {
        let (waiting, owner) = (self.config.extensions.get(from)?, self.config.extensions.get(to)?);
        let fulfilled: BTreeSet<&ContractName> = owner.fulfills.iter().collect();
        let mut required = waiting.requires.iter().enumerate();
        let (item, contract) = required.find(|(_, contract)| fulfilled.contains(contract))?;
        let location = self.places(from).and_then(|at| at.of_item("requires", item));
        Some(Wait { from: &waiting.id, to: &owner.id, contract, location })
    }
}

struct Wait<'c> {
    from: &'c ExtensionId,
    to: &'c ExtensionId,
    contract: &'c ContractName,
    location: Option<Location>,
}
