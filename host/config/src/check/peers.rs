//! Names and tokens of peers, and their socket.

use std::collections::{BTreeSet, HashMap};

use super::{
    Parts,
    parties::path_of_peer,
    paths::{resolved, shown},
};
use crate::{
    Config, MainConfig, PeerConfig,
    error::{ConfigError, Location},
};

impl Parts<'_> {
    pub(super) fn peers(&self) -> impl Iterator<Item = (usize, &PeerConfig)> {
        self.config.peers.iter().enumerate()
    }

    /// In files two peers with one name are two tables with one name, which is found earlier.
    pub(super) fn peer_names(&self, errors: &mut Vec<ConfigError>) {
        let mut seen = BTreeSet::new();
        for (_, peer) in self.peers() {
            if !seen.insert(&peer.name) {
                let message = format!("two peers have the name `{}`: rename one, or remove it", peer.name);
                errors.push(ConfigError::new(path_of_peer(peer), message, None));
            }
        }
    }

    pub(super) fn tokens(&self, errors: &mut Vec<ConfigError>) {
        let mut seen = HashMap::new();
        for (index, peer) in self.peers() {
            for (item, token) in peer.tokens.iter().enumerate() {
                let (first, first_index, first_item) = *seen.entry(token).or_insert((peer, index, item));
                if first_index == index {
                    continue;
                }
                let key = format!("{}.tokens", path_of_peer(peer));
                let message =
                    format!("`{}` and `{}` have the same token: give each its own", first.name, peer.name);
                let location = self.place_of_token(index, item);
                let note = format!("`{}` has it here", first.name);
                let first_at = self.place_of_token(first_index, first_item);
                errors.push(ConfigError::new(key, message, location).note(first_at, note));
            }
        }
    }

    fn place_of_token(&self, peer: usize, item: usize) -> Option<Location> {
        self.locations.peers.get(peer)?.of_item("tokens", item)
    }

    pub(super) fn sockets(&self, errors: &mut Vec<ConfigError>) {
        let MainConfig { control_socket, peer_socket: Some(peer_socket), .. } = &self.config.main else {
            return;
        };
        if resolved(control_socket) == resolved(peer_socket) {
            let message = format!(
                "`main.peer-socket` and `main.control-socket` are both {}: give each its own path",
                shown(peer_socket)
            );
            let error = ConfigError::new("main.peer-socket", message, self.locations.main.of("peer-socket"));
            errors.push(error.note(self.locations.main.of("control-socket"), "the other is here"));
        }
    }
}

/// Peers that no program can connect as.
pub(crate) fn unreachable_peers(config: &Config) -> impl Iterator<Item = String> {
    let has_socket =
        config.main.peer_socket.is_some() || config.sections.all().any(|section| section.lets_peers_in());
    config.peers.iter().filter_map(move |peer| {
        let has_proof = peer.uid.is_some() || !peer.tokens.is_empty();
        match (has_socket, has_proof) {
            (true, false) => Some(format!(
                "`{}` has neither `uid` nor `tokens`, so no program can connect as it",
                peer.name
            )),
            (false, true) => Some(format!(
                "`{}` has a `uid` or `tokens`, but there is no `main.peer-socket` to connect to",
                peer.name
            )),
            (true, true) | (false, false) => None,
        }
    })
}
