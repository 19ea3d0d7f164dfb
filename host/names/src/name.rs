//! Names that operators and extensions write. They are checked when they are made.
//!
//! Knows nothing of ownership or permissions.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize, de};

use crate::rules::{
    covers, is_contract_name, is_extension_id, is_interface_name, is_operation_name, is_peer_name,
    is_queue_name, is_topic, is_topic_pattern,
};

/// The name of Main where the id of an extension could stand.
pub const MAIN: &str = "main";

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {expected}")]
pub struct NameError {
    name: String,
    expected: &'static str,
}

/// Defines a checked newtype over `Arc<str>`. `or` names a check for further texts that deserialization accepts.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident, $expected:literal $(, or $made:ident)?) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                if $check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(NameError {
                        name: text.chars().take(300).flat_map(char::escape_debug).collect(),
                        expected: $expected,
                    })
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $(if $made(&text) {
                    return Ok(Self(text.into()));
                })?
                text.parse().map_err(de::Error::custom)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

name! {
    /// The id of an extension: 1 to 64 bytes of `a-z`, `0-9` and `-`, starting with a letter, and not `main`. An id
    /// made by [`copy`](Self::copy) has a dot and a number after that.
    ExtensionId, is_extension_id,
    "an extension id: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter, and not `main`",
    or is_copy
}

name! {
    /// The name of a program outside Main, such as `app:player`: a kind, a colon and a name, each of `a-z`, `0-9` and
    /// `-`, starting with a letter; at most 64 bytes. The colon keeps it apart from the ids of extensions.
    PeerName, is_peer_name,
    "the name of a peer: a kind, a colon and a name, each of `a-z`, `0-9` and `-`, as in `app:player`"
}

name! {
    /// A versioned contract such as `device.info@1`: dotted segments of `a-z`, `0-9` and `-`, then `@` and a number
    /// from 0 to 65535; at most 128 bytes.
    ContractName, is_contract_name,
    "a contract: dotted segments of `a-z`, `0-9` and `-`, then `@` and a version number, as in `device.info@1`"
}

name! {
    /// An operation of a contract: 1 to 128 printable ASCII characters without space or `/`.
    OperationName, is_operation_name,
    "an operation: 1 to 128 printable ASCII characters without space or `/`"
}

name! {
    /// The name of an interface that a component exports or imports: 1 to 256 letters, digits and `:/@.+-`, as in
    /// `acme:greeter/api@1.0.0`. As an export, `*` stands for the functions that a component exports by themselves.
    InterfaceName, is_interface_name,
    "the name of an interface, as in `acme:greeter/api@1.0.0`"
}

name! {
    /// The name of a shared queue: 1 to 64 bytes of `a-z`, `0-9` and `-`, starting with a letter.
    QueueName, is_queue_name,
    "the name of a queue: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter"
}

name! {
    /// The name of a directory of hooks: 1 to 64 bytes of `a-z`, `0-9` and `-`, starting with a letter.
    HookDirName, is_queue_name,
    "the name of a directory of hooks: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter"
}

name! {
    /// The name of a key-value store: 1 to 64 bytes of `a-z`, `0-9` and `-`, starting with a letter.
    StoreName, is_queue_name,
    "the name of a store: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter"
}

name! {
    /// A topic such as `settings.changed.volume`: up to 16 dotted segments of letters, digits, `-` and `_`, and up to
    /// 256 bytes.
    Topic, is_topic,
    "a topic: at most 16 dotted segments of letters, digits, `-` and `_`, at most 256 bytes"
}

name! {
    /// A topic with wildcards: `*` stands for one segment, and `>` at the end for one or more, as in NATS subjects.
    TopicPattern, is_topic_pattern,
    "a topic pattern: a topic in which `*` stands for one segment and `>`, at the end, for the rest"
}

/// Whether the text has the form of [`ExtensionId::copy`]. Reports contain such ids, so they must be readable.
fn is_copy(text: &str) -> bool {
    let parts = text.rsplit_once('.');
    parts.is_some_and(|(id, number)| is_extension_id(id) && number.parse::<u32>().is_ok())
}

impl ExtensionId {
    /// The id of an extension's instance `number`, from 2. Cannot be configured.
    pub fn copy(&self, number: u32) -> Self {
        Self(format!("{self}.{number}").into())
    }

    /// The shared text.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl InterfaceName {
    /// Whether it stands for the functions that are exported by themselves.
    #[must_use]
    pub fn is_root(&self) -> bool {
        &*self.0 == "*"
    }
}

impl PeerName {
    /// The shared text.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl TopicPattern {
    /// Whether the pattern matches `topic`.
    #[must_use]
    pub fn matches(&self, topic: &Topic) -> bool {
        covers(&self.0, &topic.0)
    }

    /// Whether the pattern matches every topic that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &TopicPattern) -> bool {
        covers(&self.0, &other.0)
    }

    /// The only topic that a pattern without wildcards matches. `None` for a pattern with wildcards.
    #[must_use]
    pub fn as_topic(&self) -> Option<Topic> {
        is_topic(&self.0).then(|| Topic(self.0.clone()))
    }
}

impl From<Topic> for TopicPattern {
    fn from(topic: Topic) -> Self {
        Self(topic.0)
    }
}

/// What a peer may call: a contract such as `settings@1`, or one operation of it, such as `settings@1/get`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallGrant {
    /// The contract.
    pub contract: ContractName,
    /// The operation. `None` grants all operations of the contract.
    pub operation: Option<OperationName>,
}

impl CallGrant {
    /// Whether the grant lets a peer call this operation.
    #[must_use]
    pub fn allows(&self, contract: &ContractName, operation: &OperationName) -> bool {
        self.contract == *contract && self.operation.as_ref().is_none_or(|only| only == operation)
    }
}

impl From<ContractName> for CallGrant {
    fn from(contract: ContractName) -> Self {
        Self { contract, operation: None }
    }
}

impl FromStr for CallGrant {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (contract, operation) = match text.split_once('/') {
            Some((contract, operation)) => (contract, Some(operation)),
            None => (text, None),
        };
        Ok(Self { contract: contract.parse()?, operation: operation.map(str::parse).transpose()? })
    }
}

impl fmt::Display for CallGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation {
            Some(operation) => write!(f, "{}/{operation}", self.contract),
            None => self.contract.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> TopicPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_star_stands_for_one_segment_and_a_greater_sign_for_the_rest() {
        let topic: Topic = "settings.changed.volume".parse().unwrap();
        for yes in ["settings.changed.volume", "settings.*.volume", "settings.>", ">", "*.*.*"] {
            assert!(pattern(yes).matches(&topic), "{yes}");
        }
        for no in ["settings", "settings.*", "settings.changed.volume.>", "*.*.*.*", "other.>"] {
            assert!(!pattern(no).matches(&topic), "{no}");
        }
    }

    #[test]
    fn a_grant_covers_only_patterns_that_it_contains() {
        assert!(pattern("a.>").covers(&pattern("a.*.c")));
        assert!(pattern("a.*").covers(&pattern("a.*")));
        assert!(!pattern("a.*").covers(&pattern("a.>")));
        assert!(!pattern("a.b").covers(&pattern("a.*")));
        assert!(!pattern("a.*").covers(&pattern(">")));
    }

    #[test]
    fn names_that_are_not_well_formed_are_refused() {
        for bad in ["", "main", "A", "1a", "a_b", "a b", &"a".repeat(65)] {
            assert!(bad.parse::<ExtensionId>().is_err(), "{bad}");
        }
        for bad in [
            "",
            "app",
            "app:",
            ":player",
            "app:player:1",
            "App:player",
            "app:1",
            &format!("a:{}", "b".repeat(63)),
        ] {
            assert!(bad.parse::<PeerName>().is_err(), "{bad}");
        }
        assert!("app:player".parse::<PeerName>().is_ok());
        for bad in ["", "a", "a@", "a@01", "a@x", "a..b@1", "a@1@2", "a@65536", ".@1", "A@1"] {
            assert!(bad.parse::<ContractName>().is_err(), "{bad}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "a.>.b", "a>", "**", "a\0", "a b"] {
            assert!(bad.parse::<TopicPattern>().is_err(), "{bad}");
        }
        for bad in ["*", "a.>", ""] {
            assert!(bad.parse::<Topic>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_that_covers_another_matches_all_that_it_matches(
            wide in "([ab*]\\.){0,3}[ab*>]",
            narrow in "([ab*]\\.){0,3}[ab*>]",
            topic in "([ab]\\.){0,4}[ab]",
        ) {
            let (wide, narrow) = (pattern(&wide), pattern(&narrow));
            let topic: Topic = topic.parse().unwrap();
            if wide.covers(&narrow) && narrow.matches(&topic) {
                prop_assert!(wide.matches(&topic));
            }
        }
    }

    #[test]
    fn a_grant_is_for_a_contract_or_for_one_operation_of_it() {
        let (settings, get, set) =
            ("settings@1".parse().unwrap(), "get".parse().unwrap(), "set".parse().unwrap());
        let all: CallGrant = "settings@1".parse().unwrap();
        let one: CallGrant = "settings@1/get".parse().unwrap();
        assert!(all.allows(&settings, &get) && all.allows(&settings, &set));
        assert!(one.allows(&settings, &get) && !one.allows(&settings, &set));
        assert!(!all.allows(&"settings@2".parse().unwrap(), &get));
        assert_eq!([all.to_string(), one.to_string()], ["settings@1", "settings@1/get"]);
        for bad in ["", "settings", "settings@1/", "settings@1/a/b", "/get"] {
            assert!(bad.parse::<CallGrant>().is_err(), "{bad}");
        }
    }
}
