//! Unknown queues, and cycles of dead letters.

use std::collections::BTreeMap;

use weir_names::QueueName;

use super::{Parts, parties::Party};
use crate::{
    error::{ConfigError, listed},
    order::order,
    section::suggestion,
};

impl Parts<'_> {
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
