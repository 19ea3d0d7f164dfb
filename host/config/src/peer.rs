//! The configuration of one peer: a program outside Main with a name and grants of its own.
//!
//! Knows nothing of sockets.

mod limits;
mod token;

use std::ops::RangeInclusive;

use weir_names::{CallGrant, ContractName, PeerName, QueueName, RequestPolicy, TopicPattern};

pub use self::{
    limits::PeerSessionLimits,
    token::{TokenHash, TokenHashError},
};
use super::{
    Config, ConfigErrors, SubscribeGrant,
    key::Table,
    kind::{number, one_of, table, texts},
    policy,
    sections::{CONTRACT, QUEUE, TOPIC},
    shape::Shape,
    subscribe::subscribes,
};
use crate::keys;

const TOKEN: &str = "the hash of a token, `sha256:` and 64 hexadecimal digits";
const CALL: &str = "a contract or one operation of it, as in `settings@1` or `settings@1/get`";

/// All ids of users: 4294967295 stands for none in the calls of the kernel (chown(2)).
const UID: RangeInclusive<u32> = 0..=u32::MAX - 1;

/// One in use, and one that replaces it.
const TOKENS_MAX: usize = 2;

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
}

impl Table for PeerConfig {
    keys! {
        PeerConfig without name;
        /// The id of a user. Processes of this user may connect as the peer, without a token.
        "uid" uid = number(Shape::counts(UID));
        /// Programs that know one of these [tokens](#tokens) may connect as the peer. At most 2, so that a new token
        /// can replace an old one. Two peers cannot have the same token.
        "tokens" tokens = texts(TOKEN, str::parse)
            .at_most(TOKENS_MAX, |count| format!("{count} tokens, but a peer has at most {TOKENS_MAX}"))
            .counted();
        /// Contracts and single operations that it may call. A contract that nobody serves is a warning.
        "wants" wants = texts(CALL, str::parse);
        /// Contracts that it owns and may serve. A contract has one owner among extensions and peers.
        "fulfills" fulfills = texts(CONTRACT, str::parse);
        /// Topics that it may publish under.
        "publishes" publishes = texts(TOPIC, str::parse);
        /// Topics that it may subscribe to, [as for an extension](#subscriptions).
        "subscribes" subscribes = subscribes();
        /// Queues that it may put jobs in. Each has a `[queue.NAME]`, or is the `dead-letter` of one.
        "puts" puts = texts(QUEUE, str::parse);
        /// Queues that it may take jobs from, as for `puts`.
        "takes" takes = texts(QUEUE, str::parse);
        /// What happens to a request that finds the inbox full, [as for an extension](#extension).
        "when-full" when_full = one_of(RequestPolicy::ALL.map(RequestPolicy::name), policy::of_requests);
        /// The limits of its sessions: the keys below. There are no classes for peers.
        "limits" limits = table();
    }
}
