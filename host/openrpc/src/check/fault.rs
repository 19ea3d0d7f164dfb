//! What is wrong with a value, and which fault of several says most.

use std::cmp::Reverse;

use super::Misfit;
use crate::path;

/// The most alternatives in one message.
const MAX_SHOWN: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// The place of the fault, from the inside out.
    path: Vec<Step>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Index(usize),
}

#[derive(Clone, Debug)]
enum Kind {
    /// The value is something else than what was expected.
    Other {
        expected: Vec<String>,
        found: String,
        /// Whether the value tells types of a union apart, as a tag does.
        is_tag: bool,
    },
    /// Text that follows the path.
    Message(String),
}

impl Fault {
    pub(super) fn message(message: impl Into<String>) -> Self {
        Self { path: Vec::new(), kind: Kind::Message(message.into()) }
    }

    pub(super) fn other(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::of(vec![expected.into()], found.into(), false)
    }

    /// The fault of a tag: one of these texts was expected.
    pub(super) fn tag(expected: Vec<String>, found: impl Into<String>) -> Self {
        Self::of(expected, found.into(), true)
    }

    fn of(expected: Vec<String>, found: String, is_tag: bool) -> Self {
        Self { path: Vec::new(), kind: Kind::Other { expected, found, is_tag } }
    }

    pub(super) fn in_field(mut self, name: &str) -> Self {
        self.path.push(Step::Field(name.into()));
        self
    }

    pub(super) fn at_index(mut self, index: usize) -> Self {
        self.path.push(Step::Index(index));
        self
    }

    /// Whether a tag says that the value is another type of a union.
    pub(super) fn is_tag(&self) -> bool {
        matches!(self.kind, Kind::Other { is_tag: true, .. }) && self.path.len() <= 1
    }

    /// Whether the value seems to be of another type of a union, rather than a faulty value of this type.
    fn is_other(&self) -> bool {
        self.is_tag() || (matches!(self.kind, Kind::Other { .. }) && self.path.is_empty())
    }

    /// The one fault to report for a value that fits none of several types, from its faults by each of them.
    pub(super) fn best<'a>(faults: impl Iterator<Item = &'a Self> + Clone) -> Option<Self> {
        let rank = |fault: &Self| (!fault.is_other(), fault.path.len());
        let mut best = faults.clone().min_by_key(|fault| Reverse(rank(fault)))?.clone();
        let best_rank = rank(&best);
        let Kind::Other { expected, .. } = &mut best.kind else { return Some(best) };
        for fault in faults.filter(|fault| rank(fault) == best_rank) {
            if let Kind::Other { expected: more, .. } = &fault.kind {
                let new: Vec<String> = more.iter().filter(|text| !expected.contains(text)).cloned().collect();
                expected.extend(new);
            }
        }
        Some(best)
    }

    pub(super) fn into_misfit(self) -> Misfit {
        let steps = self.path.iter().rev().map(|step| match step {
            Step::Field(name) => path::field(name),
            Step::Index(index) => path::index(*index),
        });
        let path = std::iter::once("$".to_owned()).chain(steps).collect();
        let message = match self.kind {
            Kind::Message(message) => message,
            Kind::Other { expected, found, .. } => format!("must be {}, and is {found}", listed(expected)),
        };
        Misfit { path, message }
    }
}

fn listed(mut expected: Vec<String>) -> String {
    if expected.len() > MAX_SHOWN {
        let more = expected.len() - (MAX_SHOWN - 1);
        expected.truncate(MAX_SHOWN - 1);
        expected.push(format!("one of {more} more"));
    }
    path::alternatives(&expected, "or")
}
