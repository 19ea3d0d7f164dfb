//! Addresses of a registry: where they lead to, and whether that is still the registry.

use std::fmt;

use http::Uri;

/// The scheme, host and port of an address. Credentials go to the registry's own alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    /// The host, an IPv6 address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The address of a request.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    pub(crate) origin: Origin,
    /// Path and query.
    pub(crate) target: String,
}

/// The text is no address that a request may go to.
#[derive(Debug, thiserror::Error)]
#[error("names the address `{}`, which is not taken: {why}", weir_names::harmless(.text, 300))]
pub(crate) struct UrlError {
    text: String,
    why: &'static str,
}

impl Origin {
    /// The origin of a registry with this host and optional port.
    pub(crate) fn of(authority: &str, is_tls: bool) -> Result<Self, UrlError> {
        let scheme = if is_tls { "https" } else { "http" };
        Ok(Url::parse(&format!("{scheme}://{authority}/"))?.origin)
    }

    /// The address with this path and query.
    pub(crate) fn at(&self, target: String) -> Url {
        Url { origin: self.clone(), target }
    }

    /// Whether it is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        let wrong = |why| UrlError { text: text.to_owned(), why };
        let uri: Uri = text.parse().map_err(|_| wrong("it is no URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it is neither `https` nor `http`")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has credentials in it"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        Ok(Self { origin: Origin { is_tls, host, port }, target })
    }

    /// Where a `Location` or `Link` of an answer from this address leads.
    pub(crate) fn join(&self, location: &str) -> Result<Self, UrlError> {
        let joined = if location.starts_with('/') && !location.starts_with("//") {
            Self::parse(&format!("{}{location}", self.origin))?
        } else {
            Self::parse(location)?
        };
        if self.origin.is_tls && !joined.origin.is_tls {
            let why = "it is plain `http`, and the answer that names it came over TLS";
            return Err(UrlError { text: location.to_owned(), why });
        }
        Ok(joined)
    }

    /// The address with one more parameter.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let separator = if self.target.contains('?') { '&' } else { '?' };
        let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        self.target = format!("{}{separator}{name}={value}", self.target);
        self
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl Origin {
    /// The host and port as the header `Host` has them.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.is_tls { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_over_tls_leads_nowhere_without_tls_and_nowhere_with_credentials() {
        let url = Url::parse("https://host.test/v2/a/blobs/b").unwrap();
        assert_eq!(url.join("/c?d").unwrap().target, "/c?d");
        assert_eq!(url.join("/c").unwrap().origin, url.origin);
        assert_eq!(url.join("https://HOST.test:443/c").unwrap().origin, url.origin);
        assert_ne!(url.join("https://host.test:444/c").unwrap().origin, url.origin);
        for refused in ["http://host.test/c", "https://a:b@host.test/", "//other.test/", "c", "ftp://a/", ""]
        {
            assert!(url.join(refused).is_err(), "{refused}");
        }
        let plain = Url::parse("http://[::1]:5000/").unwrap();
        assert!(plain.join("https://host.test/").is_ok());
        assert_eq!(plain.origin.to_string(), "http://[::1]:5000");
        assert!(plain.origin.is_loopback());
        assert_eq!(url.with("scope", "a:b c").target, "/v2/a/blobs/b?scope=a%3Ab%20c");
    }
}
