//! `weir metrics`: Main's metrics as text, once, or for whatever scrapes them.

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use weir_control::{CLASSIC_METRICS, OPENMETRICS};

use crate::{
    args::Target,
    client::{Client, Patience, Route, Signals},
    exit::{self, Usage},
    output,
};

/// The most scrapers that are answered at one time. Others wait in the backlog.
const MAX_CONNECTIONS: usize = 8;

/// The time limit of one scrape. A scraper that sends nothing or does not read must not keep others out for longer.
const MAX_AGE: Duration = Duration::from_secs(30);

/// The pause after `accept` has failed. Without a pause it would fail again and again, as without free file
/// descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
docs/metrics.md describes every metric, and how Prometheus finds them. With --listen, Main is asked at each
scrape alone, and a Main that is not there is answered with 503. A scraper may reach no more than the metrics.

Examples:
  weir metrics
  weir metrics --listen 127.0.0.1:9464
  weir metrics | grep ^weir_request_duration_seconds_count")]
pub(crate) struct Args {
    /// Serve the metrics at http://ADDRESS/metrics until a signal, for Prometheus
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Let --listen name an address that other machines reach. There is no TLS and no password
    #[arg(long, requires = "listen")]
    allow_remote: bool,
    /// Show topics, too: there may be thousands
    #[arg(long)]
    topics: bool,
    #[command(flatten)]
    target: Target,
}

pub(super) async fn run(Args { listen, allow_remote, topics, target }: Args) -> anyhow::Result<()> {
    let bridge = Bridge { socket: target.socket()?.into(), topics, is_local: !allow_remote };
    let Some(address) = listen else { return output::write(&bridge.scrape(false).await?) };
    if bridge.is_local && !address.ip().is_loopback() {
        let message = format!(
            "other machines reach `{address}`, without TLS or a password: add --allow-remote, or listen on 127.0.0.1"
        );
        return Err(Usage(message).into());
    }
    bridge.serve(address).await
}

struct Bridge {
    socket: Box<Path>,
    topics: bool,
    /// Whether requests must name `localhost` or an address as their host. A web page of a stranger, which this
    /// machine's browser shows, can then not read the metrics.
    is_local: bool,
}

impl Bridge {
    async fn scrape(&self, is_classic: bool) -> anyhow::Result<Bytes> {
        let is = |flag: bool| flag.then_some("true");
        let route = Route::new(&["metrics"]).with("topics", is(self.topics)).with("classic", is(is_classic));
        let mut client = Client::connect_to(&self.socket).await?;
        client.ask(Method::GET, &route, Bytes::new(), Patience::Query).await
    }

    /// Answers scrapers until a signal.
    async fn serve(self, address: SocketAddr) -> anyhow::Result<()> {
        let mut signals = Signals::new()?;
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("cannot listen on `{address}`"))?;
        output::write(format!("http://{}/metrics\n", listener.local_addr()?).as_bytes())?;
        tokio::select! {
            () = self.accept(listener) => Ok(()),
            _ = signals.next() => Ok(()),
        }
    }

    async fn accept(self, listener: TcpListener) {
        let (bridge, free) = (Arc::new(self), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        loop {
            let Ok(place) = free.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let bridge = bridge.clone();
                    tokio::spawn(async move {
                        bridge.converse(stream).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    exit::say(&anyhow::Error::new(error).context("cannot accept a scraper"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn converse(self: Arc<Self>, stream: TcpStream) {
        let answer = service_fn(|request| {
            let bridge = self.clone();
            async move { Ok::<_, Infallible>(bridge.answer(request).await) }
        });
        let connection =
            http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), answer);
        // A scraper that breaks off or is too slow comes again.
        let _ended = tokio::time::timeout(MAX_AGE, connection).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        if self.is_local && !host.is_some_and(is_of_this_machine) {
            return said(StatusCode::FORBIDDEN, "the host is another than `localhost` or an address\n");
        }
        let accepted = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let is_classic = accepted.is_some_and(wants_classic);
        let kind = if is_classic { CLASSIC_METRICS } else { OPENMETRICS };
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") => match self.scrape(is_classic).await {
                Ok(text) => of_type(StatusCode::OK, kind, text),
                Err(error) => said(StatusCode::SERVICE_UNAVAILABLE, exit::chain(&error) + "\n"),
            },
            (&Method::GET | &Method::HEAD, "/") => said(StatusCode::OK, "Weir's metrics are at /metrics\n"),
            (&Method::GET | &Method::HEAD, _) => said(StatusCode::NOT_FOUND, "only /metrics is here\n"),
            _ => said(StatusCode::METHOD_NOT_ALLOWED, "only GET is understood\n"),
        }
    }
}

/// Whether a scraper accepts the text format that was before OpenMetrics, and not OpenMetrics itself.
fn wants_classic(accepted: &str) -> bool {
    accepted.contains("text/plain") && !accepted.contains("application/openmetrics-text")
}

/// Whether the host of a URL is `localhost` or an address. A stranger's DNS server can give this machine any other
/// name.
fn is_of_this_machine(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    let name = name.map_or(host, |(name, _)| name);
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok()
}

fn said(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    of_type(status, "text/plain; charset=utf-8", text)
}

fn of_type(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_of_this_machine() {
        for host in ["127.0.0.1:9464", "127.0.0.1", "localhost", "localhost:1", "[::1]:9464", "[::1]"] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example:1"]
        {
            assert!(!is_of_this_machine(host), "{host}");
        }
    }
}
