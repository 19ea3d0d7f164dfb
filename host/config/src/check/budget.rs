//! The memory of all extensions, peers, queues and other crates' sections, against the memory budget.

use std::cmp::Reverse;

use bytesize::ByteSize;
use weir_names::QueueName;

use super::Judged;
use crate::{
    ExtensionConfig, PeerConfig, PeerSessionLimits, ReloadMode,
    error::{ConfigError, Location},
    schema::MemoryUse,
    shape::bytes,
};

/// How many parts an error lists, the largest first.
const SHOWN_MAX: usize = 20;

impl Judged<'_> {
    /// The error for a sum over the budget. Counts all extensions, even those that do not start with Main: an operator
    /// may start any.
    pub(super) fn memory_budget(&self) -> Option<ConfigError> {
        let budget = self.config.main.memory_budget?;
        let queues = self.config.all_queues();
        let mut named = Vec::new();
        named.extend((!self.config.peers.is_empty()).then_some("the peers"));
        named.extend((!queues.is_empty()).then_some("the queues"));
        let mut lower = if named.is_empty() { "theirs" } else { "what they may hold" };
        let mut parts = Vec::new();
        for section in self.config.sections.all() {
            let uses = section.memory(&self.locations.sections);
            if !uses.is_empty() {
                named.push(section.in_budget());
                lower = "what they may take";
            }
            parts.extend(uses);
        }
        let of_extensions = self.config.extensions.iter().map(ExtensionConfig::memory_sum);
        let of_peers = self.config.peers.iter().map(PeerConfig::memory_sum);
        let of_queues = queues.values().map(|queue| queue.bytes);
        let of_sections = parts.iter().map(|part| part.bytes);
        let total = sum(of_extensions.chain(of_peers).chain(of_queues).chain(of_sections));
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

        let extensions = self.extensions().map(|(index, extension)| MemoryUse {
            what: format!("`{}` comes", extension.id),
            location: self.place(index, "id"),
            bytes: extension.memory_sum(),
            factors: factors(extension),
        });
        let peers = self.peers().map(|(index, peer)| MemoryUse {
            what: format!("`{}` comes", peer.name),
            location: self.locations.peers.get(index).and_then(|at| at.here()),
            bytes: peer.memory_sum(),
            factors: factors_of_peer(peer),
        });
        let queues = queues.iter().map(|(name, queue)| MemoryUse {
            what: format!("queue `{name}` comes"),
            location: self.place_of_queue(name),
            bytes: queue.bytes,
            factors: String::new(),
        });
        let mut parts: Vec<MemoryUse> = extensions.chain(peers).chain(queues).chain(parts).collect();
        parts.sort_by_key(|part| Reverse(part.bytes));
        let rest = parts.split_off(SHOWN_MAX.min(parts.len()));
        let error = parts.into_iter().fold(error, |error, MemoryUse { what, location, bytes, factors }| {
            let colon = if factors.is_empty() { "" } else { ": " };
            error.detail(location, format!("{what} to {}{colon}{factors}", shown(bytes.into())))
        });
        if rest.is_empty() {
            return Some(error);
        }
        let others = sum(rest.iter().map(|part| part.bytes));
        Some(error.detail(None, format!("{} more come to {}", rest.len(), shown(others))))
    }

    /// The place of a queue. A queue without a table has the place of its first mention as a `dead-letter`.
    fn place_of_queue(&self, name: &QueueName) -> Option<Location> {
        match self.locations.queues.get(name) {
            Some(at) => at.here(),
            None => {
                let mut sources = self.config.queues.iter();
                let (source, _) = sources.find(|(_, queue)| queue.dead_letter.as_ref() == Some(name))?;
                self.locations.queues.get(source)?.of("dead-letter")
            }
        }
    }
}

fn factors_of_peer(peer: &PeerConfig) -> String {
    let PeerSessionLimits { sessions, inbox_bytes, .. } = &peer.limits;
    format!("`sessions` {sessions} × 2 × `inbox.bytes` {}", bytes(*inbox_bytes))
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

/// Adds numbers of bytes. The sum has a wider type, so that many terms cannot overflow it.
fn sum(bytes: impl Iterator<Item = u64>) -> u128 {
    bytes.map(u128::from).sum()
}

fn shown(total: u128) -> String {
    u64::try_from(total)
        .map_or_else(|_| format!("{total} B"), |total| ByteSize::b(total).display().iec().to_string())
}
