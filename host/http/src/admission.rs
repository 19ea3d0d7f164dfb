//! Which requests a grant allows, before anything is sent.
//!
//! The authority of a request is taken apart by the rules for grants, which know one notation for each host. Whatever
//! has another notation is refused, because resolvers and servers could read it in another way.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use http::{Method, Uri, uri::Scheme};
use percent_encoding::percent_decode;
use weir_config::{
    AddressGrant, HttpGrant, HttpTarget,
    extend::{parse_host, split_port},
};
use weir_names::harmless;

use crate::{address::is_allowed, error::HttpError};

/// The most bytes of a URL that are shown.
const SHOWN: usize = 256;

/// The most bytes of a method that are shown.
const SHOWN_METHOD: usize = 32;

/// Where a request goes, and which addresses that may be.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) place: Arc<Place>,
    /// The addresses that the grants of the request allow besides public ones.
    addresses: Vec<AddressGrant>,
}

/// A server for which connections are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) is_tls: bool,
    /// A lowercase name, or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Route {
    /// Whether the request may go to this address of its host.
    pub(crate) fn may_reach(&self, address: IpAddr) -> bool {
        is_allowed(address, &self.addresses)
    }

    /// Whether the request may go to this device, by an address that [`may_reach`](Self::may_reach) allows.
    pub(crate) fn may_reach_itself(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|grant| match grant {
            AddressGrant::Loopback => true,
            AddressGrant::Range(range) => range.contains(address),
            _ => false,
        })
    }
}

impl Place {
    /// The value of `Host` in a request to the server. Each server has only one notation.
    pub(crate) fn authority(&self) -> String {
        let Self { is_tls, host, port } = self;
        let host = if host.contains(':') { Cow::Owned(format!("[{host}]")) } else { Cow::Borrowed(&**host) };
        match *port == HttpTarget::default_port(*is_tls) {
            true => host.into_owned(),
            false => format!("{host}:{port}"),
        }
    }
}

/// The route of a request, if a grant allows it.
pub(crate) fn admit(grants: &[HttpGrant], method: &Method, uri: &Uri) -> Result<Route, HttpError> {
    let place = place(uri)?;
    if *method == Method::CONNECT {
        return Err(HttpError::Denied("`CONNECT` is never allowed".to_owned()));
    }
    let allowing = || {
        let granted = grants.iter().filter(|grant| covers_host(&grant.to, &place));
        granted.filter(|grant| covers_path(&grant.to.path, uri.path()))
    };
    let mut grants = allowing()
        .filter(|grant| grant.methods.iter().any(|allowed| allowed.as_str() == method.as_str()))
        .peekable();
    if grants.peek().is_none() {
        let why = match allowing().next() {
            Some(grant) => format!("the grant of `{}` does not list that method", grant.to),
            None => "no entry of `grants.http` covers it".to_owned(),
        };
        let method = harmless(method, SHOWN_METHOD);
        return Err(HttpError::Denied(format!("`{method} {}`: {why}", harmless(uri, SHOWN))));
    }
    let mut addresses = Vec::new();
    for grant in grants {
        addresses.extend(&grant.addresses);
        // A grant to an address also allows that address.
        addresses
            .extend(grant.to.address().and_then(|address| address.to_string().parse::<AddressGrant>().ok()));
    }
    Ok(Route { place: Arc::new(place), addresses })
}

fn place(uri: &Uri) -> Result<Place, HttpError> {
    let is_tls = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) if *scheme == Scheme::HTTP => false,
        _ => return Err(HttpError::Uri("its scheme is neither `https` nor `http`".to_owned())),
    };
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    let place = || {
        let (host, port) = split_port(authority, Some(HttpTarget::default_port(is_tls)))?;
        Some(Place { is_tls, host: parse_host(host)?, port })
    };
    place().ok_or_else(|| {
        HttpError::Uri(format!("`{}` is no host, with or without a port", harmless(authority, SHOWN)))
    })
}

fn covers_host(target: &HttpTarget, place: &Place) -> bool {
    let is_host = match target.host.strip_prefix('*') {
        Some(rest) => {
            place.host.strip_suffix(rest).is_some_and(|label| !label.is_empty() && !label.contains('.'))
        }
        None => target.host == place.host,
    };
    is_host && target.is_tls == place.is_tls && target.port == place.port
}

/// Whether a path is at or below the granted one, whichever way the server reads it.
fn covers_path(granted: &str, path: &str) -> bool {
    if granted == "/" {
        return true;
    }
    let rest = path.strip_prefix(granted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && !may_climb(path)
}

/// How often a path is decoded until nothing is left to decode. No honest path needs more.
const ROUNDS: usize = 4;

/// Whether a server could read a step upwards in the path: after decoding it once or more, with backslashes, with
/// parameters of segments, or in an invalid encoding. So could one in a path that is encoded too often to tell.
fn may_climb(path: &str) -> bool {
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..ROUNDS {
        let mut segments = bytes.split(|byte| matches!(byte, b'/' | b'\\'));
        if segments.any(is_step) || has_odd_encoding(&bytes) {
            return true;
        }
        let decoded: Vec<u8> = percent_decode(&bytes).collect();
        if decoded == bytes {
            return false;
        }
        bytes = decoded;
    }
    true
}

/// Whether a segment is `.` or `..`, with or without parameters and spaces.
fn is_step(segment: &[u8]) -> bool {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    matches!(name, b".." | b".")
}

/// Whether the path has characters that only some servers read: `%u002e`, or overlong ones such as `%c0%ae`. Those
/// begin with a byte that UTF-8 never has, or with two that it never has together.
fn has_odd_encoding(bytes: &[u8]) -> bool {
    bytes
        .windows(2)
        .any(|pair| matches!(pair, [b'%', b'u' | b'U'] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]))
        || bytes.iter().any(|byte| matches!(byte, 0xc0 | 0xc1 | 0xf8..=0xff))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(to: &str) -> HttpGrant {
        HttpGrant::new(to.parse().unwrap())
    }

    fn admits(to: &str, uri: &str) -> bool {
        admit(&[grant(to)], &Method::GET, &uri.parse().unwrap()).is_ok()
    }

    #[test]
    fn a_request_goes_where_a_grant_says_and_nowhere_else() {
        for (to, uri) in [
            ("https://a.example", "https://a.example/x?y"),
            ("https://a.example", "https://A.Example:443/"),
            ("http://a.example", "http://a.example:80"),
            ("http://a.example:8080", "http://a.example:8080/"),
            ("https://*.a.example", "https://b.a.example/"),
            ("http://[::1]:81", "http://[::1]:81/"),
            ("http://[::1]", "http://[0:0:0:0:0:0:0:1]/"),
            ("https://a.example/v1", "https://a.example/v1"),
            ("https://a.example/v1", "https://a.example/v1?q=../x"),
            ("https://a.example/v1/", "https://a.example/v1/x/y..z/..."),
            ("https://a.example", "https://a.example/../x"),
        ] {
            assert!(admits(to, uri), "{to} {uri}");
        }
        for (to, uri) in [
            ("https://a.example", "http://a.example/"),
            ("https://a.example", "https://a.example:8443/"),
            ("https://a.example", "https://b.a.example/"),
            ("https://a.example", "https://a.example.evil/"),
            ("https://*.a.example", "https://a.example/"),
            ("https://*.a.example", "https://c.b.a.example/"),
            ("https://*.a.example", "https://ba.example/"),
            ("https://a.example/v1", "https://a.example/"),
            ("https://a.example/v1", "https://a.example/v10"),
            ("https://a.example/v1", "https://a.example/V1"),
        ] {
            assert!(!admits(to, uri), "{to} {uri}");
        }
        assert!(admit(&[], &Method::GET, &"https://a.example".parse().unwrap()).is_err());
    }

    #[test]
    fn no_path_climbs_out_of_a_granted_one() {
        for path in [
            "/v1/../admin",
            "/v1/..",
            "/v1/./x",
            "/v1/%2e%2e/admin",
            "/v1/.%2E/admin",
            "/v1/..%2fadmin",
            "/v1/%2e%2e%2fadmin",
            "/v1/..%5cadmin",
            "/v1/%252e%252e/admin",
            "/v1/%25252e%25252e/admin",
            "/v1/..;/admin",
            "/v1/..;x=1/admin",
            "/v1/%2e%2e%3b/admin",
            "/v1/..%20/admin",
            "/v1/%c0%ae%c0%ae/admin",
            "/v1/%C0%AE./admin",
            "/v1/..%c0%afadmin",
            "/v1/%e0%80%ae%e0%80%ae/admin",
            "/v1/%f0%80%80%ae./admin",
            "/v1/%u002e%u002e/admin",
            "/v1/%25u002e./admin",
            "/v1/%2525252525",
        ] {
            assert!(!admits("https://a.example/v1", &format!("https://a.example{path}")), "{path}");
        }
    }

    #[test]
    fn a_path_is_judged_in_few_steps_however_often_it_is_encoded() {
        let path = format!("/v1/%{}", "25".repeat(32_000));
        let began = std::time::Instant::now();
        assert!(!admits("https://a.example/v1", &format!("https://a.example{path}")));
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_secs(1), "{took:?}");
        for path in ["/v1/100%25", "/v1/%25%32%30", "/v1/caf%c3%a9/%e2%82%ac/%f0%9f%90%a6", "/v1/%20x"] {
            assert!(admits("https://a.example/v1", &format!("https://a.example{path}")), "{path}");
        }
    }

    #[test]
    fn a_host_has_one_notation() {
        for authority in [
            "user@a.example",
            "a.example@b.example",
            "user:secret@a.example:443",
            "a.example.",
            "a..example",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "127.0.0.1.",
            "[::1%25lo]",
            "a_b.example",
            "a.example:",
            "a.example:0",
            "a.example:65536",
            "a.example:443:443",
        ] {
            let Ok(uri) = Uri::builder().scheme("https").authority(authority).path_and_query("/").build()
            else {
                continue;
            };
            let refused =
                admit(&[grant("https://a.example"), grant("https://127.0.0.1")], &Method::GET, &uri);
            assert!(matches!(refused, Err(HttpError::Uri(_))), "{authority}: {refused:?}");
        }
    }

    #[test]
    fn methods_are_those_of_the_grants_that_cover_the_place() {
        let mut posts = grant("https://a.example/in");
        posts.methods = vec!["POST".parse().unwrap()];
        let grants = [grant("https://a.example"), posts];
        let is_admitted = |method: Method, path: &str| {
            admit(&grants, &method, &format!("https://a.example{path}").parse().unwrap()).is_ok()
        };
        assert!(is_admitted(Method::GET, "/in") && is_admitted(Method::HEAD, "/x"));
        assert!(is_admitted(Method::POST, "/in/1") && !is_admitted(Method::POST, "/x"));
        assert!(!is_admitted(Method::from_bytes(b"get").unwrap(), "/"));
        assert!(!is_admitted(Method::CONNECT, "/"));
    }

    #[test]
    fn an_address_in_a_grant_names_itself_and_no_other() {
        let grants = [grant("http://127.0.0.1:81"), grant("http://localhost:81")];
        let route = |uri: &str| admit(&grants, &Method::GET, &uri.parse().unwrap()).unwrap();
        assert!(route("http://127.0.0.1:81").may_reach("127.0.0.1".parse().unwrap()));
        assert!(!route("http://127.0.0.1:81").may_reach("127.0.0.2".parse().unwrap()));
        assert!(!route("http://localhost:81").may_reach("127.0.0.1".parse().unwrap()));
        assert!(route("http://localhost:81").may_reach("1.1.1.1".parse().unwrap()));
    }

    #[test]
    fn the_device_itself_is_reached_only_as_loopback_or_by_its_address() {
        let own = "192.168.7.9";
        let reaches = |addresses: &[&str]| {
            let addresses = addresses.iter().map(|kind| kind.parse().unwrap()).collect();
            let grant = HttpGrant { addresses, ..grant("http://a.example") };
            let route = admit(&[grant], &Method::GET, &"http://a.example".parse().unwrap()).unwrap();
            route.may_reach_itself(own.parse().unwrap())
        };
        assert!(!reaches(&[]) && !reaches(&["private", "link-local", "shared"]) && !reaches(&["10.0.0.0/8"]));
        assert!(reaches(&["loopback"]) && reaches(&["192.168.7.0/24"]));
    }

    #[test]
    fn a_host_header_has_a_port_only_where_it_is_not_the_scheme_s_own() {
        for (uri, host) in [
            ("https://A.example:443/", "a.example"),
            ("http://a.example:443/", "a.example:443"),
            ("http://[0::1]/", "[::1]"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(place(&uri.parse().unwrap()).unwrap().authority(), host);
        }
    }
}
