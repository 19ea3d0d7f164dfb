//! Checks between the parts of a configuration, from a file or from Rust.

mod budget;
mod cycles;
mod grants;
mod locations;
mod parties;
mod paths;
mod peers;
mod queues;
mod stores;
mod subscriptions;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Display,
    hash::Hash,
};

use weir_names::ContractName;

use self::parties::{Party, path_of_peer};
pub use self::{
    grants::{Granted, check_grants},
    locations::GrantLocations,
    paths::{is_inside, shown},
};
pub(super) use self::{
    locations::{
        ChannelLocations, ExtensionLocations, Locations, PeerLocations, QueueLocations, ReadFrom,
        SubscribeLocations,
    },
    peers::unreachable_peers,
    values::values,
};
use super::{
    Config, ExtensionConfig, HOOKS_CONTRACT, PeerConfig,
    error::{ConfigError, ERRORS_MAX, Location},
    schema::Judged,
    section::nearest,
};

/// The faults between the parts. If the configuration is not `complete`, a missing part may follow from another
/// error, so it is not reported.
pub(super) fn between_parts(config: &Config, locations: &Locations, complete: bool) -> Vec<ConfigError> {
    let parts = Parts { config, locations };
    let mut errors = Vec::new();
    parts.ids(&mut errors);
    parts.peer_names(&mut errors);
    parts.tokens(&mut errors);
    parts.sockets(&mut errors);
    parts.dirs(&mut errors);
    parts.paths(&mut errors);
    config.sections.all().for_each(|section| section.check(&Judged(parts), &mut errors));
    parts.written_dirs(&mut errors);
    parts.guest_dirs(&mut errors);
    parts.doubles(&mut errors);
    parts.owners(&mut errors);
    if complete {
        parts.providers(&mut errors);
        parts.queues(&mut errors);
        parts.stores(&mut errors);
        config.sections.all().for_each(|section| section.check_names(&Judged(parts), &mut errors));
    }
    parts.cycles(&mut errors);
    parts.dead_letters(&mut errors);
    errors
}

/// Subscriptions with more room than the inbox. Call this only with valid limits.
pub(super) fn subscriptions(config: &Config, locations: &Locations) -> Vec<ConfigError> {
    Parts { config, locations }.subscriptions()
}

/// Whether all memory limits fit into `main.memory-budget`. Call this only if nothing else is wrong: a fix might
/// change the sum.
pub(super) fn memory_budget(config: &Config, locations: &Locations) -> Option<ConfigError> {
    Parts { config, locations }.memory_budget()
}

pub(super) fn absent_paths(config: &Config, locations: &Locations) -> Vec<ConfigError> {
    Parts { config, locations }.absent_paths()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'c> {
    pub(super) config: &'c Config,
    pub(super) locations: &'c Locations,
}

impl Parts<'_> {
    fn extensions(&self) -> impl Iterator<Item = (usize, &ExtensionConfig)> {
        self.config.extensions.iter().enumerate()
    }

    /// The place of a part of an extension. `None` outside files.
    fn location<'p>(
        &'p self,
        index: usize,
        part: impl Fn(&'p ExtensionLocations) -> Option<&'p Location>,
    ) -> Option<Location> {
        self.locations.extensions.get(index).and_then(part).cloned()
    }

    fn ids(&self, errors: &mut Vec<ConfigError>) {
        let mut seen = BTreeMap::new();
        for (index, extension) in self.extensions() {
            let id = &extension.id;
            if let Some(first) = seen.get(id) {
                let message = format!("two extensions have the id `{id}`: rename one, or remove it");
                let error = ConfigError::new(
                    format!("extension[{id}].id"),
                    message,
                    self.location(index, |at| Some(&at.id)),
                );
                errors.push(error.note(self.location(*first, |at| Some(&at.id)), "the first is here"));
            } else {
                seen.insert(id, index);
            }
        }
    }

    fn doubles(&self, errors: &mut Vec<ConfigError>) {
        let (main, locations) = (&self.config.main, self.locations);
        errors.extend(doubles("main.serves", &main.serves, |item| locations.serves.get(item).cloned()));
        errors.extend(doubles("main.trusted-keys", &main.trusted_keys, |item| {
            locations.trusted_keys.get(item).cloned()
        }));
        for party in self.parties() {
            let path = &party.path;
            errors.extend(doubles(&format!("{path}.fulfills"), party.fulfills, |item| {
                party.location(|at| at.fulfills.get(item))
            }));
            errors.extend(doubles(&format!("{path}.puts"), party.puts, |item| {
                party.location(|at| at.puts.get(item))
            }));
            errors.extend(doubles(&format!("{path}.takes"), party.takes, |item| {
                party.location(|at| at.takes.get(item))
            }));
        }
        for (index, extension) in self.extensions() {
            let id = &extension.id;
            errors.extend(doubles(&format!("extension[{id}].requires"), &extension.requires, |item| {
                self.location(index, |at| at.requires.get(item))
            }));
            errors.extend(doubles(&format!("extension[{id}].wants"), &extension.wants, |item| {
                self.location(index, |at| at.wants.get(item))
            }));
            // As names: a store granted twice has two modes.
            let stores: Vec<_> = extension.grants.stores.iter().map(|grant| &grant.name).collect();
            errors.extend(doubles(&format!("extension[{id}].grants.stores"), &stores, |item| {
                self.location(index, |at| at.grants.stores.get(item))
            }));
            errors.extend(doubles(&format!("extension[{id}].runs"), &extension.runs, |item| {
                self.location(index, |at| at.runs.get(item))
            }));
        }
        for (index, peer) in self.peers() {
            let path = path_of_peer(peer);
            errors.extend(doubles(&format!("{path}.tokens"), &peer.tokens, |item| {
                self.location_of_peer(index, |at| at.tokens.get(item))
            }));
            errors.extend(doubles(&format!("{path}.wants"), &peer.wants, |item| {
                self.location_of_peer(index, |at| at.wants.get(item))
            }));
        }
    }

    fn owners(&self, errors: &mut Vec<ConfigError>) {
        let parties: Vec<Party<'_>> = self.parties().collect();
        let mut owners: BTreeMap<&ContractName, (usize, usize, &Party<'_>)> = BTreeMap::new();
        for (index, party) in parties.iter().enumerate() {
            for (item, contract) in party.fulfills.iter().enumerate() {
                let (first, first_item, owner) = *owners.entry(contract).or_insert((index, item, party));
                if first == index {
                    continue;
                }
                let (key, name) = (format!("{}.fulfills", party.path), party.name);
                let message =
                    format!("`{}` and `{name}` both fulfill `{contract}`: leave it to one", owner.name);
                let error = ConfigError::new(key, message, party.location(|at| at.fulfills.get(item)));
                let note = format!("`{}` fulfills it here", owner.name);
                errors.push(error.note(owner.location(|at| at.fulfills.get(first_item)), note));
            }
        }
    }

    fn providers(&self, errors: &mut Vec<ConfigError>) {
        let provided = provided(self.config);
        for (index, extension) in self.extensions() {
            for (item, contract) in extension.requires.iter().enumerate() {
                if provided.contains(contract.as_str()) {
                    continue;
                }
                let id = &extension.id;
                // Comparing all pairs would take minutes in a hostile file, for messages that are never shown.
                let near = (errors.len() < ERRORS_MAX)
                    .then(|| nearest(contract.as_str(), provided.iter().map(String::as_str)));
                let help = near.flatten().map_or_else(
                    || "add its provider, or move it to `wants`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                let message = format!(
                    "`{id}` requires `{contract}`, but no extension or peer fulfills it and `main.serves` does not list it: {help}"
                );
                let location = self.location(index, |at| at.requires.get(item));
                errors.push(ConfigError::new(format!("extension[{id}].requires"), message, location));
            }
        }
    }
}

/// Items that a list repeats. `location` gives the place of an item by its index.
pub fn doubles<T: Display + Eq + Hash>(
    key: &str,
    items: &[T],
    location: impl Fn(usize) -> Option<Location>,
) -> Vec<ConfigError> {
    let mut seen = HashSet::new();
    let doubled = items.iter().enumerate().filter(|(_, item)| !seen.insert(*item));
    doubled
        .map(|(index, item)| ConfigError::new(key, format!("`{key}` lists `{item}` twice"), location(index)))
        .collect()
}

/// All contracts with a provider. Main serves those that no extension serves.
pub(super) fn provided(config: &Config) -> BTreeSet<String> {
    let fulfilled = config.extensions.iter().flat_map(|extension| &extension.fulfills);
    let fulfilled = fulfilled.chain(config.peers.iter().flat_map(|peer| &peer.fulfills));
    let configured = fulfilled.chain(&config.main.serves).map(ToString::to_string);
    let of_sections = config.contracts_of_sections();
    let of_main = of_sections.iter().map(ToString::to_string).chain([HOOKS_CONTRACT.to_owned()]);
    configured.chain(of_main).collect()
}

pub(super) fn unmet_wants(config: &Config) -> Vec<String> {
    let provided = provided(config);
    let of_extensions = config
        .extensions
        .iter()
        .flat_map(|extension| extension.wants.iter().map(move |contract| (extension.id.as_str(), contract)));
    let of_peers = config
        .peers
        .iter()
        .flat_map(|peer| peer.wants.iter().map(move |grant| (peer.name.as_str(), &grant.contract)));
    let unmet = of_extensions.chain(of_peers).filter(|(_, contract)| !provided.contains(contract.as_str()));
    unmet
        .map(|(name, contract)| {
            format!(
                "`{name}` wants `{contract}`, but no extension or peer fulfills it and `main.serves` does not list it"
            )
        })
        .collect()
}

pub(super) fn without_quarantine(config: &Config) -> impl Iterator<Item = String> {
    config.extensions.iter().filter_map(|extension| {
        let why = extension.restart.without_quarantine()?;
        Some(format!("`{}` would never be quarantined: {why}", extension.id))
    })
}

pub(super) fn jobs_for_nobody(config: &Config) -> impl Iterator<Item = String> {
    let users = || {
        let extensions = config.extensions.iter().map(|extension| {
            let ExtensionConfig { id, limits, puts, takes, .. } = extension;
            (id.as_str(), limits.message_size, puts, takes)
        });
        let peers = config.peers.iter().map(|peer| {
            let PeerConfig { name, limits, puts, takes, .. } = peer;
            (name.as_str(), limits.message_size, puts, takes)
        });
        extensions.chain(peers)
    };
    config.all_queues().into_iter().filter_map(move |(name, queue)| {
        let puts = users().filter(|(_, _, puts, _)| puts.contains(&name));
        let (id, put, ..) = puts.max_by_key(|(_, message_size, ..)| *message_size)?;
        let takes = users().filter(|(_, _, _, takes)| takes.contains(&name));
        let taken = takes.map(|(_, message_size, ..)| message_size).max()?;
        (put.min(queue.bytes) > taken).then(|| {
            format!(
                "`{id}` can put larger jobs into `{name}` than the `message-size` of any reader: those are refused"
            )
        })
    })
}
