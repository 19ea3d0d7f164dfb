//! What must hold between the keys of a file.

use std::{collections::BTreeMap, ops::Range};

use toml::Spanned;
use weir_names::{ContractName, QueueName, TopicPattern};

use super::{Config, Origin, QueueBy, Sender, error::Fault};

/// The kind of a bridge's name as a peer. Events of such peers came from elsewhere, and go nowhere else.
pub(crate) const KIND: &str = "node:";

/// Operations of one contract that a peer may serve.
const OPERATIONS_MAX: usize = 256;

impl Config {
    /// Every fault.
    pub(super) fn check(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Vec::new();
        let mut fault = |place: Range<usize>, text: String| faults.push((place, text));
        self.check_main(&mut fault);
        self.check_nats(&mut fault);
        self.check_contracts(&mut fault);
        self.check_from(&mut fault);
        self.check_queues(&mut fault);
        let exported: Vec<_> = self.export.topics.keys().collect();
        check_overlaps(&exported, &mut fault);
        let imported: Vec<_> = self.import.topics.keys().collect();
        check_overlaps(&imported, &mut fault);
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    fn check_main(&self, fault: &mut impl FnMut(Range<usize>, String)) {
        if let Some(peer) = &self.main.as_ref().peer
            && !peer.as_ref().as_str().starts_with(KIND)
        {
            let text = format!(
                "`main.peer` is `{}`: the name of a bridge begins with `{KIND}`, so that other bridges know it",
                peer.as_ref()
            );
            fault(peer.span(), text);
        }
    }

    fn check_nats(&self, fault: &mut impl FnMut(Range<usize>, String)) {
        let nats = self.nats.as_ref();
        if nats.servers.as_ref().is_empty() {
            fault(nats.servers.span(), "`nats.servers` is empty: name a server".to_owned());
        }
        for server in nats.servers.as_ref() {
            // What stands before an `@` is a secret, and is not shown.
            if server.as_ref().contains('@') {
                let text = "`nats.servers` has a user or a password: `nats.user` and `nats.password-file` are for these";
                fault(server.span(), text.to_owned());
                continue;
            }
            if let Err(why) = server.as_ref().parse::<async_nats::ServerAddr>() {
                let text = format!("`{}` is not the address of a server: {why}", server.as_ref());
                fault(server.span(), text);
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
            fault(self.nats.span(), format!("{} exclude each other: keep one", given.join(" and ")));
        }
        if nats.user.is_some() != nats.password_file.is_some() {
            fault(self.nats.span(), "`nats.user` and `nats.password-file` go together".to_owned());
        }
        if nats.tls.certificate_file.is_some() != nats.tls.key_file.is_some() {
            let text = "`nats.tls.certificate-file` and `nats.tls.key-file` go together".to_owned();
            fault(self.nats.span(), text);
        }
        if let Some(domain) = &nats.jetstream_domain
            && !is_token(domain.as_ref())
        {
            let text = "`nats.jetstream-domain` has letters, digits, `-` and `_` alone".to_owned();
            fault(domain.span(), text);
        }
    }

    fn check_contracts(&self, fault: &mut impl FnMut(Range<usize>, String)) {
        let mut served: BTreeMap<&ContractName, Range<usize>> = BTreeMap::new();
        for (name, export) in &self.export.contracts {
            if export.to.is_empty() {
                fault(name.span(), format!("`to` of `{}` is empty: name a node, or `*`", name.as_ref()));
            }
            if export.operations.as_ref().is_some_and(Vec::is_empty) {
                fault(
                    name.span(),
                    format!("`operations` of `{}` is empty: leave it out for all", name.as_ref()),
                );
            }
        }
        for (name, import) in &self.import.contracts {
            if import.alias.as_ref().is_some_and(|alias| alias == name) {
                let text = format!("`as` is `{}` itself: leave it out, or give another name", name.as_ref());
                fault(name.span(), text);
            }
            let here = import.alias.as_ref().unwrap_or(name);
            if served.insert(here.as_ref(), here.span()).is_some() {
                fault(here.span(), format!("`{}` is imported twice", here.as_ref()));
            }
            if let Some(export) = self.export.contracts.keys().find(|export| *export == here) {
                let name = here.as_ref();
                let text = format!(
                    "`{name}` is exported, too: calls would go round. Import it under another name, by `as`"
                );
                fault(export.span(), text);
            }
            let operations = import.operations.as_ref();
            if operations.is_empty() || operations.len() > OPERATIONS_MAX {
                let text =
                    format!("`operations` has {}: from 1 to {OPERATIONS_MAX} are possible", operations.len());
                fault(import.operations.span(), text);
            }
            if let (Some(prefer), None) = (&import.prefer, &import.alias) {
                let text = "`prefer` needs `as`: without it this node has no provider of its own".to_owned();
                fault(prefer.span(), text);
            }
        }
    }

    fn check_from(&self, fault: &mut impl FnMut(Range<usize>, String)) {
        let contracts = self.import.contracts.values().map(|contract| &contract.from);
        let topics = self.import.topics.values().map(|topic| &topic.from);
        let queues = self.import.queues.values().map(|queue| &queue.from);
        for from in contracts.chain(topics).chain(queues) {
            let (is_any, names) = (from.as_ref().contains(&Origin::Any), from.as_ref().len());
            let is_own = |origin: &Origin| matches!(origin, Origin::Node(node) if *node == self.node);
            if from.as_ref().iter().any(is_own) {
                fault(from.span(), format!("`from` lists this node, `{}`", self.node));
            }
            let is_twice = from
                .as_ref()
                .iter()
                .enumerate()
                .any(|(place, one)| from.as_ref().iter().take(place).any(|other| one == other));
            if is_twice {
                fault(from.span(), "`from` lists a node twice".to_owned());
            }
            if names == 0 || is_any && names > 1 {
                fault(from.span(), "`from` lists nodes, or `*` alone".to_owned());
            }
        }
    }

    fn check_queues(&self, fault: &mut impl FnMut(Range<usize>, String)) {
        let store = self.main.as_ref().store.as_ref();
        let topics = self.export.topics.iter().map(|(name, topic)| (name.span(), &topic.senders));
        let queues = self.export.queues.iter().map(|(name, queue)| (name.span(), &queue.senders));
        for (place, senders) in topics.chain(queues) {
            if senders.is_empty() {
                fault(place, "`senders` is empty: name one, or `*`".to_owned());
            }
        }
        for (name, queue) in &self.export.queues {
            if queue.by == QueueBy::Store && store.is_none() {
                let text = format!(
                    "queue `{}` comes by its `store`, so `main.store` must name the contract; or set `by = \"take\"`",
                    name.as_ref()
                );
                fault(name.span(), text);
            }
            if queue.by == QueueBy::Take && queue.senders != [Sender::Any] {
                let text = format!(
                    "queue `{}` comes by `take`, so `senders` must be `[\"*\"]`: a job in its queue goes to any reader",
                    name.as_ref()
                );
                fault(name.span(), text);
            }
            if queue.by == QueueBy::Take && self.import.queues.contains_key(name) {
                let text = format!(
                    "queue `{}` is imported, too: its jobs would go round. Give it a `store`, and remove `by`",
                    name.as_ref()
                );
                fault(name.span(), text);
            }
        }
        if let Some(store) = store
            && !self.export.queues.values().any(|queue| queue.by == QueueBy::Store)
        {
            fault(store.span(), "`main.store` is for exported queues, and there are none".to_owned());
        }
        for (name, queue) in &self.import.queues {
            if let Some(dead) = &queue.dead_letter
                && dead.as_ref() == name.as_ref()
            {
                fault(dead.span(), "a queue cannot be its own `dead-letter`".to_owned());
            } else if let Some(dead) = &queue.dead_letter
                && self.is_circle(name.as_ref())
            {
                fault(
                    dead.span(),
                    format!("dead jobs of `{}` come back to it: break the circle", name.as_ref()),
                );
            }
        }
        self.check_store(fault, store);
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

    fn check_store(
        &self,
        fault: &mut impl FnMut(Range<usize>, String),
        store: Option<&Spanned<ContractName>>,
    ) {
        let Some(store) = store else { return };
        let imports = self.import.contracts.iter();
        let mut served = imports.map(|(name, import)| import.alias.as_ref().unwrap_or(name));
        if served.any(|name| name.as_ref() == store.as_ref()) {
            fault(store.span(), format!("`{}` is imported, too", store.as_ref()));
        }
    }
}

/// Each event crosses by one pattern: by two it would come twice.
fn check_overlaps(patterns: &[&Spanned<TopicPattern>], fault: &mut impl FnMut(Range<usize>, String)) {
    for (place, pattern) in patterns.iter().enumerate() {
        let others = patterns.iter().skip(place + 1);
        for other in others.filter(|other| overlap(pattern.as_ref().as_str(), other.as_ref().as_str())) {
            let (one, two) = (pattern.as_ref(), other.as_ref());
            fault(
                other.span(),
                format!("`{two}` and `{one}` match the same topics: events would come twice"),
            );
        }
    }
}

/// Whether a topic matches both.
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

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
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
