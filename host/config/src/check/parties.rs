//! What extensions and peers have in common, as checks see it.

use weir_names::{ContractName, QueueName};

use super::{ChannelLocations, Parts};
use crate::{
    ExtensionConfig, LimitKey, Limits, PeerConfig, PeerSessionLimits, SubscribeGrant, error::Location,
    peer::PEER_LIMIT_KEYS, section::child,
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
    at: Option<&'p ChannelLocations>,
}

#[derive(Debug)]
enum PartyLimits<'p> {
    Extension(&'p Limits),
    Peer(&'p PeerSessionLimits),
}

impl Parts<'_> {
    /// The extensions, then the peers.
    pub(super) fn parties(&self) -> impl Iterator<Item = Party<'_>> {
        let extensions = self.extensions().map(|(index, extension)| {
            let at = self.locations.extensions.get(index).map(|at| &at.channels);
            Party::extension(extension, at)
        });
        let peers = self.peers().map(|(index, peer)| {
            let at = self.locations.peers.get(index).map(|at| &at.channels);
            Party::peer(peer, at)
        });
        extensions.chain(peers)
    }
}

impl<'p> Party<'p> {
    fn extension(extension: &'p ExtensionConfig, at: Option<&'p ChannelLocations>) -> Self {
        let ExtensionConfig { id, fulfills, subscribes, puts, takes, limits, .. } = extension;
        let (path, limits) = (format!("extension[{id}]"), PartyLimits::Extension(limits));
        Self { path, name: id.as_str(), is_peer: false, fulfills, subscribes, puts, takes, limits, at }
    }

    fn peer(peer: &'p PeerConfig, at: Option<&'p ChannelLocations>) -> Self {
        let PeerConfig { name, fulfills, subscribes, puts, takes, limits, .. } = peer;
        let (path, limits) = (path_of_peer(peer), PartyLimits::Peer(limits));
        Self { path, name: name.as_str(), is_peer: true, fulfills, subscribes, puts, takes, limits, at }
    }

    /// The place of one of these parts.
    pub(super) fn location(
        &self,
        part: impl Fn(&'p ChannelLocations) -> Option<&'p Location>,
    ) -> Option<Location> {
        self.at.and_then(part).cloned()
    }

    /// The value of a limit that both have, and its source in brackets if that is known.
    pub(super) fn limit(&self, key: &'static LimitKey) -> Option<(u64, String)> {
        match self.limits {
            PartyLimits::Extension(limits) => {
                Some(((key.get)(limits)?, format!(" ({})", limits.source(key))))
            }
            PartyLimits::Peer(limits) => {
                let key = PEER_LIMIT_KEYS.iter().find(|of_peers| of_peers.name == key.name)?;
                Some(((key.get)(limits)?, String::new()))
            }
        }
    }
}

/// As in `peer."app:player"`.
pub(super) fn path_of_peer(peer: &PeerConfig) -> String {
    child("peer", peer.name.as_str())
}
