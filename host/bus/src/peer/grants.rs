//! What a peer was granted, and the error that names the missing key.

use std::fmt;

use weir_names::{ContractName, Error, QueueName, TopicPattern};

use super::Peer;
use crate::inbox::LaneSettings;

impl Peer {
    pub(crate) fn may_call(&self, contract: &ContractName) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.calls.contains(contract) => Err(Error::PermissionDenied(format!(
                "`{}` may not call `{contract}`; `requires` or `wants` would grant it",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn may_publish(&self, topic: &TopicPattern) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.publishes.iter().any(|grant| grant.covers(topic)) => {
                Err(self.not_granted("publish", topic, "publishes"))
            }
            _ => Ok(()),
        }
    }

    /// How its events wait, if it may subscribe.
    pub(crate) fn may_subscribe(&self, pattern: &TopicPattern) -> Result<LaneSettings, Error> {
        let Some(access) = &self.access else { return Ok(LaneSettings::default()) };
        let grant = access.subscribes.iter().find(|(grant, _)| grant.covers(pattern));
        grant
            .map(|(_, delivery)| *delivery)
            .ok_or_else(|| self.not_granted("subscribe to", pattern, "subscribes"))
    }

    pub(crate) fn may_put(&self, queue: &QueueName) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.puts.contains(queue) => Err(self.not_granted("put into", queue, "puts")),
            _ => Ok(()),
        }
    }

    /// Fails if it may not take jobs from this queue.
    pub fn may_take(&self, queue: &QueueName) -> Result<(), Error> {
        match &self.access {
            Some(access) if !access.takes.contains(queue) => {
                Err(self.not_granted("take from", queue, "takes"))
            }
            _ => Ok(()),
        }
    }

    fn not_granted(&self, verb: &str, what: &impl fmt::Display, key: &str) -> Error {
        Error::PermissionDenied(format!("`{}` may not {verb} `{what}`; `{key}` would grant it", self.name))
    }
}
