//! What a peer was granted, and the errors that name the missing key.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use weir_names::{CallGrant, ContractName, Error, OperationName, QueueName, TopicPattern};

use super::Peer;
use crate::inbox::LaneSettings;

/// What a peer may reach. Main may reach everything.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Contracts that the peer may own and serve.
    pub fulfills: Vec<ContractName>,
    /// Contracts and operations that the peer may call.
    pub calls: Vec<CallGrant>,
    /// Topics that the peer may publish to.
    pub publishes: Vec<TopicPattern>,
    /// Topics that the peer may subscribe to. The first entry that covers a subscription's pattern has the settings for
    /// its events.
    pub subscribes: Vec<(TopicPattern, LaneSettings)>,
    /// Queues that the peer may put jobs into.
    pub puts: Vec<QueueName>,
    /// Queues that the peer may take jobs from.
    pub takes: Vec<QueueName>,
    /// Whether several tasks of the peer wait independently. Of an extension, only one does otherwise.
    pub is_concurrent: bool,
}

/// What a peer may reach, and whether that can change while it runs.
#[derive(Clone, Debug)]
pub(super) enum Grants {
    /// Everything.
    All,
    /// The same access for as long as the peer lives.
    Fixed(Access),
    /// The access that a name of programs has now. The programs under the name share it.
    Renewable(Arc<RwLock<Access>>),
}

impl Grants {
    pub(super) fn renewable(access: Access) -> Self {
        Self::Renewable(Arc::new(RwLock::new(access)))
    }

    /// Calls `look` with the access, or with `None` for a peer that may reach everything.
    #[inline]
    pub(super) fn read<R>(&self, look: impl FnOnce(Option<&Access>) -> R) -> R {
        match self {
            Self::All => look(None),
            Self::Fixed(access) => look(Some(access)),
            Self::Renewable(access) => look(Some(&access.read())),
        }
    }
}

impl Peer {
    /// Fails with `denied` unless `is_granted`. For a program that has left, fails with `peer-gone`.
    #[inline]
    fn require(
        &self,
        is_granted: impl FnOnce(&Access) -> bool,
        denied: impl FnOnce() -> Error,
    ) -> Result<(), Error> {
        match self.grants.read(|access| access.is_none_or(is_granted)) {
            _ if self.has_left() => Err(Error::PeerGone),
            true => Ok(()),
            false => Err(denied()),
        }
    }

    /// Sets what programs under this name may reach from now on.
    pub(crate) fn grant(&self, new: Access) {
        if let Grants::Renewable(access) = &self.grants {
            *access.write() = new;
        }
    }

    pub(crate) fn may_call(&self, contract: &ContractName, operation: &OperationName) -> Result<(), Error> {
        let allows = |access: &Access| access.calls.iter().any(|grant| grant.allows(contract, operation));
        self.require(allows, || {
            let (what, key) = match self.is_outside() {
                true => (format!("`{contract}/{operation}`"), "`wants`"),
                false => (format!("`{contract}`"), "`requires` or `wants`"),
            };
            Error::PermissionDenied(format!("`{}` may not call {what}; {key} would grant it", self.name))
        })
    }

    pub(crate) fn may_publish(&self, topic: &TopicPattern) -> Result<(), Error> {
        let covers = |access: &Access| access.publishes.iter().any(|grant| grant.covers(topic));
        self.require(covers, || self.not_granted("publish", topic, "publishes"))
    }

    /// Returns the calls that the peer was granted. Empty for Main, which may call everything.
    pub(crate) fn call_grants(&self) -> Vec<CallGrant> {
        self.grants.read(|access| access.map(|access| access.calls.clone()).unwrap_or_default())
    }

    /// Returns the granted settings for the events. Fails if the peer may not subscribe to this pattern.
    pub(crate) fn may_subscribe(&self, pattern: &TopicPattern) -> Result<LaneSettings, Error> {
        let granted = self.grants.read(|access| match access {
            None => Some(LaneSettings::default()),
            Some(access) => {
                let grant = access.subscribes.iter().find(|(grant, _)| grant.covers(pattern));
                grant.map(|(_, delivery)| *delivery)
            }
        });
        granted.ok_or_else(|| self.not_granted("subscribe to", pattern, "subscribes"))
    }

    /// Fails if the peer may not put jobs into this queue.
    pub fn may_put(&self, queue: &QueueName) -> Result<(), Error> {
        let may = |access: &Access| access.puts.contains(queue);
        self.require(may, || self.not_granted("put into", queue, "puts"))
    }

    /// Fails if the peer may not take jobs from this queue.
    pub fn may_take(&self, queue: &QueueName) -> Result<(), Error> {
        let may = |access: &Access| access.takes.contains(queue);
        self.require(may, || self.not_granted("take from", queue, "takes"))
    }

    /// Fails if the peer may neither put jobs into this queue nor take them.
    pub(crate) fn may_take_or_put(&self, queue: &QueueName) -> Result<(), Error> {
        let may = |access: &Access| access.puts.contains(queue) || access.takes.contains(queue);
        self.require(may, || self.not_granted("put into or take from", queue, "puts` or `takes"))
    }

    /// Fails if the peer may not serve this contract.
    pub fn may_serve(&self, contract: &ContractName) -> Result<(), Error> {
        let may = |access: &Access| access.fulfills.contains(contract);
        self.require(may, || self.not_granted("serve", contract, "fulfills"))
    }

    fn not_granted(&self, verb: &str, what: &impl fmt::Display, key: &str) -> Error {
        Error::PermissionDenied(format!("`{}` may not {verb} `{what}`; `{key}` would grant it", self.name))
    }
}
