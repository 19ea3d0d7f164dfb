//! The peers that keep the jobs of queues.

use std::collections::{BTreeMap, BTreeSet};

use weir_names::{ContractName, QueueName};

use super::{Parts, parties::Party};
use crate::{error::ConfigError, section::suggestion};

impl Parts<'_> {
    /// Each `store` is a contract of a peer that may put the jobs in the queue.
    pub(super) fn stores(&self, errors: &mut Vec<ConfigError>) {
        if self.config.queues.values().all(|queue| queue.store.is_none()) {
            return;
        }
        let parties: Vec<Party<'_>> = self.parties().collect();
        let owners: BTreeMap<&ContractName, &Party<'_>> =
            parties.iter().flat_map(|party| party.fulfills.iter().map(move |it| (it, party))).collect();
        let of_peers = || parties.iter().filter(|party| party.is_peer);
        let puts: BTreeSet<(&str, &QueueName)> =
            of_peers().flat_map(|peer| peer.puts.iter().map(|queue| (peer.name, queue))).collect();

        for (name, queue) in &self.config.queues {
            let Some(store) = &queue.store else { continue };
            let key = format!("queue.{name}.store");
            let message = match owners.get(store) {
                Some(peer) if peer.is_peer && puts.contains(&(peer.name, name)) => continue,
                Some(peer) if peer.is_peer => format!(
                    "`{}` keeps the jobs of `{name}`, so it must put them there: add `{name}` to its `puts`",
                    peer.name
                ),
                Some(extension) => format!(
                    "`{}` fulfills `{store}`, but it is an extension, and only a peer can keep jobs",
                    extension.name
                ),
                None => {
                    let known = of_peers().flat_map(|peer| peer.fulfills).map(ContractName::as_str);
                    let help = suggestion(store.as_str(), known, errors, "add a peer that does");
                    format!("`{key}` is `{store}`, but no peer fulfills it: {help}")
                }
            };
            let location = self.locations.queues.get(name).and_then(|at| at.of("store"));
            errors.push(ConfigError::new(key, message, location));
        }
    }
}
