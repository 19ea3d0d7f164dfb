//! The configuration of the gateway: the table `[gateway]` of the operator's file.
//!
//! Owns the keys, their ranges and defaults, and the checks. Knows nothing of sockets and connections.

mod alias;
mod check;
mod listen;
mod origin;
mod section;

use std::{collections::BTreeMap, net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use weir_host::{
    config::{
        Shape,
        extend::{
            Key, Table,
            kind::{number, optional_table, path, texts, word},
            parse_host, quote,
        },
        keys, words,
    },
    names::PeerName,
};

use self::section::{addresses, aliases, origins};
pub use self::{
    alias::Alias,
    listen::{Listen, ListenError},
    origin::{Origin, OriginError},
};

const ADDRESSES_MAX: usize = 8;
const HOSTS_MAX: usize = 32;
/// Most origins of one peer.
const ORIGINS_MAX: usize = 32;

const CONNECTIONS: RangeInclusive<u32> = 1..=65_536;

/// The range of [`GatewayConfig::buffer`]: 4 KiB to 64 MiB.
const BUFFER: Shape = Shape::Size(4 << 10..=64 << 20);

/// The range of [`GatewayConfig::ping_interval`]: 1 second to 1 day.
const PING_INTERVAL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);

const FILE: &str = "the path of a file in PEM";
const HOST: &str = "a DNS name or an IP address without a port, as in `device.local`";

/// The gateway of a [`Config`](weir_host::Config).
///
/// The default listens nowhere, so there is no gateway. A change takes effect when Main is started anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// Addresses for HTTP and WebSocket: at most 8. An address that other machines reach needs [`tls`](Self::tls).
    pub listen: Vec<Listen>,
    /// Names that the `Host` of a request may have beside `localhost` and the addresses: DNS names in lowercase, and IP
    /// addresses without brackets. At most 32.
    pub hosts: Vec<String>,
    /// Open connections of all listeners together: 1 to 65,536. Default: 1024.
    pub connections: u32,
    /// Events that may wait for one connection, in bytes: 4 KiB to 64 MiB. Each event counts 256 bytes beside its own,
    /// and an event that is larger than the buffer waits alone. Default: 256 KiB.
    pub buffer: u64,
    /// What happens to events that find no room. Default: [`WhenSlow::DropOldest`].
    pub when_slow: WhenSlow,
    /// The time between two pings of a WebSocket: 1 second to 1 day. `None`: no pings.
    pub ping_interval: Option<Duration>,
    /// The certificate of listeners that other machines reach. Needs the cargo feature `tls`.
    pub tls: Option<TlsConfig>,
    /// Pages that may log in as a peer: 1 to 32 origins for each.
    pub origins: BTreeMap<PeerName, Vec<Origin>>,
    /// The operator's own names of methods: 1 to 128 printable ASCII characters without space or `/`. They do not begin
    /// with `rpc.`, and no method that is built in has them.
    pub aliases: BTreeMap<String, Alias>,
    /// Addresses for plain streams: at most 8. An address that other machines reach needs [`tls`](Self::tls).
    pub streams: Vec<Listen>,
}

/// What happens to events that find no room in [`GatewayConfig::buffer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenSlow {
    /// The oldest event is lost and counted.
    #[default]
    DropOldest,
    /// Only the last event of each topic waits. If those find no room either, the oldest is lost and counted.
    Latest,
    /// The connection is closed. Only of the retained values that a new subscription brings, the oldest are lost
    /// instead.
    Close,
}

/// The certificate of the gateway, and its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// A file with the chain of certificates in PEM.
    pub certificate: PathBuf,
    /// A file with the private key in PEM.
    pub key: PathBuf,
}

impl GatewayConfig {
    /// Whether the gateway listens anywhere.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !self.listen.is_empty() || !self.streams.is_empty()
    }
}

words!(WhenSlow, "a policy: ": "drop-oldest" = DropOldest, "latest" = Latest, "close" = Close);

impl Table for GatewayConfig {
    keys! {
        GatewayConfig;
        /// Where it listens for HTTP and WebSocket: 1 to 8 addresses. An address that is not of the loopback interface
        /// needs `[gateway.tls]`. A path has at most 107 bytes, and is neither `main.control-socket` nor
        /// `main.peer-socket`. At least one of `gateway.listen` and `gateway.streams.listen` must be set.
        "listen" listen = addresses();
        /// Names that the `Host` of a request may have, with or without a port, beside `localhost` and the addresses in
        /// `listen`. At most 32.
        "hosts" hosts = texts(HOST, host).at_most(HOSTS_MAX, |count| format!("{count} hosts, but at most {HOSTS_MAX} are possible"));
        /// Open connections of all listeners together.
        "connections" connections = number(Shape::counts(CONNECTIONS));
        /// Bytes of events that may wait for one connection. Each counts 256 beside its own.
        "buffer" buffer = number(BUFFER);
        /// What happens to events that find no room there: the oldest is lost and counted, only the last event of each
        /// topic waits, or the connection is closed.
        "when-slow" when_slow = word();
        /// The time between two pings of a WebSocket. One that has not answered by the next ping is closed.
        "ping-interval" ping_interval = number(Shape::Time(PING_INTERVAL)), default("no pings");
        /// The certificate for addresses that are not of the loopback interface: both keys below.
        "tls" tls = optional_table(), default("no TLS");
        /// For names of peers, the web pages that may log in under the name: 1 to 32 origins for each. The name has a
        /// `[peer."NAME"]`. Browsers send the origin of a page; a request with another origin is refused.
        "origins" origins = origins();
        /// Your own names of methods: 1 to 128 printable ASCII characters without space or `/`. A string is a call, and
        /// a table with the key below is a subscription. A name cannot begin with `rpc.`, or be that of a method that
        /// is built in, such as `events.publish`.
        "alias" aliases = aliases();
        /// Plain streams, for clients that speak no JSON-RPC: the key below.
        "streams" = Key::group(), default("no streams");
        /// Where it listens for them: 1 to 8 addresses, as for `gateway.listen`. No address can be listed twice.
        "streams.listen" streams = addresses(), required("a list of addresses");
    }
}

impl Table for TlsConfig {
    keys! {
        TlsConfig;
        /// The chain of certificates, that of the gateway first.
        "certificate" certificate = path(FILE).not_empty(), required(FILE);
        /// The private key of the certificate.
        "key" key = path(FILE).not_empty(), required(FILE);
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            hosts: Vec::new(),
            connections: 1024,
            buffer: 256 << 10,
            when_slow: WhenSlow::default(),
            ping_interval: None,
            tls: None,
            origins: BTreeMap::new(),
            aliases: BTreeMap::new(),
            streams: Vec::new(),
        }
    }
}

fn host(text: &str) -> Result<String, String> {
    let address = text.parse::<IpAddr>().ok().map(|address| address.to_string());
    address.or_else(|| parse_host(text)).ok_or_else(|| format!("{} is not {HOST}", quote(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_without_a_port() {
        for (text, kept) in [
            ("device.local", "device.local"),
            ("Device-7.Example", "device-7.example"),
            ("192.168.0.2", "192.168.0.2"),
            ("FE80::1", "fe80::1"),
            ("[fe80::1]", "fe80::1"),
        ] {
            assert_eq!(host(text).as_deref(), Ok(kept), "{text}");
        }
        for text in ["", "a:80", "[::1]:80", "1.2.3.256", "*.local", "a..b", "a.", "-a", "ä", "a/b", "[a]"] {
            assert!(host(text).is_err(), "{text}");
        }
    }
}
