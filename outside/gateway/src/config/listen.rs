//! Addresses that the gateway listens on.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use weir_host::config::extend::{quote, socket_in};

/// Completes the message "… each …".
pub(super) const ADDRESS: &str =
    "an IP address with a port, as in `127.0.0.1:7410`, or `unix:` and the path of a socket";

/// Completes the message "… is …" about a text that is no address.
const NEITHER: &str = "neither an IP address with a port, as in `127.0.0.1:7410` or `[::1]:7410`, nor `unix:` and \
                       the path of a socket";

const UNIX: &str = "unix:";

/// An address that the gateway listens on, such as `127.0.0.1:7410`, `[::1]:7410` or `unix:/run/weir/gateway.sock`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Listen {
    /// An IP address and a port. With port 0 the system chooses one.
    Tcp(SocketAddr),
    /// The path of a Unix socket: 1 to 107 bytes.
    Unix(PathBuf),
}

/// Why an address was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ListenError(String);

impl Listen {
    /// Whether only this machine reaches the address: it is a loopback address or a Unix socket.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Parses an address. The relative path of a socket begins in `dir`.
    pub(super) fn parse_in(dir: &Path, text: &str) -> Result<Self, ListenError> {
        match text.strip_prefix(UNIX) {
            Some(path) => socket_in(dir, path).map(Self::Unix).map_err(ListenError),
            None => {
                text.parse().map(Self::Tcp).map_err(|_| ListenError(format!("{} is {NEITHER}", quote(text))))
            }
        }
    }

    /// What is wrong with an address that was made in Rust, if anything is.
    pub(super) fn fault(&self) -> Option<String> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(path) => socket_in(Path::new(""), &path.to_string_lossy()).err(),
        }
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    /// Parses an address. The relative path of a socket stays relative.
    fn from_str(text: &str) -> Result<Self, ListenError> {
        Self::parse_in(Path::new(""), text)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_as_it_is_written() {
        for text in ["127.0.0.1:7410", "[::1]:7410", "0.0.0.0:0", "unix:/run/weir/gateway.sock", "unix:a b"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        let long = format!("unix:{}", "a".repeat(108));
        for text in [
            "",
            "localhost:1",
            "127.0.0.1",
            "::1:80",
            "127.0.0.1:65536",
            ":80",
            "unix:",
            "unix:\0",
            &long,
            "/a",
        ] {
            text.parse::<Listen>().unwrap_err();
        }
    }

    #[test]
    fn other_machines_reach_what_is_neither_loopback_nor_a_file() {
        for (text, is_loopback) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("unix:a", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.168.0.2:1", false),
            ("[fe80::1]:1", false),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().is_loopback(), is_loopback, "{text}");
        }
    }
}
