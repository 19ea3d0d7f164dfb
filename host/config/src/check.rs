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

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Display,
    hash::Hash,
};

use weir_names::ContractName;

use self::parties::{Party, path_of_peer};
pub use self::{
    grants::{Granted, check_grants},
    paths::{is_inside, shown},
};
pub(super) use self::{
    locations::{Locations, ReadFrom},
    peers::unreachable_peers,
};
use super::{
    Config, ExtensionConfig, HOOKS_CONTRACT, MainConfig, PeerConfig,
    error::ConfigError,
    key::{Places, faults},
    schema::Judged,
    section::{child, suggestion},
};

/// The faulty values of a configuration made in Rust. Files are checked as they are read.
pub(super) fn values(config: &Config) -> Vec<ConfigError> {
    let mut errors = faults(&config.main, "main");
    for extension in &config.extensions {
        let path = format!("extension[{}]", extension.id);
        errors.extend(faults(extension, &path));
        if extension.copy_of.is_some() {
            let message = "`copy_of` is Main's own: say how many run with `instances`";
            errors.push(ConfigError::new(format!("{path}.copy_of"), message, None));
        }
    }
    errors.extend(config.peers.iter().flat_map(|peer| faults(peer, &path_of_peer(peer))));
    errors.extend(config.queues.iter().flat_map(|(name, queue)| faults(queue, &format!("queue.{name}"))));
    errors.extend(config.sections.all().flat_map(|section| section.check_values()));
    errors
}

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

    /// The places of an extension. `None` outside files.
    fn places(&self, index: usize) -> Option<&Places> {
        self.locations.extensions.get(index)
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
                    self.places(index).and_then(|at| at.of("id")),
                );
                let first_at = self.places(*first).and_then(|at| at.of("id"));
                errors.push(error.note(first_at, "the first is here"));
            } else {
                seen.insert(id, index);
            }
        }
    }

    fn doubles(&self, errors: &mut Vec<ConfigError>) {
        let MainConfig { serves, trusted_keys, .. } = &self.config.main;
        let main = Some(&self.locations.main);
        errors.extend(doubles("main", "serves", serves, main));
        errors.extend(doubles("main", "trusted-keys", trusted_keys, main));
        for Party { path, fulfills, puts, takes, at, .. } in self.parties() {
            errors.extend(doubles(&path, "fulfills", fulfills, at));
            errors.extend(doubles(&path, "puts", puts, at));
            errors.extend(doubles(&path, "takes", takes, at));
        }
        for (index, extension) in self.extensions() {
            let (path, at) = (format!("extension[{}]", extension.id), self.places(index));
            errors.extend(doubles(&path, "requires", &extension.requires, at));
            errors.extend(doubles(&path, "wants", &extension.wants, at));
            errors.extend(doubles(&path, "runs", &extension.runs, at));
            // As names: a store granted twice has two modes.
            let stores: Vec<_> = extension.grants.stores.iter().map(|grant| &grant.name).collect();
            let at = at.and_then(|at| at.within("grants"));
            errors.extend(doubles(&format!("{path}.grants"), "stores", &stores, at));
        }
        for (index, peer) in self.peers() {
            let (path, at) = (path_of_peer(peer), self.locations.peers.get(index));
            errors.extend(doubles(&path, "tokens", &peer.tokens, at));
            errors.extend(doubles(&path, "wants", &peer.wants, at));
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
                let error = ConfigError::new(key, message, party.place("fulfills", item));
                let note = format!("`{}` fulfills it here", owner.name);
                errors.push(error.note(owner.place("fulfills", first_item), note));
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
                let known = provided.iter().map(String::as_str);
                let otherwise = "add its provider, or move it to `wants`";
                let help = suggestion(contract.as_str(), known, errors, otherwise);
                let message = format!(
                    "`{id}` requires `{contract}`, but no extension or peer fulfills it and `main.serves` does not list it: {help}"
                );
                let location = self.places(index).and_then(|at| at.of_item("requires", item));
                errors.push(ConfigError::new(format!("extension[{id}].requires"), message, location));
            }
        }
    }
}

/// Items that the list at `key` of the table at `path` repeats.
pub fn doubles<T: Display + Eq + Hash>(
    path: &str,
    key: &str,
    items: &[T],
    at: Option<&Places>,
) -> Vec<ConfigError> {
    doubles_in(&child(path, key), items, at.and_then(|at| at.within(key)))
}

/// Items that the list at `path` repeats.
pub fn doubles_in<T: Display + Eq + Hash>(path: &str, items: &[T], at: Option<&Places>) -> Vec<ConfigError> {
    let mut seen = HashSet::new();
    let doubled = items.iter().enumerate().filter(|(_, item)| !seen.insert(*item));
    let error = |(index, item)| {
        let location = at.and_then(|at| at.item_here(index));
        ConfigError::new(path, format!("`{path}` lists `{item}` twice"), location)
    };
    doubled.map(error).collect()
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
