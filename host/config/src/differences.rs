//! Differences between configurations, key by key, for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use serde::Serialize;
use weir_names::{PeerName, QueueName, Topic, harmless};

use super::{
    ComponentSource, Config, DirGrant, DirMode, ExtensionConfig, HttpGrant, LIMIT_KEYS, MainConfig,
    PeerConfig, StoreGrant, SubscribeGrant, bytes, peer::PEER_LIMIT_KEYS,
};

/// Replaces values of variables, which may be secret.
const HIDDEN: &str = "…";

/// A key with different values in two configurations, in the notation of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// As in `limits.memory`.
    pub key: String,
    /// The value before. `None`: not set, or empty.
    pub before: Option<String>,
    /// The value after. `None`: not set, or empty.
    pub after: Option<String>,
}

impl ExtensionConfig {
    /// The keys that differ from `other`, in alphabetical order.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        between(of_extension(self), of_extension(other))
    }
}

impl PeerConfig {
    /// The keys that differ from `other`, in alphabetical order.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        between(of_peer(self), of_peer(other))
    }
}

impl MainConfig {
    /// The keys except `serves` that differ from `other`, in alphabetical order.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        between(of_main(self), of_main(other))
    }
}

impl Config {
    /// Other tables that differ, as in `queue.uploads`, and can take effect while Main runs.
    #[must_use]
    pub fn other_tables(&self, other: &Self) -> Vec<String> {
        let queues = keys(&self.queues, &other.queues);
        let queues =
            queues.into_iter().filter(|name: &&QueueName| self.queues.get(*name) != other.queues.get(*name));
        let topics = keys(&self.topics, &other.topics);
        let topics =
            topics.into_iter().filter(|name: &&Topic| self.topics.get(*name) != other.topics.get(*name));
        let queues = queues.map(|name| format!("queue.{name}"));
        let topics = topics.map(|name| format!("topic.\"{name}\""));
        let [before, after] = [self, other].map(|config| {
            config.peers.iter().map(|peer| (peer.name.clone(), peer)).collect::<BTreeMap<_, _>>()
        });
        let peers = keys(&before, &after);
        let peers = peers.into_iter().filter(|name: &&PeerName| before.get(*name) != after.get(*name));
        let peers: Vec<String> = peers.map(|name| format!("peer.\"{name}\"")).collect();
        queues
            .chain(topics)
            .chain(peers)
            .chain(self.different_sections(other, false).map(str::to_owned))
            .collect()
    }

    /// Tables of other crates that differ, and take effect only when Main is started anew.
    #[must_use]
    pub fn tables_for_restart(&self, other: &Self) -> Vec<&'static str> {
        self.different_sections(other, true).collect()
    }

    /// Replaces the tables that only a new start changes with those of `running`.
    pub fn keep_until_restart(&mut self, running: &Self) {
        self.sections.keep(&running.sections);
    }

    fn different_sections(&self, other: &Self, needs_restart: bool) -> impl Iterator<Item = &'static str> {
        self.sections.different(&other.sections).filter(move |table| {
            let either = [self, other].iter().any(|config| config.sections.needs_restart(table));
            either == needs_restart
        })
    }

    /// A copy without Main and the extensions.
    #[must_use]
    pub fn beside_extensions(&self) -> Self {
        let Self { peers, queues, topics, sections, .. } = self;
        let (peers, queues) = (peers.clone(), queues.clone());
        let (topics, sections) = (topics.clone(), sections.clone());
        Self { peers, queues, topics, sections, ..Self::default() }
    }
}

/// For each key its value, and the text to show instead.
type Facts = BTreeMap<String, (String, Option<&'static str>)>;

fn between(before: Facts, mut after: Facts) -> Vec<Difference> {
    let shown = |(text, instead): (String, Option<&str>)| instead.map_or(text, str::to_owned);
    let mut differences = Vec::new();
    for (key, before) in before {
        let after = after.remove(&key);
        if after.as_ref() != Some(&before) {
            differences.push(Difference { key, before: Some(shown(before)), after: after.map(shown) });
        }
    }
    let new =
        after.into_iter().map(|(key, after)| Difference { key, before: None, after: Some(shown(after)) });
    differences.extend(new);
    differences.sort_by(|one, other| one.key.cmp(&other.key));
    differences
}

fn of_extension(extension: &ExtensionConfig) -> Facts {
    let ExtensionConfig {
        id: _,
        component,
        sha256,
        limits,
        fulfills,
        requires,
        wants,
        publishes,
        subscribes,
        puts,
        takes,
        runs,
        when_full,
        // Each instance has its own configuration.
        instances: _,
        grants,
        config,
        secrets,
        autostart,
        restart,
        reload,
        traces,
        validate,
        plugin_dir: _,
        copy_of: _,
    } = extension;
    let mut facts = Facts::new();
    let mut fact = |key: &str, value: Option<String>| {
        facts.extend(value.map(|value| (key.to_owned(), (value, None))));
    };
    fact("path", Some(shown_source(component)));
    fact("sha256", sha256.map(quoted));
    fact("class", Some(quoted(&limits.class)));
    for key in &LIMIT_KEYS {
        fact(&format!("limits.{}", key.name), (key.get)(limits).map(|value| key.shape.text(value)));
    }
    fact("fulfills", list(fulfills.iter().map(quoted)));
    fact("requires", list(requires.iter().map(quoted)));
    fact("wants", list(wants.iter().map(quoted)));
    fact("publishes", list(publishes.iter().map(quoted)));
    fact("subscribes", list(subscribes.iter().map(subscription)));
    fact("puts", list(puts.iter().map(quoted)));
    fact("takes", list(takes.iter().map(quoted)));
    fact("runs", list(runs.iter().map(quoted)));
    fact("when-full", Some(quoted(when_full)));
    fact("grants.dirs", list(grants.dirs.iter().map(directory)));
    fact("grants.net", list(grants.net.iter().map(quoted)));
    fact("grants.http", list(grants.http.iter().map(http)));
    fact("grants.stores", list(grants.stores.iter().map(store)));
    fact("autostart", Some(autostart.to_string()));
    fact("reload", Some(quoted(reload.name())));
    fact("traces", Some(quoted(traces.name())));
    fact("validate", Some(quoted(validate.name())));
    fact("restart.policy", Some(quoted(restart.policy.name())));
    let times =
        [("backoff", restart.backoff), ("max-backoff", restart.max_backoff), ("window", restart.window)];
    for (key, time) in times {
        fact(&format!("restart.{key}"), Some(quoted(humantime::format_duration(time))));
    }
    fact("restart.failures", Some(restart.failures.to_string()));
    for (name, value) in config {
        fact(&format!("config.{}", harmless(name, usize::MAX)), Some(quoted(value)));
    }
    for (name, source) in secrets {
        fact(&format!("config.{}", harmless(name, usize::MAX)), Some(harmless(source, usize::MAX)));
    }
    let env = grants.env.iter();
    facts.extend(env.map(|(name, value)| {
        (format!("grants.env.{}", harmless(name, usize::MAX)), (value.clone(), Some(HIDDEN)))
    }));
    facts
}

fn of_peer(peer: &PeerConfig) -> Facts {
    let PeerConfig {
        name: _,
        uid,
        tokens,
        fulfills,
        wants,
        publishes,
        subscribes,
        puts,
        takes,
        when_full,
        limits,
    } = peer;
    let facts = [
        ("uid", uid.map(|uid| uid.to_string())),
        ("tokens", list(tokens.iter().map(quoted))),
        ("fulfills", list(fulfills.iter().map(quoted))),
        ("wants", list(wants.iter().map(quoted))),
        ("publishes", list(publishes.iter().map(quoted))),
        ("subscribes", list(subscribes.iter().map(subscription))),
        ("puts", list(puts.iter().map(quoted))),
        ("takes", list(takes.iter().map(quoted))),
        ("when-full", Some(quoted(when_full))),
    ];
    let facts = facts.into_iter().map(|(key, value)| (key.to_owned(), value));
    let limits = PEER_LIMIT_KEYS.iter().map(|key| {
        let value = (key.get)(limits).map(|value| key.shape.text(value));
        (format!("limits.{}", key.name), value)
    });
    facts.chain(limits).filter_map(|(key, value)| Some((key, (value?, None)))).collect()
}

fn of_main(main: &MainConfig) -> Facts {
    let MainConfig {
        // Mostly set by the embedding program.
        serves: _,
        control_socket,
        peer_socket,
        plugin_dir,
        cache_dir,
        cache_size,
        data_dir,
        trusted_keys,
        memory_budget,
        address_space,
        request_timeout,
        trace_one_in,
        trace_spans,
        blocking_threads,
    } = main;
    [
        ("control-socket", Some(quoted(control_socket.display()))),
        ("peer-socket", peer_socket.as_ref().map(|socket| quoted(socket.display()))),
        ("plugin-dir", plugin_dir.as_ref().map(|dir| quoted(dir.display()))),
        ("cache-dir", cache_dir.as_ref().map(|dir| quoted(dir.display()))),
        ("cache-size", Some(bytes(*cache_size))),
        ("data-dir", data_dir.as_ref().map(|dir| quoted(dir.display()))),
        ("trusted-keys", list(trusted_keys.iter().map(quoted))),
        ("memory-budget", memory_budget.map(bytes)),
        ("address-space", Some(quoted(address_space.name()))),
        ("request-timeout", Some(quoted(humantime::format_duration(*request_timeout)))),
        ("trace-one-in", Some(trace_one_in.to_string())),
        ("trace-spans", Some(trace_spans.to_string())),
        ("blocking-threads", Some(blocking_threads.to_string())),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key.to_owned(), (value?, None))))
    .collect()
}

fn keys<'m, K: Ord, V>(one: &'m BTreeMap<K, V>, other: &'m BTreeMap<K, V>) -> BTreeSet<&'m K> {
    one.keys().chain(other.keys()).collect()
}

fn quoted(text: impl Display) -> String {
    format!("\"{}\"", harmless(text, usize::MAX))
}

fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
}

fn shown_source(source: &ComponentSource) -> String {
    match source {
        ComponentSource::Path(path) => quoted(path.display()),
        ComponentSource::Bytes(component) => format!("{} in memory", bytes(component.len() as u64)),
    }
}

fn subscription(SubscribeGrant { topic, policy, messages, bytes: size }: &SubscribeGrant) -> String {
    let messages = messages.map(|messages| format!(", messages = {messages}")).unwrap_or_default();
    let size = size.map(|size| format!(", bytes = {}", quoted(bytes(size)))).unwrap_or_default();
    format!("{{ topic = {}, policy = {}{messages}{size} }}", quoted(topic), quoted(policy))
}

fn store(StoreGrant { name, mode }: &StoreGrant) -> String {
    match mode {
        DirMode::Rw => quoted(name),
        DirMode::Ro => format!("{{ name = {}, mode = \"ro\" }}", quoted(name)),
    }
}

fn directory(DirGrant { host, guest, mode, max_bytes, max_files }: &DirGrant) -> String {
    let mode = match mode {
        DirMode::Ro => "ro",
        DirMode::Rw => "rw",
    };
    let max_bytes = max_bytes.map(|max| format!(", max-bytes = {}", quoted(bytes(max)))).unwrap_or_default();
    let max_files = max_files.map(|max| format!(", max-files = {max}")).unwrap_or_default();
    let (host, guest) = (quoted(host.display()), quoted(guest));
    format!("{{ host = {host}, guest = {guest}, mode = \"{mode}\"{max_bytes}{max_files} }}")
}

fn http(HttpGrant { to, methods, addresses }: &HttpGrant) -> String {
    let methods = list(methods.iter().map(quoted)).unwrap_or_else(|| "[]".to_owned());
    let addresses = list(addresses.iter().map(quoted));
    let addresses = addresses.map(|list| format!(", addresses = {list}")).unwrap_or_default();
    format!("{{ to = {}, methods = {methods}{addresses} }}", quoted(to))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tests::parse_in;

    fn only(text: &str) -> ExtensionConfig {
        let text = format!("[[extension]]\nid = \"a\"\npath = \"a.wasm\"\n{text}");
        parse_in(&text, Path::new("/etc/weir")).unwrap().extensions.remove(0)
    }

    fn shown(differences: &[Difference]) -> Vec<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        differences
            .iter()
            .map(|it| format!("{}: {} -> {}", it.key, text(&it.before), text(&it.after)))
            .collect()
    }

    #[test]
    fn each_key_that_differs_is_shown_as_a_file_has_it() {
        let before =
            only("limits.memory = \"2 MiB\"\nwants = [\"b@1\"]\ngrants.env = { KEY = \"old\", OLD = \"1\" }");
        let after = only(
            r#"
            wants = ["b@1", "c@1"]
            subscribes = [{ topic = "x.>", messages = 3, bytes = "1 KiB" }]
            grants.env = { KEY = "new" }
            grants.dirs = [{ host = "/srv", guest = "/data", mode = "rw" }]
            config.color = "red"
            config.key = { from-credential = "key" }
            config.token = { from-file = "token" }
            restart = { policy = "never" }
            "#,
        );
        assert_eq!(
            shown(&before.differences(&after)),
            [
                "config.color:  -> \"red\"",
                "config.key:  -> { from-credential = \"key\" }",
                "config.token:  -> { from-file = \"/etc/weir/token\" }",
                "grants.dirs:  -> [{ host = \"/srv\", guest = \"/data\", mode = \"rw\" }]",
                "grants.env.KEY: … -> …",
                "grants.env.OLD: … -> ",
                "limits.memory: 2 MiB -> 16 MiB",
                "restart.policy: \"on-failure\" -> \"never\"",
                "subscribes:  -> [{ topic = \"x.>\", policy = \"drop-oldest\", messages = 3, bytes = \"1 KiB\" }]",
                "wants: [\"b@1\"] -> [\"b@1\", \"c@1\"]",
            ]
        );
        assert!(before.differences(&before).is_empty());
    }

    #[test]
    fn each_key_of_a_peer_that_differs_is_shown_as_a_file_has_it() {
        let [before, after] =
            ["uid = 5\nwants = ['b@1/get']\nlimits.request-timeout = '2s'", "limits.sessions = 1"]
                .map(|text| parse_in(&format!("[peer.'app:a']\n{text}"), Path::new("/etc/weir")).unwrap());
        assert_eq!(
            shown(&before.peers[0].differences(&after.peers[0])),
            [
                "limits.request-timeout: 2s -> ",
                "limits.sessions: 8 -> 1",
                "uid: 5 -> ",
                "wants: [\"b@1/get\"] -> "
            ]
        );
        assert!(before.peers[0].differences(&before.peers[0]).is_empty());
    }

    #[test]
    fn tables_beside_extensions_that_differ_are_named() {
        let [before, after] = [
            "[queue.a]\nmessages = 1\n[queue.b]\n[topic.\"x.y\"]\nretain = true\n\
             [peer.'app:a']\nuid = 1\n[peer.'app:b']\n[peer.'app:c']",
            "[queue.a]\nmessages = 2\n[queue.b]\n[queue.c]\n[peer.'app:b']\n[peer.'app:a']\nuid = 2",
        ]
        .map(|text| parse_in(text, Path::new("/etc/weir")).unwrap());
        assert_eq!(
            before.beside_extensions().other_tables(&after),
            ["queue.a", "queue.c", "topic.\"x.y\"", "peer.\"app:a\"", "peer.\"app:c\""]
        );
    }
}
