//! Values of keys that are checked when they are read.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, de};
use weir_names::{
    NameError, QueueName,
    rules::{is_extension_id, is_peer_name, is_queue_name},
};

/// The name of a node or a fleet: 1 to 56 bytes of `a-z`, `0-9` and `-`, starting with a letter. So `node:NODE` is the name
/// of a peer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(QueueName);

/// Most bytes of the name of a node.
const NODE_MAX: usize = 56;

impl Node {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Why a word was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// The word is no name of a node.
    #[error("`{0}` is not the name of a node: 1 to 56 of `a-z`, `0-9` and `-`, starting with a letter")]
    Node(String),
    /// The word is no sender.
    #[error(
        "`{0}` is not a sender: the id of an extension, the name of a peer as in `app:player`, `main`, or `*`"
    )]
    Sender(String),
}

impl FromStr for Node {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let name: Result<QueueName, NameError> = text.parse();
        match name {
            Ok(name) if text.len() <= NODE_MAX => Ok(Self(name)),
            _ => Err(WordError::Node(weir_names::harmless(text, 100))),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A node that is named, or any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `*`.
    Any,
    /// The node with this name.
    Node(Node),
}

impl Origin {
    /// Whether the node is meant.
    #[must_use]
    pub fn is(&self, node: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Node(own) => own.as_str() == node,
        }
    }
}

impl FromStr for Origin {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        if text == "*" { Ok(Self::Any) } else { text.parse().map(Self::Node) }
    }
}

/// A sender of this Main, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// `*`.
    Any,
    /// An extension, a peer or `main`.
    Named(Box<str>),
}

impl Sender {
    /// Whether the sender is meant.
    #[must_use]
    pub fn is(&self, sender: &str) -> bool {
        match self {
            Self::Any => true,
            // All instances of an extension are meant by its id.
            Self::Named(own) => {
                **own == *sender || sender.split_once('.').is_some_and(|(id, _)| **own == *id)
            }
        }
    }
}

/// Whether the text can be the sender of a message of a Main: an extension, one of its instances, a peer or `main`.
#[must_use]
pub(crate) fn is_sender(text: &str) -> bool {
    let extension = match text.split_once('.') {
        Some((extension, number)) if number.parse::<u32>().is_ok() => extension,
        _ => text,
    };
    is_extension_id(extension) || is_peer_name(text) || text == weir_names::MAIN
}

impl FromStr for Sender {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "*" => Ok(Self::Any),
            _ if is_peer_name(text) || is_queue_name(text) => Ok(Self::Named(text.into())),
            _ => Err(WordError::Sender(weir_names::harmless(text, 100))),
        }
    }
}

/// A caller of an exported contract: `NODE`, `NODE/SENDER` or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    node: Origin,
    sender: Sender,
}

impl Caller {
    /// Whether this sender of this node is meant. A call without a sender is meant only where all senders of the node
    /// are.
    #[must_use]
    pub fn is(&self, node: &str, sender: Option<&str>) -> bool {
        let is_sender = match sender {
            Some(sender) => self.sender.is(sender),
            None => self.sender == Sender::Any,
        };
        self.node.is(node) && is_sender
    }
}

impl FromStr for Caller {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match text.split_once('/') {
            None => Ok(Self { node: text.parse()?, sender: Sender::Any }),
            Some((node, sender)) => Ok(Self { node: node.parse()?, sender: sender.parse()? }),
        }
    }
}

macro_rules! by_text {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

by_text!(Node, Origin, Sender, Caller);

/// A time as in `"250ms"`, from 10 ms to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(Duration);

impl Seconds {
    pub(super) const fn of<const SECONDS: u64>() -> Self {
        Self(Duration::from_secs(SECONDS))
    }

    /// The time.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let range = Duration::from_millis(10)..=Duration::from_secs(86_400);
        let time = humantime::parse_duration(&text).ok().filter(|time| range.contains(time));
        time.map(Self).ok_or_else(|| {
            let text = weir_names::harmless(&text, 100);
            de::Error::custom(format!(
                "a time from `10ms` to `1day` is needed, as in `\"10s\"`, not `{text}`"
            ))
        })
    }
}

/// A number from 1 to 65536.
pub type Count = Number<65_536>;

/// Copies of a stream: 1 to 5.
pub type Replicas = Number<5>;

/// A number from 1 to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<const MOST: u32>(u32);

impl<const MOST: u32> Number<MOST> {
    pub(super) const fn of<const NUMBER: u32>() -> Self {
        Self(NUMBER)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number as a size.
    #[must_use]
    pub fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<'de, const MOST: u32> Deserialize<'de> for Number<MOST> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let fits = u32::try_from(number).ok().filter(|number| (1..=MOST).contains(number));
        let fault = || de::Error::custom(format!("a number from 1 to {MOST} is needed, not `{number}`"));
        fits.map(Self).ok_or_else(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_a_node_or_one_of_its_senders() {
        let is = |caller: &str, node: &str, sender| caller.parse::<Caller>().unwrap().is(node, sender);
        assert!(is("*", "hall", Some("settings")) && is("*", "hall", None));
        assert!(is("hall", "hall", Some("settings")) && is("hall", "hall", None));
        assert!(is("hall/settings", "hall", Some("settings")) && is("*/app:tv", "attic", Some("app:tv")));
        // Each instance of an extension is meant.
        assert!(is("hall/settings", "hall", Some("settings.3")));
        assert!(!is("hall", "attic", Some("settings")));
        assert!(!is("hall/settings", "hall", Some("other")));
        assert!(!is("hall/settings", "attic", Some("settings")));
        // A client of NATS that names no sender is none of the listed ones.
        assert!(!is("hall/settings", "hall", None));
        for bad in ["", "Hall", "hall/", "/settings", "hall/a/b", "hall/>", "$SYS", ">", "hall.>"] {
            assert!(bad.parse::<Caller>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_sender_is_what_a_main_stamps() {
        for good in ["main", "settings", "settings.2", "app:player", "node:hall"] {
            assert!(is_sender(good), "{good}");
        }
        for bad in ["", "*", ">", "a b", "settings.x", "settings.", "app:", "A", "é"] {
            assert!(!is_sender(bad), "{bad}");
        }
    }

    #[test]
    fn the_name_of_a_node_is_the_name_of_a_peer_with_its_kind() {
        let longest = "a".repeat(NODE_MAX);
        assert!(is_peer_name(&format!("node:{}", longest.parse::<Node>().unwrap())));
        assert!("a".repeat(NODE_MAX + 1).parse::<Node>().is_err());
        assert!("_".parse::<Node>().is_err() && "*".parse::<Node>().is_err());
    }
}
