//! Checks between the parts of a configuration, from a file or from Rust.

mod budget;
mod exports;
mod grants;
mod listeners;
mod mounts;
mod parties;
mod paths;
mod queues;

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    fmt::Display,
    hash::Hash,
};

use weir_names::ContractName;

use self::parties::{Party, path_of_peer};
pub use self::{
    grants::{Granted, check_grants},
    paths::{is_inside, shown},
};
use super::{
    Config, ExtensionConfig, HOOKS_CONTRACT, MainConfig,
    config::Locations,
    error::{ConfigError, Location, listed},
    key::{Places, faults},
    order::{dependencies, order},
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

/// Adds the faults between the parts. If the configuration is not `complete`, a missing part may follow from another
/// error, so it is not reported.
pub(super) fn parts(config: &Config, locations: &Locations, complete: bool, errors: &mut Vec<ConfigError>) {
    let judged = Judged { config, locations };
    // Only valid limits can be compared.
    if errors.is_empty() {
        judged.subscriptions(errors);
    }
    errors.extend(judged.between_parts(complete));
    // The budget is checked last, because fixing any other fault might change the sum.
    if errors.is_empty() {
        errors.extend(judged.memory_budget());
    }
}

/// The whole configuration and its places, for checks.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'c> {
    pub(super) config: &'c Config,
    pub(super) locations: &'c Locations,
}

impl<'c> Judged<'c> {
    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &'c Config {
        self.config
    }

    /// The places of the extension with this index, from 0. `None` if the configuration was made in Rust.
    #[must_use]
    pub fn places_of_extension(&self, extension: usize) -> Option<&'c Places> {
        self.locations.extensions.get(extension)
    }

    fn extensions(&self) -> impl Iterator<Item = (usize, &'c ExtensionConfig)> {
        self.config.extensions.iter().enumerate()
    }

    /// The place of a key of an extension.
    fn place(&self, extension: usize, key: &str) -> Option<Location> {
        self.places_of_extension(extension)?.of(key)
    }

    fn between_parts(&self, complete: bool) -> Vec<ConfigError> {
        let sections = || self.config.sections.all();
        let mut errors = Vec::new();
        self.ids(&mut errors);
        self.peer_names(&mut errors);
        self.tokens(&mut errors);
        self.sockets(&mut errors);
        self.dirs(&mut errors);
        self.state_dir_apart(&mut errors);
        self.paths(&mut errors);
        sections().for_each(|section| section.check(self, &mut errors));
        self.written_dirs(&self.config.main, &mut errors);
        self.guest_dirs(&mut errors);
        self.doubles(&mut errors);
        self.owners(&mut errors);
        self.mounts(&mut errors);
        self.exports(&mut errors);
        self.listeners(&mut errors);
        if complete {
            self.providers(&mut errors);
            self.queues(&mut errors);
            self.stores(&mut errors);
            self.callers_of_mounts(&mut errors);
            sections().for_each(|section| section.check_names(self, &mut errors));
        }
        self.cycles(&mut errors);
        self.dead_letters(&mut errors);
        errors
    }

    /// Reports two extensions with one id.
    fn ids(&self, errors: &mut Vec<ConfigError>) {
        let ids = self.extensions().map(|(index, extension)| (&extension.id, (index, &extension.id)));
        for ((first, _), (second, id)) in repeated(ids) {
            let message = format!("two extensions have the id `{id}`: rename one, or remove it");
            let error = ConfigError::new(format!("extension[{id}].id"), message, self.place(second, "id"));
            errors.push(error.note(self.place(first, "id"), "the first is here"));
        }
    }

    /// Reports repeated items of all lists.
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
            let (path, at) = (format!("extension[{}]", extension.id), self.places_of_extension(index));
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

    /// Reports contracts that two parties fulfill.
    fn owners(&self, errors: &mut Vec<ConfigError>) {
        let parties: Vec<Party<'_>> = self.parties().collect();
        let fulfilled = parties.iter().flat_map(|party| {
            let contracts = party.fulfills.iter().enumerate();
            contracts.map(move |(item, contract)| (contract, (party, item, contract)))
        });
        for ((owner, first_item, _), (party, item, contract)) in repeated(fulfilled) {
            // A contract that one party lists twice is reported elsewhere.
            if std::ptr::eq(owner, party) {
                continue;
            }
            let (first, name) = (owner.name, party.name);
            let message = format!("`{first}` and `{name}` both fulfill `{contract}`: leave it to one");
            let key = format!("{}.fulfills", party.path);
            let error = ConfigError::new(key, message, party.place("fulfills", item));
            errors
                .push(error.note(owner.place("fulfills", first_item), format!("`{first}` fulfills it here")));
        }
    }

    /// Reports required contracts that nobody provides.
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
                let location = self.place_of_required(index, item);
                errors.push(ConfigError::new(format!("extension[{id}].requires"), message, location));
            }
        }
    }

    /// Reports extensions that require each other in a circle.
    fn cycles(&self, errors: &mut Vec<ConfigError>) {
        for cycle in order(&dependencies(&self.config.extensions)).cycles {
            let round: Vec<_> = cycle.iter().chain(cycle.first()).copied().collect();
            let pairs = round.iter().zip(round.iter().skip(1));
            let mut waits = pairs.filter_map(|(from, to)| self.wait(*from, *to));
            let Some((from, to, contract, location)) = waits.next() else { continue };
            let message = if from.id == to.id {
                format!("`{}` requires `{contract}`, which it fulfills itself: remove it there", from.id)
            } else {
                let names = round.iter().filter_map(|index| self.config.extensions.get(*index));
                let names = listed(names.map(|extension| extension.id.as_str()), " -> ");
                format!("`requires` forms a cycle: {names}: move one of them to `wants`")
            };
            let error = ConfigError::new(format!("extension[{}].requires", from.id), message, location);
            errors.push(waits.fold(error, |error, (from, to, contract, location)| {
                error.note(location, format!("`{}` requires `{contract}` of `{}` here", from.id, to.id))
            }));
        }
    }

    /// Two extensions, and the first contract that the first requires of the second, with its place. `None` if it
    /// requires none.
    fn wait(
        &self,
        from: usize,
        to: usize,
    ) -> Option<(&'c ExtensionConfig, &'c ExtensionConfig, &'c ContractName, Option<Location>)> {
        let (waiting, owner) = (self.config.extensions.get(from)?, self.config.extensions.get(to)?);
        let fulfilled: BTreeSet<&ContractName> = owner.fulfills.iter().collect();
        let mut required = waiting.requires.iter().enumerate();
        let (item, contract) = required.find(|(_, contract)| fulfilled.contains(contract))?;
        Some((waiting, owner, contract, self.place_of_required(from, item)))
    }

    fn place_of_required(&self, extension: usize, item: usize) -> Option<Location> {
        self.places_of_extension(extension)?.of_item("requires", item)
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let quarantine = self.config.extensions.iter().filter_map(|extension| {
            let why = extension.restart.without_quarantine()?;
            Some(format!("`{}` would never be quarantined: {why}", extension.id))
        });
        let mut warnings: Vec<String> = self.unmet_wants().collect();
        let MainConfig { require_signature, trusted_keys, .. } = &self.config.main;
        let nothing_runs =
            "no component can run: `main.require-signature` is on, and `main.trusted-keys` lists no key";
        warnings.extend((*require_signature && trusted_keys.is_empty()).then(|| nothing_runs.to_owned()));
        warnings.extend(quarantine);
        warnings.extend(self.jobs_for_nobody());
        warnings.extend(self.unreachable_peers());
        warnings.extend(self.forgotten_versions());
        warnings.extend(self.open_mounts());
        warnings
    }

    fn forgotten_versions(&self) -> Option<String> {
        let Config { main, extensions, .. } = self.config;
        let extension = extensions.iter().find(|extension| extension.update.is_some())?;
        (main.require_signature && main.state_dir.is_none()).then(|| {
            format!(
                "`main.require-signature` keeps no older version from running when Main starts: `{}` has `update`, and \
                 there is no `main.state-dir` to remember the proven version",
                extension.id
            )
        })
    }

    fn unmet_wants(&self) -> impl Iterator<Item = String> {
        let provided = provided(self.config);
        let of_extensions =
            self.config.extensions.iter().flat_map(|extension| {
                extension.wanted().map(move |contract| (extension.id.as_str(), contract))
            });
        let of_peers = self
            .config
            .peers
            .iter()
            .flat_map(|peer| peer.wants.iter().map(move |grant| (peer.name.as_str(), &grant.contract)));
        let unmet =
            of_extensions.chain(of_peers).filter(move |(_, contract)| !provided.contains(contract.as_str()));
        unmet.map(|(name, contract)| {
            format!(
                "`{name}` wants `{contract}`, but no extension or peer fulfills it and `main.serves` does not list it"
            )
        })
    }
}

/// Pairs of items with the same key: the first item with the key, and each later one.
fn repeated<K: Eq + Hash, T: Copy>(items: impl IntoIterator<Item = (K, T)>) -> impl Iterator<Item = (T, T)> {
    let mut seen = HashMap::new();
    items.into_iter().filter_map(move |(key, item)| match seen.entry(key) {
        Entry::Occupied(first) => Some((*first.get(), item)),
        Entry::Vacant(place) => {
            place.insert(item);
            None
        }
    })
}

/// Errors for the items that the list at `key` of the table at `path` repeats.
pub fn doubles<T: Display + Eq + Hash>(
    path: &str,
    key: &str,
    items: &[T],
    at: Option<&Places>,
) -> Vec<ConfigError> {
    doubles_in(&child(path, key), items, at.and_then(|at| at.within(key)))
}

/// Errors for the items that the list at `path` repeats.
pub fn doubles_in<T: Display + Eq + Hash>(path: &str, items: &[T], at: Option<&Places>) -> Vec<ConfigError> {
    let doubled = repeated(items.iter().enumerate().map(|(index, item)| (item, (index, item))));
    let error = |(_, (index, item)): ((usize, &T), (usize, &T))| {
        let location = at.and_then(|at| at.item_here(index));
        ConfigError::new(path, format!("`{path}` lists `{item}` twice"), location)
    };
    doubled.map(error).collect()
}

/// All contracts with a provider: an extension, a peer, the embedding program, another crate's section, or Main with
/// `hooks@1`.
fn provided(config: &Config) -> BTreeSet<String> {
    let fulfilled = config.extensions.iter().flat_map(|extension| &extension.fulfills);
    let fulfilled = fulfilled.chain(config.peers.iter().flat_map(|peer| &peer.fulfills));
    let configured = fulfilled.chain(&config.main.serves).map(ToString::to_string);
    let of_sections = config.contracts_of_sections();
    let of_main = of_sections.iter().map(ToString::to_string).chain([HOOKS_CONTRACT.to_owned()]);
    configured.chain(of_main).collect()
}
