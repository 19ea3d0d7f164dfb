//! Access beside channels: directories, environment, network addresses, HTTP and stores.
//!
//! Knows nothing of files, and does not check that granted things exist.

mod http;

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    str::FromStr,
};

use weir_names::{StoreName, harmless};

pub(crate) use self::http::parse_path;
pub use self::http::{AddressGrant, AddressRange, HttpGrant, HttpMethod, HttpTarget};
use super::{
    differences::{Facts, quoted},
    error::{ConfigError, quote},
    key::{Contradiction, Places, Table},
    kind::{Kind, flag, number, path, tables, text, texts_and_tables, word},
    section::Section,
    sections::HOST_DIR,
    shape::Shape,
};
use crate::{keys, words};

const STORE: &str = "the name of a store";
const GUEST_DIR: &str = "an absolute path, as in `/data`";

const ADDRESS: &str = "an address with a port, as in `example.com:443`";

/// The range of `max-bytes`: from one block of 4 KiB to 1 PiB.
const MAX_BYTES: RangeInclusive<u64> = 4 << 10..=1 << 50;

/// The range of `max-files`: from one entry to as many as can be counted in seconds.
const MAX_FILES: RangeInclusive<u64> = 1..=1_000_000;

/// Access that an operator grants. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grants {
    /// Directories.
    pub dirs: Vec<DirGrant>,
    /// All environment variables of the extension. Names are not empty and have no `=`; names and values have no NUL.
    pub env: BTreeMap<String, String>,
    /// Network addresses that it may connect to, or listen at.
    pub net: Vec<NetGrant>,
    /// Requests that it may send by HTTP.
    pub http: Vec<HttpGrant>,
    /// Key-value stores.
    pub stores: Vec<StoreGrant>,
}

impl Table for Grants {
    keys! {
        Grants;
        /// Directories: the keys below, as in `{ host = "/var/lib/weir", guest = "/data", mode = "rw" }`.
        "dirs" dirs = tables(|| Some(DirGrant::read_only("", GuestPath("/".to_owned())))), default("none");
        /// All environment variables that it finds. It sees none of Main's own.
        "env" env = variables(), default("empty");
        /// Addresses that it may use: those that it may connect to by TCP, or tables with the keys below. [Which programs
        /// have sockets](plain-programs.md#sockets).
        "net" net = texts_and_tables(ADDRESS, str::parse, || "[::]:1".parse().ok());
        /// Requests that it may send by HTTP: the keys below, as in `{ to = "https://api.example.com/v1", methods =
        /// ["GET"] }`. [How they are judged](http.md#what-a-grant-allows).
        "http" http = tables(HttpGrant::blank), default("none");
        /// [Stores](#storename) that it may use, by `wasi:keyvalue` or by [`store@1`](store.md#the-contract-store1):
        /// names to read and write, or tables with the keys below.
        "stores" stores = texts_and_tables(
            STORE,
            |text| text.parse::<StoreName>().map(StoreGrant::from),
            || Some(StoreGrant::from("blank".parse::<StoreName>().ok()?)),
        );
    }
}

impl Table for DirGrant {
    keys! {
        DirGrant;
        /// The directory of this machine. With `rw` it cannot overlap with `main.cache-dir`, because files there run
        /// outside the sandbox, nor with the `dir` of a `[hooks.NAME]`, because files there run as hooks, nor with
        /// `main.data-dir` or `main.state-dir`.
        "host" host = path(HOST_DIR), required(HOST_DIR);
        /// Where the extension finds it: at most 255 bytes, without `.` and `..`, and unique.
        "guest" guest = text(GUEST_DIR, str::parse), required(GUEST_DIR);
        /// Whether the extension can only read there, or also write, create and remove.
        "mode" mode = word();
        /// Bytes in the directory, with all directories in it. Each file, directory and symlink counts as its bytes
        /// rounded up to 4 KiB. Only with `mode = "rw"`.
        "max-bytes" max_bytes = number(Shape::Size(MAX_BYTES)), default("no bound");
        /// Files, directories and symlinks in it. Only with `mode = "rw"`.
        "max-files" max_files = number(Shape::Count(MAX_FILES)), default("no bound");
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let bounds = [("max-bytes", self.max_bytes), ("max-files", self.max_files)];
        let idle = bounds.into_iter().filter(|(_, bound)| self.mode == DirMode::Ro && bound.is_some());
        let contradiction = |(key, _)| Contradiction {
            keys: [key, "mode"],
            message: format!("`{key}` bounds writes, which need `mode = \"rw\"`"),
        };
        idle.map(contradiction).collect()
    }
}

impl Table for NetGrant {
    keys! {
        NetGrant;
        /// A name, an IPv4 address or an IPv6 address in brackets, and a port from 1 to 65535, as in `{ address =
        /// "0.0.0.0:7000", listen = true }`.
        "address" address = text(ADDRESS, str::parse), required(ADDRESS);
        /// Whether it listens there, instead of connecting. The address is then an IP address of this machine, where
        /// `0.0.0.0` and `[::]` stand for all of them. It cannot be one of `gateway.listen`.
        "listen" listen = flag();
        /// Whether it sends and receives datagrams, by UDP, instead of using TCP.
        "udp" udp = flag();
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let is_name = self.listen && self.address.ip().is_none();
        is_name
            .then(|| Contradiction {
                keys: ["address", "listen"],
                message: format!(
                    "`{}` is a name: to listen takes an IP address, as in `0.0.0.0:7000`",
                    self.address
                ),
            })
            .into_iter()
            .collect()
    }

    fn as_text(&self) -> Option<String> {
        (!self.listen && !self.udp).then(|| quoted(&self.address))
    }
}

impl Table for StoreGrant {
    keys! {
        StoreGrant;
        /// The store, as in `{ name = "settings", mode = "ro" }`.
        "name" name = text(STORE, str::parse), required(STORE);
        /// Whether the extension can only read the store, or also change it.
        "mode" mode = word();
    }

    fn as_text(&self) -> Option<String> {
        (self.mode == DirMode::Rw).then(|| quoted(&self.name))
    }
}

/// A table of environment variables, whose values may be secret.
fn variables() -> Kind<BTreeMap<String, String>> {
    let read = |section: &mut Section<'_, '_>, key, _: Option<&_>| {
        let values = section.values(key, check_variable);
        section.has(key).then(|| (values, Places::default()))
    };
    let tell = |values: &BTreeMap<String, String>, key: &str, facts: &mut Facts| {
        for (name, value) in values {
            facts.secret(format!("{key}.{}", harmless(name, usize::MAX)), value.clone());
        }
    };
    let judge = |values: &BTreeMap<String, String>, path: &str, errors: &mut Vec<ConfigError>| {
        let faults = values.iter().filter_map(|(name, value)| check_variable(name, value).err());
        errors.extend(faults.map(|fault| ConfigError::new(path, format!("in `{path}`: {fault}"), None)));
    };
    Kind { judge: Box::new(judge), ..Kind::new(Shape::Values, read, tell) }
}

/// A key-value store that an extension may use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreGrant {
    /// The store.
    pub name: StoreName,
    /// Whether it may be written to. Default: [`DirMode::Rw`].
    pub mode: DirMode,
}

/// A directory of the host that an extension may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirGrant {
    /// The directory on the host.
    pub host: PathBuf,
    /// Its path in the extension.
    pub guest: GuestPath,
    /// The permitted operations.
    pub mode: DirMode,
    /// Bytes that the directory may hold with its subdirectories, if writable. Each entry counts in blocks of 4 KiB.
    /// `None` sets no limit.
    pub max_bytes: Option<u64>,
    /// Files, directories and symlinks that the directory may hold. `None` sets no limit.
    pub max_files: Option<u64>,
}

/// Permitted operations in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DirMode {
    /// Reading.
    #[default]
    Ro,
    /// Reading, writing, creating and removing.
    Rw,
}

/// An absolute path in an extension, such as `/data`: up to 255 bytes, without control characters, empty segments,
/// `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestPath(String);

/// A network address that an extension may use. From text, as of [`NetAddress`]: one that it may connect to by TCP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NetGrant {
    /// The address.
    pub address: NetAddress,
    /// Whether it may listen there, instead of connecting. Default: no.
    pub listen: bool,
    /// Whether it may use UDP there, instead of TCP. Default: no.
    pub udp: bool,
}

/// A name or an IP address, and a port. As text: `name:port`, `IPv4:port` or `[IPv6]:port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NetAddress {
    /// An IP address without brackets, or a lowercase name: dotted labels of up to 63 letters, digits and `-`, at most
    /// 253 bytes.
    pub host: String,
    /// The port, not zero.
    pub port: u16,
}

/// Why a text cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not {expected}")]
pub struct GrantError {
    text: String,
    expected: &'static str,
}

impl GrantError {
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        Self { text: quote(text), expected }
    }
}

impl From<StoreName> for StoreGrant {
    /// A grant to read and write the store.
    fn from(name: StoreName) -> Self {
        Self { name, mode: DirMode::Rw }
    }
}

impl fmt::Display for StoreGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl DirGrant {
    /// A directory to read from.
    #[must_use]
    pub fn read_only(host: impl Into<PathBuf>, guest: GuestPath) -> Self {
        Self { host: host.into(), guest, mode: DirMode::Ro, max_bytes: None, max_files: None }
    }

    /// A directory to read from and write to.
    #[must_use]
    pub fn read_write(host: impl Into<PathBuf>, guest: GuestPath) -> Self {
        Self { mode: DirMode::Rw, ..Self::read_only(host, guest) }
    }

    /// Whether the grant has bounds on bytes or files.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.max_bytes.is_some() || self.max_files.is_some()
    }
}

words!(DirMode, "a mode: ": "ro" = Ro, "rw" = Rw);

impl GuestPath {
    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for GuestPath {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let well_formed = text.len() <= 255
            && !text.contains(char::is_control)
            && text.strip_prefix('/').is_some_and(|rest| {
                rest.is_empty() || rest.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
            });
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(GrantError::new(text, "an absolute path without `.`, `..` and empty segments, as in `/data`"))
        }
    }
}

impl AsRef<str> for GuestPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl NetGrant {
    /// Whether a program that listens at the address has it.
    #[must_use]
    pub fn listens_at(&self, address: SocketAddr) -> bool {
        let is_its =
            |own: IpAddr| own == address.ip() || (own.is_unspecified() && own.is_ipv4() == address.is_ipv4());
        self.listen && self.address.port == address.port() && self.address.ip().is_some_and(is_its)
    }

    /// Whether two programs that listen at these two would meet.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let is_at = |one: &Self, address: &NetAddress| {
            address.ip().is_some_and(|ip| one.listens_at(SocketAddr::new(ip, address.port)))
        };
        self.udp == other.udp && (is_at(self, &other.address) || is_at(other, &self.address))
    }
}

impl FromStr for NetGrant {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        Ok(Self { address: text.parse()?, listen: false, udp: false })
    }
}

impl fmt::Display for NetGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.udp { " by UDP" } else { "" };
        match self.listen {
            true => write!(f, "listening at {}{protocol}", self.address),
            false => write!(f, "{}{protocol}", self.address),
        }
    }
}

impl NetAddress {
    /// The IP address, unless it is a name.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl FromStr for NetAddress {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let parse = || {
            let (host, port) = split_port(text, None)?;
            Some(Self { host: parse_host(host)?, port })
        };
        parse().ok_or_else(|| {
            GrantError::new(
                text,
                "an address with a port from 1 to 65535, as in `example.com:443` or `[::1]:80`",
            )
        })
    }
}

impl fmt::Display for NetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Checks that an environment can hold the variable.
pub(super) fn check_variable(name: &str, value: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(format!(
            "{} is not the name of a variable: not empty, and without `=` and NUL",
            quote(name)
        ));
    }
    if value.contains('\0') {
        return Err(format!("the value of {} contains a NUL", quote(name)));
    }
    Ok(())
}

/// Splits a host from its port. `default` is the port if the text has none. `None` if there is no port at all, or it is
/// not from 1 to 65535.
pub fn split_port(text: &str, default: Option<u16>) -> Option<(&str, u16)> {
    match text.rsplit_once(':') {
        // There is no port: the colon is within the brackets of an IPv6 address.
        Some((_, rest)) if rest.ends_with(']') => Some((text, default?)),
        Some((host, port)) => {
            let port = port.bytes().all(|b| b.is_ascii_digit()).then(|| port.parse().ok())??;
            (port > 0).then_some((host, port))
        }
        None => Some((text, default?)),
    }
}

/// Reads a host without a port: a name, an IPv4 address, or an IPv6 address in brackets. Returns a name in lowercase,
/// and an address without brackets. `None` for any other text.
pub fn parse_host(text: &str) -> Option<String> {
    if let Some(ip) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return ip.parse::<Ipv6Addr>().ok().map(|ip| ip.to_string());
    }
    if let Ok(ip) = text.parse::<Ipv4Addr>() {
        return Some(ip.to_string());
    }
    // Some resolvers take a name for an IPv4 address if its last label is a number
    // (https://url.spec.whatwg.org/#ends-in-a-number-checker) or like `0x7f.1`.
    let last = text.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit());
    let is_name = text.len() <= 253 && !is_number && text.split('.').all(is_label);
    is_name.then(|| text.to_ascii_lowercase())
}

/// Whether the text is a label of a host name (RFC 1123, section 2.1).
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}
