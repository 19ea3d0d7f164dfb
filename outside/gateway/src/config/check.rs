//! Checks of the gateway's values, between them, and between them and the rest of a configuration.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use weir_host::{
    Config,
    config::{
        ConfigError, NetGrant,
        extend::{Location, Places, doubles, doubles_in, faults, is_inside, quote, shown, suggestion},
    },
    names::{ExtensionId, PeerName},
};

use super::{GatewayConfig, Listen, ORIGINS_MAX, alias::name_fault, host};
use crate::hub;

/// Faulty values of a configuration that was made in Rust: those of a file are checked as they are read.
pub(super) fn values(config: &GatewayConfig) -> Vec<ConfigError> {
    if *config == GatewayConfig::default() {
        return Vec::new();
    }
    let mut errors = faults(config, "gateway");
    let mut add = |key: &str, message: String| errors.push(ConfigError::new(key, message, None));
    if !config.is_configured() {
        add("gateway", "`gateway` listens nowhere: set `listen` or `streams`".to_owned());
    }
    let origins = config.origins.iter().filter(|(_, origins)| !(1..=ORIGINS_MAX).contains(&origins.len()));
    for key in origins.map(|(peer, _)| path_of_origins(peer)) {
        add(&key, format!("`{key}` must be a list of 1 to {ORIGINS_MAX}"));
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

/// Adds the faults that concern TLS. `has_tls` says whether this build can encrypt.
pub(super) fn tls(config: &GatewayConfig, at: &Places, has_tls: bool, errors: &mut Vec<ConfigError>) {
    if config.tls.is_some() {
        if !has_tls {
            let message = "`gateway.tls` cannot be used: this build has no TLS";
            errors.push(ConfigError::new("gateway.tls", message, at.of("tls")));
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

/// Adds an error for each address that is listed twice, or is a socket of Main's own or of a server.
pub(super) fn addresses(config: &GatewayConfig, whole: &Config, at: &Places, errors: &mut Vec<ConfigError>) {
    let of_main = whole.main.sockets().map(|(key, socket)| (key.to_owned(), socket));
    let of_servers = whole.extensions.iter().filter_map(|extension| {
        let socket = extension.serves_http.as_ref()?.socket.as_deref()?;
        Some((format!("extension[{}].serves-http.socket", extension.id), socket))
    });
    let own: Vec<_> = of_main.chain(of_servers).collect();
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
        if let Listen::Unix(path) = address
            && let Some((own_key, _)) = own.iter().find(|(_, socket)| is_same_path(path, socket))
        {
            let message = format!("in `{key}`: {} is `{own_key}`: give each its own path", shown(path));
            errors.push(ConfigError::new(key, message, location.clone()));
        }
        if let Listen::Tcp(tcp) = address
            && let Some(id) = listening(whole, *tcp)
        {
            let message =
                format!("in `{key}`: `extension[{id}].grants.net` lets `{id}` listen at `{address}`, too");
            errors.push(ConfigError::new(key, message, location.clone()));
        }
        seen.push((key, address, location));
    }
}

/// The extension that may listen at an address of the gateway, whose `[::]` stands for IPv4, too.
fn listening(whole: &Config, address: SocketAddr) -> Option<&ExtensionId> {
    let is_its = |grant: &NetGrant| {
        let is_within = |ip: IpAddr| {
            address.ip().is_unspecified()
                && address.port() == grant.address.port
                && grant.listen
                && (address.is_ipv6() || ip.is_ipv4())
        };
        !grant.udp && (grant.listens_at(address) || grant.address.ip().is_some_and(is_within))
    };
    whole
        .extensions
        .iter()
        .find(|extension| extension.grants.net.iter().any(is_its))
        .map(|extension| &extension.id)
}

/// Adds an error for each host or origin that is listed twice.
pub(super) fn repeated(config: &GatewayConfig, at: &Places, errors: &mut Vec<ConfigError>) {
    errors.extend(doubles("gateway", "hosts", &config.hosts, Some(at)));
    for (index, (peer, origins)) in config.origins.iter().enumerate() {
        errors.extend(doubles_in(&path_of_origins(peer), origins, at.item("origins", index)));
    }
}

/// Adds an error for origins of peers that do not exist, and for a peer with the name of the gateway's own session.
pub(super) fn peers(config: &GatewayConfig, whole: &Config, at: &Places, errors: &mut Vec<ConfigError>) {
    if whole.peers.iter().any(|peer| peer.name.as_str() == hub::NAME) {
        let message = format!("`{}` is the name of the gateway's own session: choose another", hub::NAME);
        errors.push(ConfigError::new(format!("peer.\"{}\"", hub::NAME), message, None));
    }
    let known: BTreeSet<&str> = whole.peers.iter().map(|peer| peer.name.as_str()).collect();
    let unknown = config.origins.keys().enumerate().filter(|(_, peer)| !known.contains(peer.as_str()));
    for (index, peer) in unknown {
        let otherwise = format!("add it, as `[peer.\"{peer}\"]`");
        let help = suggestion(peer.as_str(), known.iter().copied(), errors, otherwise);
        let message = format!("`gateway.origins` names the peer `{peer}`, but there is no such peer: {help}");
        let location = at.of_item("origins", index);
        errors.push(ConfigError::new("gateway.origins", message, location));
    }
}

pub(super) fn path_of_origins(peer: &PeerName) -> String {
    format!("gateway.origins.\"{peer}\"")
}

fn all_addresses(config: &GatewayConfig) -> impl Iterator<Item = (&'static str, &Listen)> {
    let listen = config.listen.iter().map(|address| ("gateway.listen", address));
    listen.chain(config.streams.iter().map(|address| ("gateway.streams.listen", address)))
}

/// All addresses with their keys and places.
fn located<'c>(
    config: &'c GatewayConfig,
    at: &'c Places,
) -> impl Iterator<Item = (&'static str, &'c Listen, Option<Location>)> {
    let places = |key, count| (0..count).map(move |item| at.of_item(key, item));
    let places = places("listen", config.listen.len()).chain(places("streams.listen", config.streams.len()));
    all_addresses(config).zip(places).map(|((key, address), location)| (key, address, location))
}

fn is_same(one: &Listen, other: &Listen) -> bool {
    match (one, other) {
        // With port 0 each listener gets a port of its own.
        (Listen::Tcp(one), Listen::Tcp(other)) => one == other && one.port() != 0,
        (Listen::Unix(one), Listen::Unix(other)) => is_same_path(one, other),
        _ => false,
    }
}

/// Compares the paths by their text, with `.` and `..` resolved. Symbolic links are not followed.
fn is_same_path(one: &Path, other: &Path) -> bool {
    is_inside(one, other) && is_inside(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TlsConfig;

    fn messages(config: &GatewayConfig, has_tls: bool) -> Vec<String> {
        let mut errors = Vec::new();
        tls(config, &Places::default(), has_tls, &mut errors);
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
