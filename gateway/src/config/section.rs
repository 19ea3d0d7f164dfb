//! The keys of the table `[gateway]`, and its part in the checks of a configuration.

use std::collections::BTreeMap;

use weir_host::{
    config::{
        ConfigError,
        extend::{ConfigSection, Facts, Judged, Located, Location, Section, Settling, quote},
    },
    names::{PeerName, Topic},
};

use super::{
    ADDRESSES_MAX, Alias, BUFFER, CONNECTIONS, GatewayConfig, HOST, HOSTS_MAX, Listen, ORIGINS_MAX, Origin,
    PING_INTERVAL, TlsConfig, WhenSlow,
    alias::{self, CALL},
    check, host,
    listen::ADDRESS,
    origin::ORIGIN,
};

const FILE: &str = "the path of a file in PEM";
const TOPIC: &str = "a topic, as in `device.name.changed`";
const WHEN_SLOW: &str = "`drop-oldest`, `latest` or `close`";

/// A table of one file.
#[derive(Debug)]
pub struct GatewayDraft {
    config: GatewayConfig,
    table: Location,
    locations: GatewayLocations,
}

/// Places of values that are checked together. Empty for a configuration made in Rust.
#[derive(Debug, Default)]
pub struct GatewayLocations {
    pub(super) listen: Vec<Location>,
    pub(super) hosts: Vec<Location>,
    pub(super) tls: Option<Location>,
    pub(super) origins: BTreeMap<PeerName, OriginLocations>,
    pub(super) streams: Vec<Location>,
}

#[derive(Debug)]
pub(super) struct OriginLocations {
    pub(super) name: Location,
    pub(super) origins: Vec<Location>,
}

impl ConfigSection for GatewayConfig {
    const TABLE: &'static str = "gateway";
    const NEEDS_RESTART: bool = true;
    type Draft = Vec<GatewayDraft>;
    type Locations = GatewayLocations;

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        draft.extend(file.optional_table(Self::TABLE, gateway));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations) {
        let mut tables = draft.into_iter();
        let Some(first) = tables.next() else { return Default::default() };
        for second in tables {
            let error =
                ConfigError::new(Self::TABLE, "`gateway` is defined in two files", Some(second.table));
            settling.error(error.note(Some(first.table.clone()), "first defined here"));
        }
        (first.config, first.locations)
    }

    fn check_values(&self) -> Vec<ConfigError> {
        check::values(self)
    }

    fn check(&self, judged: &Judged<'_>, at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        check::tls(self, at, cfg!(feature = "tls"), errors);
        check::addresses(self, &judged.config().main, at, errors);
        check::doubles_in(self, at, errors);
    }

    fn check_names(&self, judged: &Judged<'_>, at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        check::peers(self, judged.config(), at, errors);
    }

    fn lets_peers_in(&self) -> bool {
        self.is_configured()
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        if self.is_empty() {
            return BTreeMap::new();
        }
        BTreeMap::from([(Self::TABLE.to_owned(), facts(self))])
    }
}

fn facts(config: &GatewayConfig) -> Facts {
    let GatewayConfig {
        listen,
        hosts,
        connections,
        buffer,
        when_slow,
        ping_interval,
        tls,
        origins,
        aliases,
        streams,
    } = config;
    let mut facts = Facts::default();
    facts.texts("listen", listen);
    facts.texts("hosts", hosts);
    facts.plain("connections", Some(connections));
    facts.size("buffer", Some(*buffer));
    let when_slow = match when_slow {
        WhenSlow::DropOldest => "drop-oldest",
        WhenSlow::Latest => "latest",
        WhenSlow::Close => "close",
    };
    facts.text("when-slow", Some(when_slow));
    facts.time("ping-interval", *ping_interval);
    if let Some(TlsConfig { certificate, key }) = tls {
        facts.text("tls.certificate", Some(certificate.display()));
        facts.text("tls.key", Some(key.display()));
    }
    for (name, pages) in origins {
        facts.texts(&format!("origins.\"{name}\""), pages);
    }
    for (name, alias) in aliases {
        facts.plain(&format!("alias.{name:?}"), Some(alias));
    }
    facts.texts("streams.listen", streams);
    facts
}

fn gateway(section: &mut Section<'_, '_>) -> GatewayDraft {
    let listen = addresses(section, "gateway.listen");
    let mut hosts = section.texts("hosts", HOST, host);
    at_most(section, "gateway.hosts", "hosts", &mut hosts, HOSTS_MAX);
    let connections = section.count("connections", CONNECTIONS);
    let buffer = section.number("buffer", &BUFFER);
    let when_slow = section.text("when-slow", WHEN_SLOW, when_slow);
    let ping_interval = section.time("ping-interval", PING_INTERVAL);
    let tls = section.optional_table("tls", tls);
    let (origins, origins_at) = origins(section);
    let aliases = aliases(section);
    let streams = section.optional_table("streams", |streams| {
        streams.require("listen", "a list of addresses");
        addresses(streams, "gateway.streams.listen").unwrap_or_default()
    });
    if listen.is_none() && streams.is_none() {
        let message = "`gateway` listens nowhere: set `listen`, or `listen` in `[gateway.streams]`";
        section.error("gateway", message.to_owned(), section.location());
    }

    let new = GatewayConfig::default();
    let (listen, listen_at) = split(listen.unwrap_or_default());
    let (hosts, hosts_at) = split(hosts);
    let (tls, tls_at) = tls.unzip();
    let (streams, streams_at) = split(streams.unwrap_or_default());
    let config = GatewayConfig {
        listen,
        hosts,
        connections: connections.map_or(new.connections, Located::into_value),
        buffer: buffer.map_or(new.buffer, Located::into_value),
        when_slow: when_slow.map_or(new.when_slow, Located::into_value),
        ping_interval: ping_interval.map(Located::into_value),
        tls,
        origins,
        aliases,
        streams,
    };
    let locations = GatewayLocations {
        listen: listen_at,
        hosts: hosts_at,
        tls: tls_at,
        origins: origins_at,
        streams: streams_at,
    };
    GatewayDraft { config, table: section.location(), locations }
}

fn addresses(section: &mut Section<'_, '_>, path: &str) -> Option<Vec<Located<Listen>>> {
    let dir = section.dir().to_owned();
    let mut listen = section.some_texts("listen", ADDRESS, |text| Listen::parse_in(&dir, text))?;
    at_most(section, path, "addresses", &mut listen, ADDRESSES_MAX);
    Some(listen)
}

fn when_slow(text: &str) -> Result<WhenSlow, String> {
    match text {
        "drop-oldest" => Ok(WhenSlow::DropOldest),
        "latest" => Ok(WhenSlow::Latest),
        "close" => Ok(WhenSlow::Close),
        _ => Err(format!("{} is not a policy: {WHEN_SLOW}", quote(text))),
    }
}

/// Missing files are reported, so the values in their place are never used.
fn tls(section: &mut Section<'_, '_>) -> (TlsConfig, Location) {
    section.require("certificate", FILE);
    section.require("key", FILE);
    let [certificate, key] = ["certificate", "key"]
        .map(|key| section.path(key, FILE).map(Located::into_value).unwrap_or_default());
    (TlsConfig { certificate, key }, section.location())
}

fn origins(
    section: &mut Section<'_, '_>,
) -> (BTreeMap<PeerName, Vec<Origin>>, BTreeMap<PeerName, OriginLocations>) {
    let (mut origins, mut locations) = (BTreeMap::new(), BTreeMap::new());
    for (name, mut found) in section.named_texts("origins", ORIGIN, str::parse::<Origin>) {
        let Located { value: text, location } = name;
        match text.parse::<PeerName>() {
            Ok(name) => {
                let path = format!("gateway.origins.\"{name}\"");
                at_most(section, &path, "origins", &mut found, ORIGINS_MAX);
                let (values, places) = split(found);
                origins.insert(name.clone(), values);
                locations.insert(name, OriginLocations { name: location, origins: places });
            }
            Err(error) => {
                section.error("gateway.origins", format!("in `gateway.origins`: {error}"), location)
            }
        }
    }
    (origins, locations)
}

fn aliases(section: &mut Section<'_, '_>) -> BTreeMap<String, Alias> {
    let found = section.named_texts_and_tables("alias", CALL, alias::call, |topic| {
        topic.explain_unknown("the key there is `topic`, and an alias with dots needs quotes");
        if topic.is_empty() {
            topic.require("topic", TOPIC);
        }
        topic.text("topic", TOPIC, str::parse::<Topic>).map(|at| Alias::Topic(at.value))
    });
    let mut aliases = BTreeMap::new();
    for (name, alias) in found {
        match alias::name_fault(&name.value) {
            None => drop(aliases.insert(name.value, alias)),
            Some(fault) => {
                section.error("gateway.alias", format!("in `gateway.alias`: {fault}"), name.location);
            }
        }
    }
    aliases
}

/// Reports the first item over the bound, and leaves out the rest.
fn at_most<T>(
    section: &mut Section<'_, '_>,
    path: &str,
    what: &str,
    items: &mut Vec<Located<T>>,
    max: usize,
) {
    if let Some(first) = items.get(max) {
        let message = format!("`{path}` lists {} {what}, but at most {max} are possible", items.len());
        section.error(path, message, first.location.clone());
    }
    items.truncate(max);
}

fn split<T>(items: Vec<Located<T>>) -> (Vec<T>, Vec<Location>) {
    items.into_iter().map(|item| (item.value, item.location)).unzip()
}
