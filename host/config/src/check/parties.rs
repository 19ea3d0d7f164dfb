//! What extensions and peers have in common, as checks see it.

use weir_names::{ContractName, QueueName};

use super::Parts;
use crate::{
    ExtensionConfig, Limits, PeerConfig, PeerSessionLimits, SubscribeGrant, error::Location, key::Places,
    limits::LimitKey, section::child,
};

/// An extension or a peer.
#[derive(Debug)]
pub(super) struct Party<'p> {
    /// As in `extension[storage]` or `peer."app:player"`.
    pub(super) path: String,
    pub(super) name: &'p str,
    pub(super) is_peer: bool,
    pub(super) fulfills: &'p [ContractName],
    pub(super) subscribes: &'p [SubscribeGrant],
    pub(super) puts: &'p [QueueName],
    pub(super) takes: &'p [QueueName],
    limits: PartyLimits<'p>,
    /// `None` outside files.
    pub(super) at: Option<&'p Places>,
}

#[derive(Debug)]
enum PartyLimits<'p> {
    Extension(&'p Limits),
    Peer(&'p PeerSessionLimits),
}

impl Parts<'_> {
    /// The extensions, then the peers.
    pub(super) fn parties(&self) -> impl Iterator<Item = Party<'_>> {
        let extensions = self
            .extensions()
            .map(|(index, extension)| Party::extension(extension, self.locations.extensions.get(index)));
        let peers = self.peers().map(|(index, peer)| Party::peer(peer, self.locations.peers.get(index)));
        extensions.chain(peers)
    }
}

impl<'p> Party<'p> {
    fn extension(extension: &'p ExtensionConfig, at: Option<&'p Places>) -> Self {
        let ExtensionConfig { id, fulfills, subscribes, puts, takes, limits, .. } = extension;
        let (path, limits) = (format!("extension[{id}]"), PartyLimits::Extension(limits));
        Self { path, name: id.as_str(), is_peer: false, fulfills, subscribes, puts, takes, limits, at }
    }

    fn peer(peer: &'p PeerConfig, at: Option<&'p Places>) -> Self {
        let PeerConfig { name, fulfills, subscribes, puts, takes, limits, .. } = peer;
        let (path, limits) = (path_of_peer(peer), PartyLimits::Peer(limits));
        Self { path, name: name.as_str(), is_peer: true, fulfills, subscribes, puts, takes, limits, at }
    }

    /// The place of an item in one of its lists.
    pub(super) fn place(&self, key: &str, item: usize) -> Option<Location> {
        self.at?.of_item(key, item)
    }

    /// The room of its inbox, in messages and bytes, each with its source in brackets if that is known.
    pub(super) fn room(&self) -> [(u64, String); 2] {
        match self.limits {
            PartyLimits::Extension(limits) => {
                let source = |key| format!(" ({})", limits.source(key));
                [
                    (limits.inbox_messages.into(), source(&LimitKey::INBOX_MESSAGES)),
                    (limits.inbox_bytes, source(&LimitKey::INBOX_BYTES)),
                ]
            }
            PartyLimits::Peer(limits) => {
                [(limits.inbox_messages.into(), String::new()), (limits.inbox_bytes, String::new())]
            }
        }
    }
}

/// As in `peer."app:player"`.
pub(super) fn path_of_peer(peer: &PeerConfig) -> String {
    child("peer", peer.name.as_str())
}
