//! Checks of the gateway's values, between them, and between them and the rest of a configuration.

use std::{collections::BTreeSet, path::Path};

use weir_host::{
    Config, MainConfig,
    config::{
        ConfigError, Shape,
        extend::{ERRORS_MAX, Location, doubles, is_inside, nearest, quote, shown},
    },
    names::PeerName,
};

use super::{
    ADDRESSES_MAX, BUFFER, CONNECTIONS, GatewayConfig, HOSTS_MAX, Listen, ORIGINS_MAX, PING_INTERVAL,
    alias::name_fault, host, section::GatewayLocations,
};
use crate::hub;

/// Faulty values of a gateway that is made in Rust.
pub(super) fn values(config: &GatewayConfig) -> Vec<ConfigError> {
    if *config == GatewayConfig::default() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let mut add = |key: &str, message: String| errors.push(ConfigError::new(key, message, None));
    if !config.is_configured() {
        add("gateway", "`gateway` listens nowhere: set `listen` or `streams`".to_owned());
    }
    for (key, must_be) in out_of_range(config) {
        add(&key, format!("`{key}` must be {must_be}"));
    }
    for (key, address) in all_addresses(config) {
        if let Some(fault) = address.fault() {
            add(key, format!("in `{key}`: {fault}"));
        }
    }
    for text in &config.hosts {
        match host(text) {
            Ok(known) if known == *text => {}
            Ok(known) => add(
                "gateway.hosts",
                format!("in `gateway.hosts`: {} is written {}", quote(text), quote(&known)),
            ),
            Err(fault) => add("gateway.hosts", format!("in `gateway.hosts`: {fault}")),
        }
    }
    for fault in config.aliases.keys().filter_map(|name| name_fault(name)) {
        add("gateway.alias", format!("in `gateway.alias`: {fault}"));
    }
    errors
}

/// Keys with faulty values, and what they must be.
fn out_of_range(config: &GatewayConfig) -> Vec<(String, String)> {
    let at_most = |items: usize, max: usize| (items <= max, format!("a list of at most {max}"));
    let connections = Shape::counts(CONNECTIONS);
    let ping_interval = config.ping_interval.is_none_or(|interval| PING_INTERVAL.contains(&interval));
    let origins = config.origins.iter().map(|(peer, origins)| {
        let within = (1..=ORIGINS_MAX).contains(&origins.len());
        (path_of_origins(peer), (within, format!("a list of 1 to {ORIGINS_MAX}")))
    });
    let files = config.tls.iter().flat_map(|tls| [("certificate", &tls.certificate), ("key", &tls.key)]);
    let files = files.map(|(key, path)| {
        let bytes = path.as_os_str().as_encoded_bytes();
        let is_path = !bytes.is_empty() && !bytes.contains(&0);
        (format!("gateway.tls.{key}"), (is_path, "a path, not empty and without NUL".to_owned()))
    });
    [
        ("gateway.listen", at_most(config.listen.len(), ADDRESSES_MAX)),
        ("gateway.hosts", at_most(config.hosts.len(), HOSTS_MAX)),
        ("gateway.connections", (connections.has(config.connections.into()), connections.to_string())),
        ("gateway.buffer", (BUFFER.has(config.buffer), BUFFER.to_string())),
        ("gateway.ping-interval", (ping_interval, Shape::Time(PING_INTERVAL).to_string())),
        ("gateway.streams.listen", at_most(config.streams.len(), ADDRESSES_MAX)),
    ]
    .into_iter()
    .map(|(key, judged)| (key.to_owned(), judged))
    .chain(origins)
    .chain(files)
    .filter_map(|(key, (within, must_be))| (!within).then_some((key, must_be)))
    .collect()
}

/// `has_tls`: whether this build can encrypt.
pub(super) fn tls(
    config: &GatewayConfig,
    at: &GatewayLocations,
    has_tls: bool,
    errors: &mut Vec<ConfigError>,
) {
    if config.tls.is_some() {
        if !has_tls {
            let message = "`gateway.tls` cannot be used: this build has no TLS";
            errors.push(ConfigError::new("gateway.tls", message, at.tls.clone()));
        }
        return;
    }
    let remedy = if has_tls { "set `[gateway.tls]`, or" } else { "this build has no TLS, so" };
    for (key, address, location) in located(config, at).filter(|(_, address, _)| !address.is_loopback()) {
        let message = format!(
            "in `{key}`: other machines reach `{address}`: {remedy} listen on a loopback address, as in \
             `127.0.0.1:7410`"
        );
        errors.push(ConfigError::new(key, message, location));
    }
}

/// Addresses that are listed twice, and sockets of Main's own.
pub(super) fn addresses(
    config: &GatewayConfig,
    main: &MainConfig,
    at: &GatewayLocations,
    errors: &mut Vec<ConfigError>,
) {
    let own = [
        ("main.control-socket", Some(&main.control_socket)),
        ("main.peer-socket", main.peer_socket.as_ref()),
    ];
    let mut seen: Vec<(&str, &Listen, Option<Location>)> = Vec::new();
    for (key, address, location) in located(config, at) {
        if let Some((other_key, _, other_at)) = seen.iter().find(|(_, other, _)| is_same(other, address)) {
            let message = match *other_key == key {
                true => format!("`{key}` lists `{address}` twice"),
                false => format!("`{other_key}` and `{key}` both list `{address}`: give each its own"),
            };
            let error = ConfigError::new(key, message, location.clone());
            errors.push(error.note(other_at.clone(), "the other is here"));
        }
        let taken = own.iter().find(|(_, socket)| {
            matches!((address, socket), (Listen::Unix(path), Some(socket)) if is_same_path(path, socket))
        });
        if let (Some((own_key, _)), Listen::Unix(path)) = (taken, address) {
            let message = format!("in `{key}`: {} is `{own_key}`: give each its own path", shown(path));
            errors.push(ConfigError::new(key, message, location.clone()));
        }
        seen.push((key, address, location));
    }
}

/// Hosts and origins that are listed twice.
pub(super) fn doubles_in(config: &GatewayConfig, at: &GatewayLocations, errors: &mut Vec<ConfigError>) {
    errors.extend(doubles("gateway.hosts", &config.hosts, |item| at.hosts.get(item).cloned()));
    for (peer, origins) in &config.origins {
        let at = at.origins.get(peer);
        errors.extend(doubles(&path_of_origins(peer), origins, |item| at?.origins.get(item).cloned()));
    }
}

/// Origins of peers that do not exist, and a peer with the gateway's own name.
pub(super) fn peers(
    config: &GatewayConfig,
    whole: &Config,
    at: &GatewayLocations,
    errors: &mut Vec<ConfigError>,
) {
    if whole.peers.iter().any(|peer| peer.name.as_str() == hub::NAME) {
        let message = format!("`{}` is the name of the gateway's own session: choose another", hub::NAME);
        errors.push(ConfigError::new(format!("peer.\"{}\"", hub::NAME), message, None));
    }
    let known: BTreeSet<&str> = whole.peers.iter().map(|peer| peer.name.as_str()).collect();
    for peer in config.origins.keys().filter(|peer| !known.contains(peer.as_str())) {
        // Comparing all pairs would take minutes in a hostile file, for messages that are never shown.
        let near =
            (errors.len() < ERRORS_MAX).then(|| nearest(peer.as_str(), known.iter().copied())).flatten();
        let help = near.map_or_else(
            || format!("add it, as `[peer.\"{peer}\"]`"),
            |near| format!("did you mean `{near}`?"),
        );
        let message = format!("`gateway.origins` names the peer `{peer}`, but there is no such peer: {help}");
        let location = at.origins.get(peer).map(|at| at.name.clone());
        errors.push(ConfigError::new("gateway.origins", message, location));
    }
}

fn path_of_origins(peer: &PeerName) -> String {
    format!("gateway.origins.\"{peer}\"")
}

fn all_addresses(config: &GatewayConfig) -> impl Iterator<Item = (&'static str, &Listen)> {
    let listen = config.listen.iter().map(|address| ("gateway.listen", address));
    listen.chain(config.streams.iter().map(|address| ("gateway.streams.listen", address)))
}

/// All addresses with their keys and places.
fn located<'c>(
    config: &'c GatewayConfig,
    at: &'c GatewayLocations,
) -> impl Iterator<Item = (&'static str, &'c Listen, Option<Location>)> {
    let places = |items: &'c [Listen], at: &'c [Location]| (0..items.len()).map(|item| at.get(item).cloned());
    let places = places(&config.listen, &at.listen).chain(places(&config.streams, &at.streams));
    all_addresses(config).zip(places).map(|((key, address), location)| (key, address, location))
}

fn is_same(one: &Listen, other: &Listen) -> bool {
    match (one, other) {
        // With port 0 each gets a port of its own.
        (Listen::Tcp(one), Listen::Tcp(other)) => one == other && one.port() != 0,
        (Listen::Unix(one), Listen::Unix(other)) => is_same_path(one, other),
        _ => false,
    }
}

/// Compares the text of the paths, without `.` and `..`.
fn is_same_path(one: &Path, other: &Path) -> bool {
    is_inside(one, other) && is_inside(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TlsConfig;

    fn messages(config: &GatewayConfig, has_tls: bool) -> Vec<String> {
        let mut errors = Vec::new();
        tls(config, &GatewayLocations::default(), has_tls, &mut errors);
        errors.iter().map(|error| error.message().to_owned()).collect()
    }

    #[test]
    fn a_build_without_tls_says_so() {
        let listen = ["127.0.0.1:1", "unix:a", "0.0.0.0:1"].map(|text| text.parse().unwrap()).to_vec();
        let mut config = GatewayConfig { listen, ..GatewayConfig::default() };
        let bare = "in `gateway.listen`: other machines reach `0.0.0.0:1`: this build has no TLS, so listen on a \
                    loopback address, as in `127.0.0.1:7410`";
        assert_eq!(messages(&config, false), [bare]);
        assert!(messages(&config, true)[0].contains("set `[gateway.tls]`, or listen on"));
        config.tls = Some(TlsConfig { certificate: "cert.pem".into(), key: "key.pem".into() });
        assert_eq!(messages(&config, false), ["`gateway.tls` cannot be used: this build has no TLS"]);
        assert_eq!(messages(&config, true), [""; 0]);
    }
}
