//! Extensions and peers: what they have in common, and the names, tokens and socket of peers.

use weir_names::{ContractName, QueueName};

use super::{
    Judged,
    paths::{resolved, shown},
    repeated,
};
use crate::{
    Config, ExtensionConfig, Limits, MainConfig, PeerConfig, SubscribeGrant,
    error::{ConfigError, Location},
    key::Places,
    limits::LimitKey,
    section::child,
};

/// An extension or a peer.
#[derive(Debug)]
pub(super) struct Party<'p> {
    /// The path of its table, as in `extension[storage]` or `peer."app:player"`.
    pub(super) path: String,
    pub(super) name: &'p str,
    pub(super) is_peer: bool,
    pub(super) fulfills: &'p [ContractName],
    subscribes: &'p [SubscribeGrant],
    pub(super) puts: &'p [QueueName],
    pub(super) takes: &'p [QueueName],
    message_size: u64,
    inbox_messages: u32,
    inbox_bytes: u64,
    /// The limits of an extension, which know the source of each value. `None` for a peer.
    limits: Option<&'p Limits>,
    /// Its places in a file. `None` for a configuration made in Rust.
    pub(super) at: Option<&'p Places>,
}

impl<'p> Party<'p> {
    fn extension(extension: &'p ExtensionConfig, at: Option<&'p Places>) -> Self {
        let ExtensionConfig { id, fulfills, subscribes, puts, takes, limits, .. } = extension;
        Self {
            path: format!("extension[{id}]"),
            name: id.as_str(),
            is_peer: false,
            fulfills,
            subscribes,
            puts,
            takes,
            message_size: limits.message_size,
            inbox_messages: limits.inbox_messages,
            inbox_bytes: limits.inbox_bytes,
            limits: Some(limits),
            at,
        }
    }

    fn peer(peer: &'p PeerConfig, at: Option<&'p Places>) -> Self {
        let PeerConfig { name, fulfills, subscribes, puts, takes, limits, .. } = peer;
        Self {
            path: path_of_peer(peer),
            name: name.as_str(),
            is_peer: true,
            fulfills,
            subscribes,
            puts,
            takes,
            message_size: limits.message_size,
            inbox_messages: limits.inbox_messages,
            inbox_bytes: limits.inbox_bytes,
            limits: None,
            at,
        }
    }

    /// The place of an item in one of its lists.
    pub(super) fn place(&self, key: &str, item: usize) -> Option<Location> {
        self.at?.of_item(key, item)
    }
}

impl<'c> Judged<'c> {
    pub(super) fn peers(&self) -> impl Iterator<Item = (usize, &'c PeerConfig)> {
        self.config.peers.iter().enumerate()
    }

    /// The extensions, then the peers.
    pub(super) fn parties(&self) -> impl Iterator<Item = Party<'c>> {
        let locations = self.locations;
        let extensions = self
            .extensions()
            .map(|(index, extension)| Party::extension(extension, locations.extensions.get(index)));
        extensions.chain(self.peers().map(|(index, peer)| Party::peer(peer, locations.peers.get(index))))
    }

    /// Reports two peers with one name in configurations made in Rust. In files, they are a repeated table, which is
    /// reported earlier.
    pub(super) fn peer_names(&self, errors: &mut Vec<ConfigError>) {
        for (_, peer) in repeated(self.config.peers.iter().map(|peer| (&peer.name, peer))) {
            let message = format!("two peers have the name `{}`: rename one, or remove it", peer.name);
            errors.push(ConfigError::new(path_of_peer(peer), message, None));
        }
    }

    /// Reports tokens that two peers have.
    pub(super) fn tokens(&self, errors: &mut Vec<ConfigError>) {
        let tokens = self.peers().flat_map(|(index, peer)| {
            peer.tokens.iter().enumerate().map(move |(item, token)| (token, (index, item, peer)))
        });
        let place = |peer: usize, item| self.locations.peers.get(peer)?.of_item("tokens", item);
        for ((first_index, first_item, first), (index, item, peer)) in repeated(tokens) {
            // A token that one peer lists twice is reported as a repeated item of its list.
            if first_index == index {
                continue;
            }
            let message =
                format!("`{}` and `{}` have the same token: give each its own", first.name, peer.name);
            let error =
                ConfigError::new(format!("{}.tokens", path_of_peer(peer)), message, place(index, item));
            errors.push(error.note(place(first_index, first_item), format!("`{}` has it here", first.name)));
        }
    }

    /// Reports a socket for peers that is the control socket.
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

    /// Reports subscriptions with more room than the inbox.
    pub(super) fn subscriptions(&self, errors: &mut Vec<ConfigError>) {
        for party in self.parties() {
            for (item, grant) in party.subscribes.iter().enumerate() {
                let path = format!("{}.subscribes[{}]", party.path, item + 1);
                let at = party.at.and_then(|at| at.item("subscribes", item));
                let inbox_messages = party.inbox_messages.into();
                for (name, limit, wanted, allowed) in [
                    ("messages", &LimitKey::INBOX_MESSAGES, grant.messages.map(u64::from), inbox_messages),
                    ("bytes", &LimitKey::INBOX_BYTES, grant.bytes, party.inbox_bytes),
                ] {
                    let Some(wanted) = wanted.filter(|wanted| *wanted > allowed) else { continue };
                    let source = party.limits.map(|limits| format!(" ({})", limits.source(limit)));
                    let message = format!(
                        "in `{path}`: `{name}` is {} and `{key}` only {}{}: lower `{name}`, or raise `limits.{key}`",
                        limit.shape.text(wanted),
                        limit.shape.text(allowed),
                        source.unwrap_or_default(),
                        key = limit.name,
                    );
                    let location = at.and_then(|at| at.of(name));
                    errors.push(ConfigError::new(format!("{path}.{name}"), message, location));
                }
            }
        }
    }

    /// Warnings about queues that accept larger jobs than any of their readers takes.
    pub(super) fn jobs_for_nobody(&self) -> impl Iterator<Item = String> {
        let parties: Vec<Party<'_>> = self.parties().collect();
        self.config.all_queues().into_iter().filter_map(move |(name, queue)| {
            let puts = parties.iter().filter(|party| party.puts.contains(&name));
            let putter = puts.max_by_key(|party| party.message_size)?;
            let takes = parties.iter().filter(|party| party.takes.contains(&name));
            let taken = takes.map(|party| party.message_size).max()?;
            (putter.message_size.min(queue.bytes) > taken).then(|| {
                format!(
                    "`{}` can put larger jobs into `{name}` than the `message-size` of any reader: those are refused",
                    putter.name
                )
            })
        })
    }

    /// Warnings about peers that have a proof but no socket to connect to, or a socket but no proof. A peer with
    /// neither is no mistake.
    pub(super) fn unreachable_peers(&self) -> impl Iterator<Item = String> {
        let Config { main, sections, .. } = self.config;
        let has_socket = main.peer_socket.is_some() || sections.all().any(|section| section.lets_peers_in());
        self.config.peers.iter().filter_map(move |peer| {
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
}

/// The path of a peer's table, as in `peer."app:player"`.
pub(super) fn path_of_peer(peer: &PeerConfig) -> String {
    child("peer", peer.name.as_str())
}
