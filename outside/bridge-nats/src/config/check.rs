//! What must hold between the keys of a file, and how faults are shown with their places.

use std::{collections::BTreeMap, fmt::Write, ops::Range};

use toml::Spanned;
use weir_names::{ContractName, QueueName, TopicPattern, harmless};

use super::{Config, Origin, QueueBy, Sender};

/// How the name of a bridge as a peer begins. What such a peer sends came from another node, so no bridge takes it.
pub(crate) const KIND: &str = "node:";

/// Most operations of one contract that a peer may serve.
const OPERATIONS_MAX: usize = 256;

/// Most faults that are shown.
const SHOWN_MAX: usize = 20;

/// Most characters shown of the line with the fault. A line whose fault is further on is not shown.
const LINE_MAX: usize = 160;

impl Config {
    /// Fails with every fault and its place.
    pub(super) fn check(&self) -> Result<(), Vec<(Range<usize>, String)>> {
        let mut faults = Faults(Vec::new());
        self.check_main(&mut faults);
        self.check_nats(&mut faults);
        self.check_contracts(&mut faults);
        self.check_from(&mut faults);
        self.check_queues(&mut faults);
        let exported: Vec<_> = self.export.topics.keys().collect();
        check_overlaps(&exported, &mut faults);
        let imported: Vec<_> = self.import.topics.keys().collect();
        check_overlaps(&imported, &mut faults);
        if faults.0.is_empty() { Ok(()) } else { Err(faults.0) }
    }

    fn check_main(&self, faults: &mut Faults) {
        if let Some(peer) = &self.main.as_ref().peer
            && !peer.as_ref().as_str().starts_with(KIND)
        {
            faults.add(peer, format!(
                "`main.peer` is `{}`: the name of a bridge begins with `{KIND}`, so that other bridges know it",
                peer.as_ref()
            ));
        }
    }

    fn check_nats(&self, faults: &mut Faults) {
        let nats = self.nats.as_ref();
        if nats.servers.as_ref().is_empty() {
            faults.add(&nats.servers, "`nats.servers` is empty: name a server");
        }
        for server in nats.servers.as_ref() {
            // What stands before an `@` is a secret, and is not shown.
            if server.as_ref().contains('@') {
                faults.add(server, "`nats.servers` has a user or a password: `nats.user` and `nats.password-file` are for these");
                continue;
            }
            if let Err(why) = server.as_ref().parse::<async_nats::ServerAddr>() {
                faults.add(server, format!("`{}` is not the address of a server: {why}", server.as_ref()));
            }
        }
        let proofs = [
            ("credentials-file", nats.credentials_file.is_some()),
            ("nkey-file", nats.nkey_file.is_some()),
            ("user", nats.user.is_some()),
            ("token-file", nats.token_file.is_some()),
        ];
        let given: Vec<_> =
            proofs.iter().filter(|(_, is)| *is).map(|(key, _)| format!("`nats.{key}`")).collect();
        if given.len() > 1 {
            faults.add(&self.nats, format!("{} exclude each other: keep one", given.join(" and ")));
        }
        if nats.user.is_some() != nats.password_file.is_some() {
            faults.add(&self.nats, "`nats.user` and `nats.password-file` go together");
        }
        if nats.tls.certificate_file.is_some() != nats.tls.key_file.is_some() {
            faults.add(&self.nats, "`nats.tls.certificate-file` and `nats.tls.key-file` go together");
        }
        if let Some(domain) = &nats.jetstream_domain
            && !is_token(domain.as_ref())
        {
            faults.add(domain, "`nats.jetstream-domain` has letters, digits, `-` and `_` alone");
        }
    }

    fn check_contracts(&self, faults: &mut Faults) {
        let mut served: BTreeMap<&ContractName, Range<usize>> = BTreeMap::new();
        for (name, export) in &self.export.contracts {
            if export.to.is_empty() {
                faults.add(name, format!("`to` of `{}` is empty: name a node, or `*`", name.as_ref()));
            }
            if export.operations.as_ref().is_some_and(Vec::is_empty) {
                faults
                    .add(name, format!("`operations` of `{}` is empty: leave it out for all", name.as_ref()));
            }
        }
        for (name, import) in &self.import.contracts {
            if import.alias.as_ref().is_some_and(|alias| alias == name) {
                faults.add(
                    name,
                    format!("`as` is `{}` itself: leave it out, or give another name", name.as_ref()),
                );
            }
            let here = import.alias.as_ref().unwrap_or(name);
            if served.insert(here.as_ref(), here.span()).is_some() {
                faults.add(here, format!("`{}` is imported twice", here.as_ref()));
            }
            if let Some(export) = self.export.contracts.keys().find(|export| *export == here) {
                let name = here.as_ref();
                faults.add(export, format!(
                    "`{name}` is exported, too: calls would go round. Import it under another name, by `as`"
                ));
            }
            let operations = import.operations.as_ref();
            if operations.is_empty() || operations.len() > OPERATIONS_MAX {
                faults.add(
                    &import.operations,
                    format!("`operations` has {}: from 1 to {OPERATIONS_MAX} are possible", operations.len()),
                );
            }
            if let (Some(prefer), None) = (&import.prefer, &import.alias) {
                faults.add(prefer, "`prefer` needs `as`: without it this node has no provider of its own");
            }
        }
    }

    fn check_from(&self, faults: &mut Faults) {
        let contracts = self.import.contracts.values().map(|contract| &contract.from);
        let topics = self.import.topics.values().map(|topic| &topic.from);
        let queues = self.import.queues.values().map(|queue| &queue.from);
        for from in contracts.chain(topics).chain(queues) {
            let list = from.as_ref();
            let is_own = |origin: &Origin| matches!(origin, Origin::Node(node) if *node == self.node);
            if list.iter().any(is_own) {
                faults.add(from, format!("`from` lists this node, `{}`", self.node));
            }
            let mut places = list.iter().enumerate();
            if places.any(|(place, one)| list.iter().take(place).any(|other| one == other)) {
                faults.add(from, "`from` lists a node twice");
            }
            if list.is_empty() || list.contains(&Origin::Any) && list.len() > 1 {
                faults.add(from, "`from` lists nodes, or `*` alone");
            }
        }
    }

    fn check_queues(&self, faults: &mut Faults) {
        let store = self.main.as_ref().store.as_ref();
        let topics = self.export.topics.iter().map(|(name, topic)| (name.span(), &topic.senders));
        let queues = self.export.queues.iter().map(|(name, queue)| (name.span(), &queue.senders));
        for (place, senders) in topics.chain(queues) {
            if senders.is_empty() {
                faults.0.push((place, "`senders` is empty: name one, or `*`".to_owned()));
            }
        }
        for (name, queue) in &self.export.queues {
            if queue.by == QueueBy::Store && store.is_none() {
                faults.add(name, format!(
                    "queue `{}` comes by its `store`, so `main.store` must name the contract; or set `by = \"take\"`",
                    name.as_ref()
                ));
            }
            if queue.by == QueueBy::Take && queue.senders != [Sender::Any] {
                faults.add(name, format!(
                    "queue `{}` comes by `take`, so `senders` must be `[\"*\"]`: a job in its queue goes to any reader",
                    name.as_ref()
                ));
            }
            if queue.by == QueueBy::Take && self.import.queues.contains_key(name) {
                faults.add(name, format!(
                    "queue `{}` is imported, too: its jobs would go round. Give it a `store`, and remove `by`",
                    name.as_ref()
                ));
            }
        }
        if let Some(store) = store {
            if !self.export.queues.values().any(|queue| queue.by == QueueBy::Store) {
                faults.add(store, "`main.store` is for exported queues, and there are none");
            }
            let imports = self.import.contracts.iter();
            let mut served = imports.map(|(name, import)| import.alias.as_ref().unwrap_or(name));
            if served.any(|name| name.as_ref() == store.as_ref()) {
                faults.add(store, format!("`{}` is imported, too", store.as_ref()));
            }
        }
        for (name, queue) in &self.import.queues {
            let Some(dead) = &queue.dead_letter else { continue };
            if dead.as_ref() == name.as_ref() {
                faults.add(dead, "a queue cannot be its own `dead-letter`");
            } else if self.is_circle(name.as_ref()) {
                faults
                    .add(dead, format!("dead jobs of `{}` come back to it: break the circle", name.as_ref()));
            }
        }
    }

    /// Whether dead jobs of a queue come back to it.
    fn is_circle(&self, queue: &QueueName) -> bool {
        let next = |name: &QueueName| {
            let found = self.import.queues.iter().find(|(own, _)| own.as_ref() == name);
            found.and_then(|(_, import)| import.dead_letter.as_ref()).map(Spanned::as_ref)
        };
        let mut at = next(queue);
        for _ in 0..self.import.queues.len() {
            match at {
                Some(name) if name == queue => return true,
                Some(name) => at = next(name),
                None => return false,
            }
        }
        false
    }
}

/// Faults, each with the bytes of the file that have it.
struct Faults(Vec<(Range<usize>, String)>);

impl Faults {
    fn add<T>(&mut self, place: &Spanned<T>, text: impl Into<String>) {
        self.0.push((place.span(), text.into()));
    }
}

/// Adds a fault for every two patterns that one topic can match: its events would cross by both, and come twice.
fn check_overlaps(patterns: &[&Spanned<TopicPattern>], faults: &mut Faults) {
    for (place, pattern) in patterns.iter().enumerate() {
        let others = patterns.iter().skip(place + 1);
        for other in others.filter(|other| overlap(pattern.as_ref().as_str(), other.as_ref().as_str())) {
            let (one, two) = (pattern.as_ref(), other.as_ref());
            faults.add(other, format!("`{two}` and `{one}` match the same topics: events would come twice"));
        }
    }
}

/// Whether some topic matches both patterns.
fn overlap(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (None, None) | (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (None, _) | (_, None) => return false,
            (Some(a), Some(b)) if a == "*" || b == "*" || a == b => {}
            _ => return false,
        }
    }
}

/// Whether the text can stand in a subject of NATS as one token of letters, digits, `-` and `_`.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// The faults of a file. Displays each as a line that starts with `file:line:column:`, followed by the source line and a
/// mark below the fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigErrors(String);

impl ConfigErrors {
    pub(super) fn new(name: &str, text: &str, mut faults: Vec<(Range<usize>, String)>) -> Self {
        faults.sort_by_key(|(place, _)| place.start);
        let shown = faults.iter().take(SHOWN_MAX);
        let mut lines: Vec<_> = shown.map(|(place, message)| report(name, text, place, message)).collect();
        if faults.len() > SHOWN_MAX {
            lines.push(format!("and {} more", faults.len() - SHOWN_MAX));
        }
        Self(lines.join("\n"))
    }

    pub(super) fn of_toml(name: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = with_nearest(error.message());
        Self::new(name, text, vec![(error.span().unwrap_or(0..0), message)])
    }
}

/// Adds to serde's message about an unknown word the most similar of those that it lists.
fn with_nearest(message: &str) -> String {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let (true, Some((wrong, known))) = (is_unknown, words.split_first()) else { return message.to_owned() };
    let near = known.iter().map(|word| (strsim::jaro_winkler(wrong, word), word));
    match near.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((similar, word)) if similar > 0.75 => format!("{message}; did you mean `{word}`?"),
        _ => message.to_owned(),
    }
}

fn report(name: &str, text: &str, place: &Range<usize>, message: &str) -> String {
    let start = text.floor_char_boundary(place.start);
    let end = text.floor_char_boundary(place.end.max(start));
    let before = text.get(..start).unwrap_or_default();
    let number = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let column = text.get(line_start..start).unwrap_or_default().chars().count();
    let marked = text.get(start..end).unwrap_or_default();
    let width = marked.lines().next().unwrap_or_default().chars().count().max(1);

    let mut report = format!("{name}:{number}:{}: {}", column + 1, harmless(message, 1000).trim_end());
    // A line with an address may have a password, so it is not shown.
    let is_secret = line.contains("://") && line.contains('@');
    if !line.is_empty() && !is_secret && column + width <= LINE_MAX {
        let margin = " ".repeat(number.to_string().len());
        let (space, mark) = (" ".repeat(column), "^".repeat(width));
        let _infallible =
            write!(report, "\n {number} | {}\n {margin} | {space}{mark}", harmless(line, LINE_MAX));
    }
    report
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_names::Topic;

    use super::*;

    proptest! {
        #[test]
        fn patterns_overlap_if_some_topic_matches_both(
            one in "([ab*]\\.){0,2}[ab*>]",
            other in "([ab*]\\.){0,2}[ab*>]",
        ) {
            let letters = ["a", "b"];
            let mut topics: Vec<String> = letters.map(str::to_owned).to_vec();
            for _ in 0..3 {
                let longer = topics.iter().flat_map(|topic| letters.map(|letter| format!("{topic}.{letter}")));
                topics.extend(longer.collect::<Vec<_>>());
            }
            let (first, second): (TopicPattern, TopicPattern) = (one.parse().unwrap(), other.parse().unwrap());
            let is_matched = topics.iter().any(|topic| {
                let topic: Topic = topic.parse().unwrap();
                first.matches(&topic) && second.matches(&topic)
            });
            prop_assert_eq!(overlap(&one, &other), is_matched);
        }
    }
}
