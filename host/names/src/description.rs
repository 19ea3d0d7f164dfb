//! The description of a contract, as a constant.
//!
//! `weir_sdk::contract!` writes the description, and `weir_sdk::manifest!` places it in a section of the finished
//! component, as OpenRPC. Nothing of it is in the program's memory.

mod document;

use crate::{json::is_same, shape::Schema};

/// A contract's operations, topics and queues, each with its types and its documentation.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// What the contract is, in lines of a doc comment.
    pub doc: &'static [&'static str],
    /// The items, in the order of their declaration.
    pub items: &'static [Item],
}

/// An operation, a topic or a queue of a contract.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// An operation.
    Operation {
        /// The name within the contract.
        name: &'static str,
        /// What it does, in lines of a doc comment.
        doc: &'static [&'static str],
        /// The arguments.
        arguments: Payload,
        /// The result.
        result: Payload,
        /// Codes of the provider's own errors, each with its meaning.
        errors: &'static [(&'static str, &'static str)],
    },
    /// A topic, or a pattern of topics.
    Topic {
        /// The topic or the pattern.
        name: &'static str,
        /// What is published there, in lines of a doc comment.
        doc: &'static [&'static str],
        /// The events.
        payload: Payload,
    },
    /// A queue.
    Queue {
        /// The name.
        name: &'static str,
        /// What its jobs are, in lines of a doc comment.
        doc: &'static [&'static str],
        /// The jobs.
        payload: Payload,
    },
}

/// The encoding of a payload.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// Bytes.
    Bytes,
    /// JSON of a type.
    Json(&'static Schema),
}

/// The side of a contract that an extension describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The extension serves the contract.
    Provider,
    /// The extension calls the contract. Its description leaves out what is for people.
    Caller,
}

impl Description {
    /// The most bytes of all descriptions of a component, as JSON.
    pub const MOST_BYTES: usize = 64 * 1024;

    /// Names of the operations.
    pub fn operations(&self) -> impl Iterator<Item = &'static str> {
        self.items.iter().filter_map(|item| match item {
            Item::Operation { name, .. } => Some(*name),
            Item::Topic { .. } | Item::Queue { .. } => None,
        })
    }

    /// Panics if two operations, topics or queues have the same name.
    const fn refuse_twins(&self) {
        let mut rest = self.items;
        while let [item, tail @ ..] = rest {
            let mut others = tail;
            while let [other, tail @ ..] = others {
                let twins = item.kind() as u8 == other.kind() as u8 && is_same(item.name(), other.name());
                assert!(!twins, "two operations, topics or queues of this contract have one name");
                others = tail;
            }
            rest = tail;
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Operation,
    Topic,
    Queue,
}

impl Item {
    const fn kind(&self) -> Kind {
        match self {
            Self::Operation { .. } => Kind::Operation,
            Self::Topic { .. } => Kind::Topic,
            Self::Queue { .. } => Kind::Queue,
        }
    }

    const fn name(&self) -> &'static str {
        let (Self::Operation { name, .. } | Self::Topic { name, .. } | Self::Queue { name, .. }) = self;
        name
    }

    const fn doc(&self) -> &'static [&'static str] {
        let (Self::Operation { doc, .. } | Self::Topic { doc, .. } | Self::Queue { doc, .. }) = self;
        doc
    }
}
