//! The configuration of one peer: a program outside Main with a name and grants of its own.
//!
//! Knows nothing of sockets.

mod limits;
mod token;

use std::ops::RangeInclusive;

use weir_names::{CallGrant, ContractName, PeerName, QueueName, RequestPolicy, TopicPattern};

pub(super) use self::limits::{PEER_LIMIT_KEYS, PeerLimitKey};
pub use self::{
    limits::PeerSessionLimits,
    token::{TokenHash, TokenHashError},
};
use super::{Config, ConfigErrors, SubscribeGrant, shape::Shape};

/// All ids of users: 4294967295 stands for none in the calls of the kernel (chown(2)).
pub(super) const UID: RangeInclusive<u32> = 0..=u32::MAX - 1;

/// One in use, and one that replaces it.
pub(super) const TOKENS_MAX: usize = 2;

/// The configuration of one peer: its proofs, limits and grants.
///
/// [`PeerConfig::new`] grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerConfig {
    /// The name. Several sessions may have it.
    pub name: PeerName,
    /// The user with processes that may be this peer: 0 to 4,294,967,294. `None`: no user proves it.
    pub uid: Option<u32>,
    /// Hashes of tokens, each of which proves that a program is this peer. At most 2.
    pub tokens: Vec<TokenHash>,
    /// Contracts that it owns and may serve. A contract has one owner.
    pub fulfills: Vec<ContractName>,
    /// Contracts and single operations that it may call.
    pub wants: Vec<CallGrant>,
    /// Topics that it may publish under.
    pub publishes: Vec<TopicPattern>,
    /// Topics that it may subscribe to. If several grants cover a pattern, the first applies.
    pub subscribes: Vec<SubscribeGrant>,
    /// Queues that it may put jobs into.
    pub puts: Vec<QueueName>,
    /// Queues that it may take jobs from.
    pub takes: Vec<QueueName>,
    /// What happens to a request that finds the inbox full. Default: [`RequestPolicy::Reject`].
    pub when_full: RequestPolicy,
    /// The limits of its sessions.
    pub limits: PeerSessionLimits,
}

impl PeerConfig {
    /// A peer with the default limits and without grants. Nothing proves that a program is this peer.
    #[must_use]
    pub fn new(name: PeerName) -> Self {
        Self {
            name,
            uid: None,
            tokens: Vec::new(),
            fulfills: Vec::new(),
            wants: Vec::new(),
            publishes: Vec::new(),
            subscribes: Vec::new(),
            puts: Vec::new(),
            takes: Vec::new(),
            when_full: RequestPolicy::Reject,
            limits: PeerSessionLimits::default(),
        }
    }

    /// Checks what a peer alone can get wrong. [`Config::check`] does so for all peers, and compares them with the rest.
    ///
    /// # Errors
    ///
    /// Returns all faults:
    ///
    /// - values out of range, and limits that contradict each other;
    /// - repeated list items;
    /// - if all values are in range: subscriptions with more room than the inbox.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        Config { peers: vec![self.clone()], ..Config::default() }.check_parts(false)
    }

    /// The memory that counts against [`MainConfig::memory_budget`](super::MainConfig::memory_budget), in bytes: the
    /// inboxes of all its sessions.
    #[must_use]
    pub fn memory_sum(&self) -> u64 {
        let PeerSessionLimits { sessions, inbox_bytes, .. } = &self.limits;
        // Requests have one lane, replies and events another.
        inbox_bytes.saturating_mul(2).saturating_mul((*sessions).into())
    }

    /// Keys with faulty values, and their faults, which complete "`key` must be".
    pub(super) fn out_of_range(&self) -> Vec<(String, String)> {
        let uid = Shape::counts(UID);
        let wrong_uid = self.uid.is_some_and(|id| !uid.has(id.into()));
        let uid = wrong_uid.then(|| ("uid".to_owned(), uid.to_string()));
        let tokens = (self.tokens.len() > TOKENS_MAX)
            .then(|| ("tokens".to_owned(), format!("a list of at most {TOKENS_MAX}")));
        let limits = self.limits.out_of_range().into_iter();
        let limits = limits.map(|key| (format!("limits.{}", key.name), key.shape.to_string()));
        uid.into_iter().chain(tokens).chain(limits).collect()
    }
}
