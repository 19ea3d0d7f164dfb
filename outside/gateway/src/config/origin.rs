//! Origins of web pages (RFC 6454).

use std::{fmt, str::FromStr};

use weir_host::config::extend::{parse_host, quote};

/// Completes the messages "… is not …" and "… each …".
pub(super) const ORIGIN: &str =
    "an origin without a path, as in `http://127.0.0.1:8080` or `https://example.com`";

/// The schemes of web pages, with their default ports.
const SCHEMES: [(&str, u16); 2] = [("http", 80), ("https", 443)];

/// The origin of a web page: `http` or `https`, a host and a port, as in `http://127.0.0.1:8080`.
///
/// Displays as browsers write it: in lowercase, and without the default port of the scheme.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    scheme: &'static str,
    /// A name in lowercase or an IP address. An IPv6 address has no brackets.
    host: String,
    port: u16,
}

/// Why an origin was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not {ORIGIN}", quote(.0))]
pub struct OriginError(String);

impl Origin {
    /// Whether the value of an `Origin` header is this origin.
    #[must_use]
    pub fn matches(&self, header: &str) -> bool {
        parse(header).is_some_and(|origin| origin == *self)
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        parse(text).ok_or_else(|| OriginError(text.to_owned()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]")?,
            false => write!(f, "{scheme}://{host}")?,
        }
        if SCHEMES.contains(&(*scheme, *port)) { Ok(()) } else { write!(f, ":{port}") }
    }
}

fn parse(text: &str) -> Option<Origin> {
    let (scheme, rest) = text.split_once("://")?;
    let (scheme, default_port) = SCHEMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(scheme))?;
    // The colons of an IPv6 address are in brackets.
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, number(port)?),
        _ => (rest, default_port),
    };
    Some(Origin { scheme, host: parse_host(host)?, port })
}

/// Parses a port that is not 0.
fn number(port: &str) -> Option<u16> {
    // The parser of numbers would accept a sign.
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| port.parse().ok())?.filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_shown_as_browsers_write_it() {
        for (text, shown) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://Example.com:443", "https://example.com"),
            ("HTTP://example.com:80", "http://example.com"),
            ("http://example.com:443", "http://example.com:443"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://[0:0::1]", "http://[::1]"),
            ("http://localhost", "http://localhost"),
        ] {
            let origin: Origin = text.parse().unwrap();
            assert_eq!(origin.to_string(), shown);
            assert!(origin.matches(shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_origin_of_a_page_is_refused() {
        for text in [
            "",
            "null",
            "*",
            "example.com",
            "//example.com",
            "http://",
            "http://example.com/",
            "http://example.com:80/a",
            "http://user@example.com",
            "http://*.example.com",
            "http://example.com:",
            "http://example.com:0",
            "http://example.com:+80",
            "http://example.com:65536",
            "http://::1",
            "http://1.2.3",
            "http://exämple.com",
            "http://a?b",
            "http://a#b",
            " http://a",
            "ws://a",
            "file:///a",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }

    #[test]
    fn another_scheme_host_or_port_is_another_origin() {
        let origin: Origin = "http://example.com:8080".parse().unwrap();
        for other in [
            "https://example.com:8080",
            "http://example.com",
            "http://example.com:8081",
            "http://www.example.com:8080",
            "http://example.com:8080/",
            "null",
            "",
        ] {
            assert!(!origin.matches(other), "{other}");
        }
    }
}
