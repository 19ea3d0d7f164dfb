//! The memory of all extensions, peers, queues and other crates' sections, against the memory budget.

use std::fmt;

use bytesize::ByteSize;
use weir_names::QueueName;

use super::Parts;
use crate::{
    ExtensionConfig, PeerConfig, PeerSessionLimits, QueueConfig, ReloadMode,
    error::{ConfigError, Location},
    schema::MemoryUse,
    shape::bytes,
};

/// Largest parts that an error lists.
const SHOWN_MAX: usize = 20;

impl Parts<'_> {
    /// Counts all extensions, even those that do not start with Main: an operator may start any.
    pub(super) fn memory_budget(&self) -> Option<ConfigError> {
        let budget = self.config.main.memory_budget?;
        let queues = self.config.all_queues();
        let mut parts: Vec<Part<'_>> =
            self.extensions().map(|(index, extension)| Part::Extension(index, extension)).collect();
        parts.extend(self.peers().map(|(index, peer)| Part::Peer(index, peer)));
        parts.extend(queues.iter().map(|(name, queue)| Part::Queue(name, queue)));
        let mut named = Vec::new();
        named.extend((!self.config.peers.is_empty()).then_some("the peers"));
        named.extend((!queues.is_empty()).then_some("the queues"));
        let mut lower = if named.is_empty() { "theirs" } else { "what they may hold" };
        for section in self.config.sections.all() {
            let uses = section.memory(&self.locations.sections);
            if !uses.is_empty() {
                named.push(section.in_budget());
                lower = "what they may take";
            }
            parts.extend(uses.into_iter().map(Part::Section));
        }
        let total = sum(parts.iter().map(Part::bytes));
        if total <= u128::from(budget) {
            return None;
        }
        let (mut allowed, mut comes_to) = (shown(budget.into()), shown(total));
        if allowed == comes_to {
            (allowed, comes_to) = (format!("{budget} B"), format!("{total} B"));
        }
        let whose = match named.split_last() {
            None => "the limits of all extensions".to_owned(),
            Some((last, [])) => format!("the limits of all extensions and {last}"),
            Some((last, others)) => format!("the limits of all extensions, {} and {last}", others.join(", ")),
        };
        let message = format!(
            "`main.memory-budget` is {allowed}, but {whose} come to {comes_to}: raise it, or lower {lower}"
        );
        let location = self.locations.main.of("memory-budget");
        let error = ConfigError::new("main.memory-budget", message, location);

        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes()));
        let (largest, rest) = parts.split_at(SHOWN_MAX.min(parts.len()));
        let error =
            largest.iter().fold(error, |error, part| error.detail(self.place_of(part), part.to_string()));
        if rest.is_empty() {
            return Some(error);
        }
        let others = sum(rest.iter().map(Part::bytes));
        Some(error.detail(None, format!("{} more come to {}", rest.len(), shown(others))))
    }

    /// The place of a part. A queue without a table has the place of its first mention.
    fn place_of(&self, part: &Part<'_>) -> Option<Location> {
        match part {
            Part::Extension(index, _) => self.places(*index)?.of("id"),
            Part::Peer(index, _) => self.locations.peers.get(*index)?.here(),
            Part::Section(part) => part.location.clone(),
            Part::Queue(name, _) => match self.locations.queues.get(*name) {
                Some(at) => at.here(),
                None => {
                    let mut sources = self.config.queues.iter();
                    let (source, _) = sources.find(|(_, queue)| queue.dead_letter.as_ref() == Some(name))?;
                    self.locations.queues.get(source)?.of("dead-letter")
                }
            },
        }
    }
}

enum Part<'c> {
    Extension(usize, &'c ExtensionConfig),
    Peer(usize, &'c PeerConfig),
    Queue(&'c QueueName, &'c QueueConfig),
    Section(MemoryUse),
}

impl Part<'_> {
    fn bytes(&self) -> u64 {
        match self {
            Self::Extension(_, extension) => extension.memory_sum(),
            Self::Peer(_, peer) => peer.memory_sum(),
            Self::Queue(_, queue) => queue.bytes,
            Self::Section(part) => part.bytes,
        }
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = shown(self.bytes().into());
        match self {
            Self::Extension(_, extension) => {
                write!(f, "`{}` comes to {sum}: {}", extension.id, factors(extension))
            }
            Self::Peer(_, peer) => {
                let PeerSessionLimits { sessions, inbox_bytes, .. } = &peer.limits;
                let inbox = bytes(*inbox_bytes);
                write!(f, "`{}` comes to {sum}: `sessions` {sessions} × 2 × `inbox.bytes` {inbox}", peer.name)
            }
            Self::Queue(name, _) => write!(f, "queue `{name}` comes to {sum}"),
            Self::Section(MemoryUse { what, factors, .. }) => write!(f, "{what} to {sum}: {factors}"),
        }
    }
}

fn factors(extension: &ExtensionConfig) -> String {
    let limits = &extension.limits;
    let instance = format!("`memory` {} + `stack` {}", bytes(limits.memory), bytes(limits.stack));
    let reloaded = match extension.reload {
        ReloadMode::StopFirst => instance,
        ReloadMode::Overlap => format!("2 × ({instance})"),
    };
    let one = format!("{reloaded} + 2 × `inbox.bytes` {}", bytes(limits.inbox_bytes));
    match extension.instances {
        1 => one,
        instances => format!("`instances` {instances} × ({one})"),
    }
}

/// Wider than its terms, so that many cannot overflow.
fn sum(bytes: impl Iterator<Item = u64>) -> u128 {
    bytes.map(u128::from).sum()
}

fn shown(total: u128) -> String {
    u64::try_from(total)
        .map_or_else(|_| format!("{total} B"), |total| ByteSize::b(total).display().iec().to_string())
}
