//! Heads of requests by HTTP, and what an extension that serves them gets.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request,
    header::{AUTHORIZATION, CONNECTION, HOST},
};
use weir_gateway::head_for_server;
use weir_host::names::PeerName;

const MOST_HEADERS: usize = 100;

/// Headers that no server gets.
const HOP_BY_HOP: [&str; 7] =
    ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

/// Headers that only a proxy on a Unix socket passes on.
const OF_PROXIES: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

const PEER: &str = "weir-peer";

/// Reads the input as the head of a request, as the gateway does, and passes it on for strangers, for a peer, and for a
/// proxy.
///
/// What is passed on has one host, the name of the peer from the gateway alone, none of the headers that end here or that
/// `connection` names, and all others as they were.
pub fn mount(data: &[u8]) {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(data), Ok(httparse::Status::Complete(_))) {
        return;
    }
    let Some(given) = parts(&request) else { return };
    let peer: PeerName = "app:fuzz".parse().unwrap();
    for (is_unix, peer) in [(false, None), (true, None), (false, Some(&peer))] {
        let Some(got) = head_for_server(given.clone(), is_unix, peer) else {
            let hosts: Vec<_> = given.headers.get_all(HOST).iter().collect();
            let agrees = given.uri.authority().is_none_or(|authority| {
                hosts.iter().all(|host| host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()))
            });
            assert!(hosts.len() != 1 || hosts[0].to_str().is_err() || !agrees, "{given:?}");
            continue;
        };
        assert_eq!((&got.method, &got.uri), (&given.method, &given.uri));
        let mut expected = HeaderMap::new();
        let listed = listed(&given.headers);
        for (name, value) in &given.headers {
            let text = name.as_str();
            let is_dropped = HOP_BY_HOP.contains(&text)
                || listed.iter().any(|other| other == text && !["host", "content-length"].contains(&text))
                || !is_unix && OF_PROXIES.contains(&text)
                || text == PEER
                || peer.is_some() && name == AUTHORIZATION;
            if !is_dropped {
                expected.append(name.clone(), value.clone());
            }
        }
        if let Some(peer) = peer {
            expected.insert(PEER, HeaderValue::from_str(peer.as_str()).unwrap());
        }
        assert_eq!(got.headers, expected);
        assert_eq!(got.headers.get_all(HOST).iter().count(), 1);
    }
}

/// The names that `connection` lists, in lowercase.
fn listed(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}

/// The head as the library of the gateway makes it, or `None` for what it refuses.
fn parts(request: &httparse::Request<'_, '_>) -> Option<http::request::Parts> {
    let mut made = Request::new(());
    *made.method_mut() = Method::from_bytes(request.method?.as_bytes()).ok()?;
    *made.uri_mut() = request.path?.parse().ok()?;
    for header in request.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        made.headers_mut().append(name, HeaderValue::from_bytes(header.value).ok()?);
    }
    Some(made.into_parts().0)
}
