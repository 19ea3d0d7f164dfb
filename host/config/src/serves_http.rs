//! The mount of an HTTP server: where an extension that exports `wasi:http/incoming-handler` is reached.
//!
//! Owns the values. Knows nothing of requests and listeners: the gateway compares them with these values.

use std::{fmt, path::PathBuf, str::FromStr};

use weir_names::PeerName;

use super::{
    GrantError, HttpMethod,
    grants::parse_path,
    key::Table,
    kind::{flag, number, socket, text, texts},
    shape::Shape,
};
use crate::keys;

const PATH: &str = "a path that begins with `/`, as in `/shop/`";
const METHOD: &str = "a method, as in `GET`";
const PEER: &str = "the name of a peer, as in `app:player`";

/// The paths that the gateway keeps for itself.
const OF_THE_GATEWAY: &str = "/v1";

/// How an extension serves HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServesHttp {
    /// Requests for this path, and for what is below, are the extension's. Of several extensions, the one with the longest
    /// path gets a request.
    pub path: MountPath,
    /// The methods of requests that it gets. Empty: all.
    pub methods: Vec<HttpMethod>,
    /// Whether anybody who reaches the gateway may send requests.
    pub open: bool,
    /// The peers that may send requests, with a proof of their name.
    pub peers: Vec<PeerName>,
    /// A Unix socket of its own, of 1 to 107 bytes. Whoever can open it may send requests.
    pub socket: Option<PathBuf>,
    /// Requests that run at once: 1 to 1,024. Default: 8. Further ones wait in the inbox.
    pub at_once: u32,
    /// Requests that an instance serves, one after the other: 1 to 1,000,000. Default: 1, a new instance for each.
    pub requests_per_instance: u32,
    /// Bytes of the largest body of a request: up to 1 TiB. Default: 16 MiB.
    pub max_body: u64,
    /// Whether each request is a line of the extension's log.
    pub access_log: bool,
}

/// A path that stands for itself and for all paths below. As text it begins with `/`; a slash at its end changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MountPath(String);

impl ServesHttp {
    /// Whether it is reached at the addresses of the gateway, which all servers have together.
    #[must_use]
    pub fn is_mounted(&self) -> bool {
        self.open || !self.peers.is_empty()
    }

    /// A server for this path, which nobody may reach yet.
    #[must_use]
    pub fn new(path: MountPath) -> Self {
        Self {
            path,
            methods: Vec::new(),
            open: false,
            peers: Vec::new(),
            socket: None,
            at_once: 8,
            requests_per_instance: 1,
            max_body: 16 << 20,
            access_log: false,
        }
    }
}

impl Default for ServesHttp {
    fn default() -> Self {
        Self::new(MountPath("/".to_owned()))
    }
}

impl Table for ServesHttp {
    keys! {
        ServesHttp;
        /// Requests for this path, and for what is below, are its own. Of several extensions, the one with the longest
        /// path gets a request, and no two that the gateway lets others reach can have one path. It begins with `/`, and is
        /// not `/v1` or below, which is the
        /// gateway's.
        "path" path = text(PATH, str::parse::<MountPath>), required(PATH);
        /// The methods of the requests that it gets. Others are answered with status 405.
        "methods" methods = texts(METHOD, str::parse), default("all");
        /// Whether anybody who reaches the gateway may send requests. Else `peers` says who may.
        "open" open = flag();
        /// The peers that may send requests. They prove their names [as for JSON-RPC](apps.md), and the server reads the
        /// name in the header `weir-peer`.
        "peers" peers = texts(PEER, str::parse);
        /// A Unix socket of its own, for a reverse proxy: all requests there are for this server, also below `/v1`.
        /// Whoever can open it may send requests. Everybody can, as far as the directories above let them. It needs a
        /// `[gateway]`.
        "socket" socket = socket().optional(), default("none");
        /// Requests that run at once, each in an instance of its own. Further ones wait in the inbox. The memory of so
        /// many instances counts against `main.memory-budget`.
        "at-once" at_once = number(Shape::Count(1..=1024));
        /// Requests that an instance serves, one after the other, before a new one takes its place. With 1, each request
        /// has a new instance, and nothing of one request is left for the next.
        "requests-per-instance" requests_per_instance = number(Shape::Count(1..=1_000_000));
        /// The largest body of a request. A request that says that it has a larger one is answered with status 413. Of
        /// others the server reads so much, and then an error.
        "max-body" max_body = number(Shape::Size(0..=1 << 40));
        /// Whether each request is a line of its log: method, path, status, and time until the answer began.
        "access-log" access_log = flag();
    }
}

impl MountPath {
    /// Whether the path of a request is this one or below it.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        is_within(path, &self.0)
    }

    /// Whether the path of a request at the gateway is this one or below it, and not the gateway's.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.contains(path) && !is_within(path, OF_THE_GATEWAY)
    }

    /// The path: `/`, or without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_within(path: &str, dir: &str) -> bool {
    let rest = path.strip_prefix(dir.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Display for MountPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MountPath {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let path = Some(text).filter(|text| text.starts_with('/')).and_then(parse_path);
        // As other hosts write what is below a path.
        let is_pattern = |segment: &str| segment == "..." || segment.starts_with([':', '*']);
        match path.filter(|path| !is_within(path, OF_THE_GATEWAY)) {
            Some(path) if path.split('/').any(is_pattern) => Err(GrantError::new(
                text,
                "a path without patterns: it stands for all that is below, so leave out `...`, `*` and `:name`",
            )),
            Some(path) => Ok(Self(path)),
            None => Err(GrantError::new(
                text,
                "a path that begins with `/`, without empty segments and dots as segments, and not `/v1` or below, which is the gateway's",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_covers_its_path_and_what_is_below() {
        let shop: MountPath = "/shop/".parse().unwrap();
        for path in ["/shop", "/shop/", "/shop/a/b", "/shop//"] {
            assert!(shop.covers(path), "{path}");
        }
        for path in ["/", "/sho", "/shops", "/Shop", "shop", ""] {
            assert!(!shop.covers(path), "{path}");
        }
        let all: MountPath = "/".parse().unwrap();
        assert!(["/", "/a", "/v1x"].iter().all(|path| all.covers(path)));
        assert!(!["*", "/v1", "/v1/", "/v1/peers"].iter().any(|path| all.covers(path)));
        assert!(all.contains("/v1/peers") && !shop.contains("/v1/peers"));
    }

    #[test]
    fn what_is_no_path_of_a_mount_is_refused() {
        let long = format!("/{}", "a".repeat(2000));
        for text in [
            "", "a", "a/", "/a b", "/a?b", "/%41", "/ä", "//", "/a//b", "/a//", "/./a", "/a/..", "/../",
            &long,
        ] {
            assert!(text.parse::<MountPath>().is_err(), "{text}");
        }
        for text in ["/a/...", "/...", "/*", "/a/:name"] {
            assert!(
                text.parse::<MountPath>().unwrap_err().to_string().contains("all that is below"),
                "{text}"
            );
        }
        for text in ["/v1", "/v1/", "/v1/peers"] {
            assert!(text.parse::<MountPath>().unwrap_err().to_string().contains("the gateway's"), "{text}");
        }
        for (text, path) in
            [("/", "/"), ("/v2/", "/v2"), ("/v1x/", "/v1x"), ("/a.b/~c/d-e_f", "/a.b/~c/d-e_f")]
        {
            assert_eq!(text.parse::<MountPath>().unwrap().to_string(), path);
        }
    }
}
