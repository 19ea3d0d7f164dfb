//! What an extension may reach by HTTP: targets, methods and kinds of addresses.
//!
//! Knows nothing of requests and connections: the sender compares them with these values.

use std::{fmt, net::IpAddr, str::FromStr};

use super::{GrantError, parse_host, split_port};
use crate::{
    key::Table,
    keys,
    kind::{some_texts, text, texts},
};

const TARGET: &str = "a URL, as in `https://api.example.com/v1`";
const METHOD: &str = "a method, as in `GET`";
const ADDRESSES: &str = "`loopback`, `link-local`, `private`, `shared`, or addresses as in `192.168.7.0/24`";

/// The longest path of a target, in bytes.
const PATH_MAX: usize = 1024;

/// Requests that an extension may send by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGrant {
    /// Where they may go.
    pub to: HttpTarget,
    /// Their methods.
    pub methods: Vec<HttpMethod>,
    /// Addresses that the name may have besides public ones.
    pub addresses: Vec<AddressGrant>,
}

/// A scheme, a host, a port, and the beginning of a path. As text: a URL such as `https://api.example.com/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpTarget {
    /// Whether requests go over TLS: `https`.
    pub is_tls: bool,
    /// An IP address without brackets, or a lowercase name. `*.` before a name stands for one label of any text.
    pub host: String,
    /// The port, not zero.
    pub port: u16,
    /// `/`, or a path without a slash at its end: it covers itself and what is below.
    pub path: String,
}

/// The method of a request, as in `GET`: 1 to 32 uppercase letters and `-`, but not `CONNECT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpMethod(String);

/// Addresses that are not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressGrant {
    /// The device itself: 127.0.0.0/8 and ::1.
    Loopback,
    /// The device's own link: 169.254.0.0/16 and fe80::/10.
    LinkLocal,
    /// Networks of a site: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and fc00::/7.
    Private,
    /// Networks of a provider behind its address translation: 100.64.0.0/10.
    Shared,
    /// The addresses of this range.
    Range(AddressRange),
}

/// Addresses that begin with the same bits, as in `192.168.7.0/24`; a single one without a slash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

impl HttpGrant {
    /// A grant to read: `GET` and `HEAD`, from public addresses.
    #[must_use]
    pub fn new(to: HttpTarget) -> Self {
        Self { to, methods: HttpMethod::reading(), addresses: Vec::new() }
    }

    /// A grant whose target is still to be read.
    pub(super) fn blank() -> Option<Self> {
        let to = HttpTarget { is_tls: false, host: String::new(), port: 0, path: String::new() };
        Some(Self::new(to))
    }
}

impl Table for HttpGrant {
    keys! {
        HttpGrant;
        /// Scheme, host, port and the beginning of the path. `*.` before a name of two labels or more stands for one
        /// label.
        "to" to = text(TARGET, str::parse), required(TARGET);
        /// Methods, in capitals. `CONNECT` cannot be granted.
        "methods" methods = some_texts(METHOD, str::parse);
        /// Addresses that the name may have besides public ones. An address in `to` names itself.
        "addresses" addresses = texts(ADDRESSES, str::parse);
    }
}

impl HttpMethod {
    /// `GET` and `HEAD`.
    pub(crate) fn reading() -> Vec<Self> {
        ["GET", "HEAD"].map(|method| Self(method.to_owned())).into()
    }

    /// The method as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HttpMethod {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let is_token = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        match (1..=32).contains(&text.len()) && is_token && text != "CONNECT" {
            true => Ok(Self(text.to_owned())),
            false => {
                Err(GrantError::new(text, "a method in capitals, as in `GET`; `CONNECT` cannot be granted"))
            }
        }
    }
}

impl fmt::Display for HttpMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HttpTarget {
    /// The target's host as an address. `None` if it is a name.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// The port of a URL that names none.
    #[must_use]
    pub const fn default_port(is_tls: bool) -> u16 {
        if is_tls { 443 } else { 80 }
    }
}

impl FromStr for HttpTarget {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let parse = || {
            let (scheme, rest) = text.split_once("://")?;
            let is_tls = match scheme {
                "https" => true,
                "http" => false,
                _ => return None,
            };
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (host, port) = split_port(authority, Some(Self::default_port(is_tls)))?;
            let host = match host.strip_prefix("*.") {
                Some(name) => format!("*.{}", parse_host(name).filter(|name| is_below_a_top_level(name))?),
                None => parse_host(host)?,
            };
            Some(Self { is_tls, host, port, path: parse_path(path)? })
        };
        parse().ok_or_else(|| {
            GrantError::new(
                text,
                "a URL of `https` or `http` without a query, as in `https://api.example.com/v1`",
            )
        })
    }
}

/// Whether a wildcard may stand before the name. `*.com` would be half of the world, and `*.1.2.3` is no name.
fn is_below_a_top_level(name: &str) -> bool {
    name.contains('.') && name.parse::<IpAddr>().is_err()
}

/// Reads a path, which must be so plain that all servers agree on its meaning.
pub(crate) fn parse_path(text: &str) -> Option<String> {
    let path = text.strip_suffix('/').unwrap_or(text);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte);
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_plain);
    match path.strip_prefix('/') {
        None if path.is_empty() => Some("/".to_owned()),
        Some(rest) if path.len() <= PATH_MAX && rest.split('/').all(is_segment) => Some(path.to_owned()),
        _ => None,
    }
}

impl fmt::Display for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_tls, host, port, path } = self;
        f.write_str(if *is_tls { "https://" } else { "http://" })?;
        match host.contains(':') {
            true => write!(f, "[{host}]")?,
            false => f.write_str(host)?,
        }
        if *port != Self::default_port(*is_tls) {
            write!(f, ":{port}")?;
        }
        if path == "/" { Ok(()) } else { f.write_str(path) }
    }
}

impl FromStr for AddressGrant {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        Ok(match text {
            "loopback" => Self::Loopback,
            "link-local" => Self::LinkLocal,
            "private" => Self::Private,
            "shared" => Self::Shared,
            _ => Self::Range(AddressRange::parse(text).ok_or_else(|| GrantError::new(text, ADDRESSES))?),
        })
    }
}

impl fmt::Display for AddressGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::LinkLocal => f.write_str("link-local"),
            Self::Private => f.write_str("private"),
            Self::Shared => f.write_str("shared"),
            Self::Range(range) => fmt::Debug::fmt(range, f),
        }
    }
}

/// Writes the range as a file has it.
impl fmt::Debug for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, prefix } = self;
        if *prefix == bits(address) { write!(f, "{address}") } else { write!(f, "{address}/{prefix}") }
    }
}

impl AddressRange {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            None => (text, None),
            Some((address, prefix)) => {
                let is_number = (1..=3).contains(&prefix.len()) && prefix.bytes().all(|b| b.is_ascii_digit());
                (address, Some(is_number.then(|| prefix.parse::<u8>().ok())??))
            }
        };
        let address: IpAddr = address.parse().ok()?;
        let prefix = prefix.unwrap_or(bits(&address));
        let range = Self { address, prefix };
        // Bits that are set after the prefix are a mistake.
        let is_whole =
            prefix <= bits(&address) && range.contains(address) && range.masked(address) == number(address);
        is_whole.then_some(range)
    }

    /// Whether the address is in the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && self.masked(address) == self.masked(self.address)
    }

    fn masked(&self, address: IpAddr) -> u128 {
        let rest = u32::from(bits(&address).saturating_sub(self.prefix));
        number(address).checked_shr(rest).unwrap_or_default().checked_shl(rest).unwrap_or_default()
    }
}

const fn bits(address: &IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_plain_url() {
        for (text, shown) in [
            ("https://api.example.com", "https://api.example.com"),
            ("https://API.example.com:443/", "https://api.example.com"),
            ("http://example.com:8080/v1/", "http://example.com:8080/v1"),
            ("https://*.example.com/a/b", "https://*.example.com/a/b"),
            ("http://127.0.0.1:1", "http://127.0.0.1:1"),
            ("http://[::1]", "http://[::1]"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ] {
            assert_eq!(text.parse::<HttpTarget>().unwrap().to_string(), shown, "{text}");
        }
        for text in [
            "",
            "api.example.com",
            "ftp://a.b",
            "HTTPS://a.b",
            "https://",
            "https://user@a.b",
            "https://a.b:0",
            "https://a.b:65536",
            "https://a.b:+1",
            "https://a.b:",
            "https://a.b?q",
            "https://a.b/c?q",
            "https://a.b/c#d",
            "https://a.b/../c",
            "https://a.b//c",
            "https://a.b/%2e",
            "https://a.b/c;d",
            "https://a.b.",
            "https://*.com",
            "https://*",
            "https://*.*.b.c",
            "https://a*.b.c",
            "https://*.127.0.0.1",
            "http://2130706433",
            "http://0x7f.1",
            "http://127.1",
            "http://::1",
            "http://[::1",
            "http://[::1]x",
        ] {
            assert!(text.parse::<HttpTarget>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_has_no_bits_after_its_prefix() {
        for text in ["192.168.7.0/24", "192.168.7.1", "fc00::/7", "0.0.0.0/0", "::/0", "::1", "loopback"] {
            assert_eq!(text.parse::<AddressGrant>().unwrap().to_string(), text);
        }
        for text in
            ["192.168.7.1/24", "192.168.7.0/33", "::/129", "1.2.3.4/", "1.2.3.4/+8", "Loopback", "1.2"]
        {
            assert!(text.parse::<AddressGrant>().is_err(), "{text}");
        }
        let range = AddressRange::parse("10.8.0.0/13").unwrap();
        assert!(range.contains("10.15.255.255".parse().unwrap()));
        assert!(!range.contains("10.16.0.0".parse().unwrap()));
        assert!(!range.contains("::ffff:10.8.0.1".parse().unwrap()));
        assert!(AddressRange::parse("::/0").unwrap().contains("::1".parse().unwrap()));
        assert!(!AddressRange::parse("::/0").unwrap().contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_method_is_in_capitals() {
        for text in ["GET", "M-SEARCH", "PROPFIND"] {
            assert_eq!(text.parse::<HttpMethod>().unwrap().as_str(), text);
        }
        for text in ["", "get", "CONNECT", "GET ", "*"] {
            assert!(text.parse::<HttpMethod>().is_err(), "{text}");
        }
    }
}
