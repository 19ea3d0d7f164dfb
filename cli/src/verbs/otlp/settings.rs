//! Where to export to: options first, then the environment that OpenTelemetry's specification names.

use std::{env, fmt, time::Duration};

use anyhow::Context;
use hyper::{
    HeaderMap, Uri,
    header::{HeaderName, HeaderValue},
};
use percent_encoding::percent_decode_str;

use super::Args;
use crate::exit::Usage;

const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:4318";

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Settings {
    pub(super) endpoint: Endpoint,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
}

impl Settings {
    pub(super) fn from(args: &Args) -> anyhow::Result<Self> {
        let endpoint = match (&args.endpoint, variable("TRACES_ENDPOINT")) {
            (Some(base), _) => Endpoint::below(base),
            (None, Some(whole)) => Endpoint::parse(&whole),
            (None, None) => Endpoint::below(variable("ENDPOINT").as_deref().unwrap_or(DEFAULT_ENDPOINT)),
        };
        let timeout = args.timeout.map_or_else(|| timeout_of_environment().map_err(Usage), Ok)?;
        Ok(Self { endpoint: endpoint.map_err(Usage)?, headers: headers(args)?, timeout })
    }
}

/// Reads a variable for exporters of OpenTelemetry. An empty variable counts as one that is not set.
fn variable(name: &str) -> Option<String> {
    env::var(format!("OTEL_EXPORTER_OTLP_{name}")).ok().filter(|value| !value.trim().is_empty())
}

fn timeout_of_environment() -> Result<Duration, String> {
    let Some(text) = variable("TRACES_TIMEOUT").or_else(|| variable("TIMEOUT")) else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let milliseconds = text.trim().parse::<u32>().ok().filter(|milliseconds| *milliseconds > 0);
    let milliseconds = milliseconds
        .ok_or_else(|| format!("`{text}` is not a timeout in milliseconds, as OpenTelemetry has it"))?;
    Ok(Duration::from_millis(milliseconds.into()))
}

fn headers(args: &Args) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(list) = variable("TRACES_HEADERS").or_else(|| variable("HEADERS")) {
        for pair in list.split(',').filter(|pair| !pair.trim().is_empty()) {
            // A value may be a secret: it is not repeated in an error.
            let (name, value) = split(pair).map_err(Usage)?;
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            insert(&mut headers, name, &value)?;
        }
    }
    for pair in &args.headers {
        let (name, value) = split(pair).map_err(Usage)?;
        insert(&mut headers, name, value)?;
    }
    Ok(headers)
}

fn split(pair: &str) -> Result<(&str, &str), String> {
    let pair = pair.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    pair.ok_or_else(|| "a header has no `=` between its name and its value".to_owned())
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> anyhow::Result<()> {
    let wrong = || Usage(format!("`{name}` is not the name of a header, or its value has other characters"));
    let name: HeaderName = name.parse().ok().with_context(wrong)?;
    let mut value: HeaderValue = value.parse().ok().with_context(wrong)?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// A URL of a collector, without TLS.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// The host and the port, for the header `Host`.
    pub(super) authority: String,
    /// The path, and the query if there is one.
    pub(super) path: String,
}

impl Endpoint {
    /// Reads the base URL of a collector, and adds the path to which it takes traces.
    fn below(base: &str) -> Result<Self, String> {
        let mut endpoint = Self::parse(base)?;
        if endpoint.path.contains('?') {
            return Err(format!("`{base}` has a query: nothing can be below it"));
        }
        endpoint.path = format!("{}/v1/traces", endpoint.path.trim_end_matches('/'));
        Ok(endpoint)
    }

    fn parse(url: &str) -> Result<Self, String> {
        let wrong = || format!("`{url}` is not the URL of a collector, as in `{DEFAULT_ENDPOINT}`");
        let uri: Uri = url.trim().parse().map_err(|_| wrong())?;
        let scheme = uri.scheme_str().ok_or_else(wrong)?;
        if scheme == "https" {
            return Err(format!(
                "`{url}` needs TLS, which `weir otlp` has not: run an OpenTelemetry Collector on this machine, export \
                 to it, and let it export to there"
            ));
        }
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let (true, Some(authority)) = (scheme == "http", authority) else { return Err(wrong()) };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(80),
            authority: authority.to_string(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_gets_the_path_of_traces_and_a_whole_endpoint_stays() {
        for (base, shown, host, port) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces", "127.0.0.1", 4318),
            ("http://localhost/", "http://localhost/v1/traces", "localhost", 80),
            ("http://[::1]:4318/otlp/", "http://[::1]:4318/otlp/v1/traces", "::1", 4318),
        ] {
            let endpoint = Endpoint::below(base).unwrap();
            assert_eq!(
                (endpoint.to_string(), &*endpoint.host, endpoint.port),
                (shown.to_owned(), host, port)
            );
        }
        assert_eq!(Endpoint::parse("http://a:1/x?y=z").unwrap().to_string(), "http://a:1/x?y=z");
    }

    #[test]
    fn what_is_no_url_of_a_collector_is_refused() {
        for url in
            ["", "a", "127.0.0.1:4318", "/v1/traces", "ftp://a", "http://", "http://u:p@a/", "http://a b"]
        {
            assert!(Endpoint::below(url).unwrap_err().contains("is not the URL"), "{url}");
        }
        assert!(Endpoint::below("https://a").unwrap_err().contains("needs TLS"));
    }
}
