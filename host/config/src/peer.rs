//! The configuration of one peer: a program outside Main with a name and grants of its own.
//!
//! Knows nothing of sockets.

use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use weir_names::{CallGrant, ContractName, PeerName, QueueName, RequestPolicy, TopicPattern};

use super::{
    Config, ConfigErrors, LimitKey, SubscribeGrant, TIMEOUT,
    key::{Contradiction, Key, Table},
    kind::{limit, number, policy, table, texts},
    limits::no_room,
    queue::subscribes,
    sections::{CONTRACT, QUEUE, TOPIC},
    shape::Shape,
};
use crate::keys;

const TOKEN: &str = "the hash of a token, `sha256:` and 64 hexadecimal digits";
const CALL: &str = "a contract or one operation of it, as in `settings@1` or `settings@1/get`";

/// The range of user ids: 4294967295 stands for no user in the calls of the kernel (chown(2)).
const UID: RangeInclusive<u32> = 0..=u32::MAX - 1;

/// The most tokens of a peer: one in use, and one that replaces it.
const TOKENS_MAX: usize = 2;

/// The configuration of one peer: its proofs, limits and grants.
///
/// [`PeerConfig::new`] grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerConfig {
    /// The name. Several sessions may have it.
    pub name: PeerName,
    /// The user whose processes may connect as this peer: 0 to 4,294,967,294. With `None`, a program needs a token.
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

    /// Checks what a peer alone can get wrong. [`Config::check`] does so for all peers, and compares them with the
    /// rest.
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
        "when-full" when_full = policy(&RequestPolicy::ALL, "is for events and jobs, and requests are never lost");
        /// The limits of its sessions: the keys below. There are no classes for peers.
        "limits" limits = table();
    }
}

/// The limits of a peer's sessions. Each but `sessions` holds for one session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerSessionLimits {
    /// Sessions at once: 1 to 4,096. Default: 8.
    pub sessions: u32,
    /// Calls, events and jobs that the session sends, under way: 1 to 65,536. Default: 64.
    pub in_flight: u32,
    /// Payload of a message, in bytes, sent or received: 1 KiB to 64 MiB, and at most `inbox_bytes`. Default: 256 KiB.
    pub message_size: u64,
    /// Messages per second: 1 to 1,000,000. Default: 1,000. Main reads further ones later.
    pub message_rate: u32,
    /// Subscriptions: 1 to 4,096. Default: 64.
    pub subscriptions: u32,
    /// Waiting messages of each kind: 1 to 1,000,000. Default: 256.
    pub inbox_messages: u32,
    /// Waiting bytes, once for requests and once for replies and events: 1 KiB to 1 GiB. Default: 256 KiB.
    pub inbox_bytes: u64,
    /// Timeout of requests to its contracts if the call sets none: 1 ms to 1 day. With `None`,
    /// [`MainConfig::request_timeout`](super::MainConfig::request_timeout) applies.
    pub request_timeout: Option<Duration>,
    /// How long a session may leave unread what Main sends, before Main ends it: 1 ms to 1 day. Default: 30 seconds.
    pub stall_timeout: Duration,
}

impl Default for PeerSessionLimits {
    fn default() -> Self {
        Self {
            sessions: 8,
            in_flight: 64,
            message_size: 256 << 10,
            message_rate: 1000,
            subscriptions: 64,
            inbox_messages: 256,
            inbox_bytes: 256 << 10,
            request_timeout: None,
            stall_timeout: Duration::from_secs(30),
        }
    }
}

impl Table for PeerSessionLimits {
    keys! {
        PeerSessionLimits;
        /// Sessions at once. A further one is refused.
        "sessions" sessions = limit(Shape::Count(1..=4096));
        /// Calls, puts and the like of one session that are under way. A further one fails with `limit-exceeded`.
        "in-flight" in_flight = limit(LimitKey::IN_FLIGHT.shape);
        /// Payload of one message, sent or received. The sender of a larger one gets `too-large`. Not more than
        /// `inbox.bytes`.
        "message-size" message_size = limit(LimitKey::MESSAGE_SIZE.shape);
        /// Messages a second from one session. Main reads further ones later, and loses none.
        "message-rate" message_rate = limit(Shape::Count(1..=1_000_000));
        /// Subscriptions of one session.
        "subscriptions" subscriptions = limit(Shape::Count(1..=4096));
        /// Default deadline of a request to a contract that the peer fulfills, if the call sets none.
        "request-timeout" request_timeout = limit(Shape::Time(TIMEOUT)), default("`main.request-timeout`");
        /// How long a session may leave unread what Main sends. Then it is ended.
        "stall-timeout" stall_timeout = limit(Shape::Time(TIMEOUT));
        /// What may wait for one session: the two keys below.
        "inbox" = Key::group();
        /// Requests, and as many events.
        "inbox.messages" inbox_messages = limit(LimitKey::INBOX_MESSAGES.shape);
        /// Bytes of requests, and as many of replies and events together.
        "inbox.bytes" inbox_bytes = limit(LimitKey::INBOX_BYTES.shape);
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        no_room(self.message_size, self.inbox_bytes).into_iter().collect()
    }
}

/// Why a text is not the hash of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenHashError {
    /// The text is not in the notation of a hash. It may be the token itself, so the message leaves it out.
    #[error(
        "this is not the hash of a token: `sha256:` and 64 hexadecimal digits, as `sha256sum` shows them"
    )]
    Notation,
    /// The hash is the SHA-256 of no bytes.
    #[error("this is the hash of an empty token, which proves nothing")]
    Empty,
}

/// The SHA-256 of a token. As text: `sha256:` and 64 hexadecimal digits, which are written in lowercase and read in
/// either case.
///
/// A token is a long random text, so its plain hash tells nothing about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    const PREFIX: &'static str = "sha256:";

    /// The hash of a token's bytes.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Whether the token has this hash. Takes the same time for all tokens of a length. An empty token never matches.
    #[must_use]
    pub fn matches(&self, token: &str) -> bool {
        !token.is_empty() && bool::from(self.0.ct_eq(&Self::of(token).0))
    }
}

impl FromStr for TokenHash {
    type Err = TokenHashError;

    fn from_str(text: &str) -> Result<Self, TokenHashError> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(TokenHashError::Notation)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| TokenHashError::Notation)?;
        if Self(bytes) == Self::of("") { Err(TokenHashError::Empty) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, hex::encode(self.0))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    const OF_ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_token_matches_its_own_hash_only() {
        let hash = TokenHash::of("abc");
        assert!(hash.matches("abc"));
        for other in ["", "abd", "abc\n", "abcabc", OF_ABC] {
            assert!(!hash.matches(other), "{other:?}");
        }
        assert!(!TokenHash::of("").matches(""));
    }

    #[test]
    fn a_hash_is_read_as_it_is_shown() {
        assert_eq!(TokenHash::of("abc").to_string(), OF_ABC);
        assert_eq!(OF_ABC.parse(), Ok(TokenHash::of("abc")));
        let capitals = OF_ABC.to_uppercase().replace("SHA256", "sha256");
        assert_eq!(capitals.parse(), Ok(TokenHash::of("abc")));
    }

    #[test]
    fn what_is_no_hash_or_the_hash_of_nothing_is_refused() {
        for text in ["", "sha256:", "abc", &OF_ABC[7..], &OF_ABC[..70], &format!("{OF_ABC}0"), "sha512:00"] {
            assert_eq!(text.parse::<TokenHash>(), Err(TokenHashError::Notation), "{text}");
        }
        assert_eq!(TokenHash::of("").to_string().parse::<TokenHash>(), Err(TokenHashError::Empty));
    }
}
