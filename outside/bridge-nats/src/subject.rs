//! Names of Weir as subjects of NATS, and back.
//!
//! | subject | is |
//! | --- | --- |
//! | `weir.FLEET.c.CALLER.PROVIDER.CONTRACT.OPERATION` | a call; the provider is a node, or `_`: any |
//! | `weir.FLEET.x.CALLER.CONTRACT` | a call that its caller has given up |
//! | `weir.FLEET.e.NODE.TOPIC` | an event |
//! | `weir.FLEET.q.NODE.QUEUE` | a job |
//! | `weir.FLEET.r.NODE.SESSION.NUMBER` | an answer |
//! | `weir.FLEET.n.NODE.here` | a question whether a node is there |
//!
//! The node that sends is always the token after the kind. So the server can pin it: a user that may publish
//! `weir.FLEET.*.NODE.>` alone cannot speak for another node.
//!
//! Every subject begins with `weir.`, and no name can add a token, a `>` or a `*`. So none is of `$JS.` or `$SYS.`.

use std::fmt::Write;

use weir_names::rules::{is_contract_name, is_operation_name, is_queue_name, is_topic};

use crate::config::Node;

/// Stands for any provider. No name of a node begins so.
const ANY: &str = "_";

/// A name as one token of a subject: of letters, digits, `-` and `_` alone.
///
/// `_` begins an escape: `__` is `.`, `_v` is `@`, `_u` is `_`, and `_xHH` any other byte. So each name has one token, and
/// each token one name.
#[must_use]
pub fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len() + 4);
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => token.push(char::from(byte)),
            b'.' => token.push_str("__"),
            b'@' => token.push_str("_v"),
            b'_' => token.push_str("_u"),
            byte => {
                let _infallible = write!(token, "_x{byte:02x}");
            }
        }
    }
    token
}

/// The name that has this token, if one has.
#[must_use]
pub fn name(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'_' => match rest.next()? {
                b'_' => b'.',
                b'v' => b'@',
                b'u' => b'_',
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                _ => return None,
            },
            byte => byte,
        });
    }
    let name = String::from_utf8(bytes).ok()?;
    // There are other ways to write some bytes; none of them is a token.
    (token(&name) == text).then_some(name)
}

/// The subjects of one fleet, as one node uses them.
#[derive(Clone, Debug)]
pub struct Subjects {
    prefix: String,
    node: Node,
    fleet: Node,
}

/// A call, as its subject says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSubject {
    /// The node that calls.
    pub node: String,
    /// The contract.
    pub contract: String,
    /// The operation.
    pub operation: String,
}

impl Subjects {
    /// The subjects of a fleet, as this node uses them.
    #[must_use]
    pub fn new(fleet: &Node, node: &Node) -> Self {
        Self { prefix: format!("weir.{fleet}"), node: node.clone(), fleet: fleet.clone() }
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &str {
        self.node.as_str()
    }

    /// The subject of a call of this node to the provider, or to any node.
    #[must_use]
    pub fn call(&self, provider: Option<&Node>, contract: &str, operation: &str) -> String {
        let provider = provider.map_or(ANY, Node::as_str);
        let Self { prefix, node, .. } = self;
        format!("{prefix}.c.{node}.{provider}.{}.{}", token(contract), token(operation))
    }

    /// The subjects of all nodes' calls to this node, or of those to any node.
    #[must_use]
    pub fn calls(&self, to_this_one: bool, contract: &str) -> String {
        let provider = if to_this_one { self.node() } else { ANY };
        format!("{}.c.*.{provider}.{}.*", self.prefix, token(contract))
    }

    /// What a subject of [`calls`](Self::calls) says. `None` if it is malformed, as only a forger makes it.
    #[must_use]
    pub fn parse_call(&self, subject: &str) -> Option<CallSubject> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".c.")?;
        let mut tokens = rest.split('.');
        let (node, _provider) = (tokens.next()?, tokens.next()?);
        let (contract, operation) = (name(tokens.next()?)?, name(tokens.next()?)?);
        let is_good = tokens.next().is_none()
            && is_queue_name(node)
            && is_contract_name(&contract)
            && is_operation_name(&operation);
        is_good.then(|| CallSubject { node: node.to_owned(), contract, operation })
    }

    /// The node that calls, also where the rest of the subject is malformed. `None` if the subject is not that of a
    /// call, or the node is no name.
    #[must_use]
    pub fn caller_of<'s>(&self, subject: &'s str) -> Option<&'s str> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".c.")?;
        rest.split('.').next().filter(|node| is_queue_name(node))
    }

    /// Whether `reply` is a subject at which `node` gets answers.
    #[must_use]
    pub fn is_inbox_of(&self, node: &str, reply: &str) -> bool {
        let rest = reply.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix(".r."));
        let rest = rest.and_then(|rest| rest.strip_prefix(node)).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| {
            rest.split('.').all(|token| {
                !token.is_empty()
                    && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            })
        })
    }

    /// The node that gives a call up. `None` if the subject is malformed.
    #[must_use]
    pub fn parse_cancel<'s>(&self, subject: &'s str) -> Option<&'s str> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".x.")?;
        rest.split_once('.').map(|(node, _contract)| node).filter(|node| is_queue_name(node))
    }

    /// The subject by which this node gives up a call.
    #[must_use]
    pub fn cancel(&self, contract: &str) -> String {
        format!("{}.x.{}.{}", self.prefix, self.node, token(contract))
    }

    /// The subjects by which all nodes give up calls of a contract.
    #[must_use]
    pub fn cancels(&self, contract: &str) -> String {
        format!("{}.x.*.{}", self.prefix, token(contract))
    }

    /// The subject of an event of this node. `None` if the topic is malformed.
    #[must_use]
    pub fn event(&self, topic: &str) -> Option<String> {
        // Segments of topics are tokens as they are.
        is_topic(topic).then(|| format!("{}.e.{}.{topic}", self.prefix, self.node))
    }

    /// The subjects of events of a node, or of all nodes, on the topics of a pattern.
    #[must_use]
    pub fn events(&self, from: Option<&Node>, pattern: &str) -> String {
        format!("{}.e.{}.{pattern}", self.prefix, from.map_or("*", Node::as_str))
    }

    /// The node and the topic of an event. `None` if the subject is malformed.
    #[must_use]
    pub fn parse_event<'s>(&self, subject: &'s str) -> Option<(&'s str, &'s str)> {
        let (node, topic) = subject.strip_prefix(&self.prefix)?.strip_prefix(".e.")?.split_once('.')?;
        (is_queue_name(node) && is_topic(topic)).then_some((node, topic))
    }

    /// The subject of a job of this node.
    #[must_use]
    pub fn job(&self, queue: &str) -> String {
        format!("{}.q.{}.{queue}", self.prefix, self.node)
    }

    /// The subjects of all nodes' jobs in a queue.
    #[must_use]
    pub fn jobs(&self, queue: &str) -> String {
        format!("{}.q.*.{queue}", self.prefix)
    }

    /// The node of a job. `None` if the subject is malformed.
    #[must_use]
    pub fn parse_job<'s>(&self, subject: &'s str) -> Option<&'s str> {
        let (node, _queue) = subject.strip_prefix(&self.prefix)?.strip_prefix(".q.")?.split_once('.')?;
        is_queue_name(node).then_some(node)
    }

    /// The name of the stream that keeps the jobs of a queue.
    #[must_use]
    pub fn stream(&self, queue: &str) -> String {
        // Neither the fleet nor the queue has a `_` in its name.
        format!("weir_{}_{queue}", self.fleet)
    }

    /// The name of the bucket with the last events of topics.
    #[must_use]
    pub fn bucket(&self) -> String {
        format!("weir_{}", self.fleet)
    }

    /// The subject with which those of all answers to this node begin.
    #[must_use]
    pub fn inbox(&self) -> String {
        format!("{}.r.{}", self.prefix, self.node)
    }

    /// The subject of the question whether this node is there.
    #[must_use]
    pub fn presence(&self) -> String {
        format!("{}.n.{}.here", self.prefix, self.node)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subjects() -> Subjects {
        Subjects::new(&"home".parse().unwrap(), &"kitchen".parse().unwrap())
    }

    #[test]
    fn names_are_written_as_the_manual_says() {
        assert_eq!(token("device.info@1"), "device__info_v1");
        assert_eq!(token("device_info_1"), "device_uinfo_u1");
        assert_eq!(token("get>*$é"), "get_x3e_x2a_x24_xc3_xa9");
        let hall = "hall".parse().unwrap();
        assert_eq!(
            subjects().call(Some(&hall), "device.info@1", "memory"),
            "weir.home.c.kitchen.hall.device__info_v1.memory"
        );
        assert_eq!(subjects().call(None, "a@1", "b"), "weir.home.c.kitchen._.a_v1.b");
        assert_eq!(subjects().event("a.b").as_deref(), Some("weir.home.e.kitchen.a.b"));
    }

    #[test]
    fn no_topic_adds_a_wildcard() {
        for bad in ["", ">", "a.>", "*", "a.*", "$JS.API", "a..b", "a b"] {
            assert_eq!(subjects().event(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_subject_that_no_bridge_makes_is_refused() {
        let bad = [
            "weir.home.c.hall._.a_v1",
            "weir.home.c.hall._.a_v1.b.c",
            "weir.home.c.hall._.a_v1.>",
            "weir.home.c.*._.a_v1.b",
            "weir.home.c.Hall._.a_v1.b",
            "weir.home.c.hall._.a.b",
            "weir.home.c.hall._.a_x401.b",
            "weir.other.c.hall._.a_v1.b",
            "weir.home2.c.hall._.a_v1.b",
            "$JS.API.INFO",
        ];
        for bad in bad {
            assert_eq!(subjects().parse_call(bad), None, "{bad}");
        }
        for bad in [
            "weir.home.e.hall.>",
            "weir.home.e.>",
            "weir.home.e.hall",
            "weir.home.e.*.a",
            "weir.home.e.hall.a.*",
        ] {
            assert_eq!(subjects().parse_event(bad), None, "{bad}");
        }
    }

    #[test]
    fn answers_go_to_the_inbox_of_the_caller_alone() {
        assert!(subjects().is_inbox_of("hall", "weir.home.r.hall.1f.2e"));
        let bad = [
            "weir.home.r.hallway.1",
            "weir.home.r.hall",
            "weir.home.r.hall.",
            "weir.home.r.hall.>",
            "weir.home.r.kitchen.1.2",
            "weir.home.e.cellar.settings",
            "weir.other.r.hall.1",
            "$JS.API.STREAM.DELETE.weir_home_work",
            "_INBOX.1",
            "",
        ];
        for bad in bad {
            assert!(!subjects().is_inbox_of("hall", bad), "{bad}");
        }
        assert_eq!(subjects().parse_cancel("weir.home.x.hall.a_v1"), Some("hall"));
        assert_eq!(subjects().parse_cancel("weir.home.x.*.a_v1"), None);
    }

    proptest! {
        #[test]
        fn each_name_has_its_own_token(name in ".{0,40}", other in ".{0,40}") {
            let token = token(&name);
            prop_assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
            prop_assert_eq!(super::name(&token), Some(name.clone()));
            prop_assert_eq!(token == super::token(&other), name == other);
        }

        #[test]
        fn a_text_that_is_a_token_is_that_of_its_name(text in "[a-f0-9_uvx.>*-]{0,12}") {
            if let Some(name) = name(&text) {
                prop_assert_eq!(token(&name), text);
            }
        }

        #[test]
        fn a_call_is_read_as_it_was_written(
            node in "[a-z][a-z0-9-]{0,10}",
            contract in "[a-z0-9-]{1,6}(\\.[a-z0-9-]{1,6}){0,3}@(0|[1-9][0-9]{0,3})",
            operation in "[!-.0-~]{1,20}",
        ) {
            let fleet: Node = "home".parse().unwrap();
            let subject = Subjects::new(&fleet, &node.parse().unwrap()).call(None, &contract, &operation);
            prop_assert_eq!(subject.split('.').count(), 7);
            let call = subjects().parse_call(&subject);
            prop_assert_eq!(call, Some(CallSubject { node, contract, operation }));
        }
    }
}
