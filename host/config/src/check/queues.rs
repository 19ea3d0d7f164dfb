//! Queues: unknown ones, the peers that keep jobs, and cycles of dead letters.

use std::collections::{BTreeMap, BTreeSet};

use weir_names::{ContractName, QueueName};

use super::{Judged, parties::Party};
use crate::{
    error::{ConfigError, listed},
    order::order,
    section::suggestion,
};

impl Judged<'_> {
    /// Reports unknown queues in `puts` and `takes`.
    pub(super) fn queues(&self, errors: &mut Vec<ConfigError>) {
        let known = self.config.all_queues();
        let mut look_up = |party: &Party<'_>, key, does, names: &[QueueName]| {
            for (item, name) in names.iter().enumerate().filter(|(_, name)| !known.contains_key(*name)) {
                let known = known.keys().map(QueueName::as_str);
                let help = suggestion(name.as_str(), known, errors, format!("add it, as `[queue.{name}]`"));
                let user = party.name;
                let message = format!("`{user}` {does} `{name}`, but there is no such queue: {help}");
                let location = party.place(key, item);
                errors.push(ConfigError::new(format!("{}.{key}", party.path), message, location));
            }
        };
        for party in self.parties() {
            look_up(&party, "puts", "puts jobs in", party.puts);
            look_up(&party, "takes", "takes jobs from", party.takes);
        }
    }

    /// Checks that each `store` is a contract of a peer that may put jobs in that queue.
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

    /// Reports queues whose dead letters go in a circle.
    pub(super) fn dead_letters(&self, errors: &mut Vec<ConfigError>) {
        let names: Vec<&QueueName> = self.config.queues.keys().collect();
        let index: BTreeMap<_, _> = names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
        let next = self
            .config
            .queues
            .values()
            .map(|queue| queue.dead_letter.iter().filter_map(|name| index.get(name).copied()).collect());
        for cycle in order(&next.collect::<Vec<_>>()).cycles {
            let round: Vec<&QueueName> =
                cycle.iter().filter_map(|index| names.get(*index).copied()).collect();
            let Some(first) = round.first() else {
                continue;
            };
            let location =
                |name: &QueueName| self.locations.queues.get(name).and_then(|at| at.of("dead-letter"));
            let key = format!("queue.{first}.dead-letter");
            let message = if round.len() == 1 {
                format!("`{key}` is the queue itself: name another, or leave it out")
            } else {
                let names = listed(round.iter().chain([first]).map(|name| name.as_str()), " -> ");
                format!("`dead-letter` forms a cycle: {names}: leave it out of one of them")
            };
            let error = ConfigError::new(key, message, location(first));
            let next = round.iter().skip(1).chain([first]);
            errors.push(round.iter().zip(next).skip(1).fold(error, |error, (name, next)| {
                error.note(location(name), format!("the dead letters of `{name}` go to `{next}` here"))
            }));
        }
    }
}
