//! Makes connections: resolves a name, leaves out addresses that are not allowed, dials the others, and begins TLS.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Semaphore,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{
    HttpConfig, NotStarted,
    admission::Route,
    client::Order,
    error::HttpError,
    exchange::charged,
    pool::{Connection, Pool},
};

/// Bytes that a connection reads ahead of its guest.
const READ_AHEAD: usize = 32 << 10;

/// Room in a connection's buffer for what is not headers: the status line of an answer, and the buffer's end.
const STATUS_LINE: usize = 1 << 10;

/// The most headers of an answer.
const HEADERS: usize = 128;

/// The most names that are resolved at once, each by a thread.
pub(crate) const LOOKUPS: usize = 16;

/// The most names that are resolved at once for one guest.
pub(crate) const LOOKUPS_OF_GUEST: usize = 2;

/// What a name was resolved to.
pub type Resolved = io::Result<Vec<SocketAddr>>;

/// Resolves names.
#[doc(hidden)]
pub trait Resolve: Send + Sync {
    /// The addresses of `host`, with `port`. May block for as long as it takes.
    fn resolve(&self, host: &str, port: u16) -> Resolved;
}

/// Resolves names as the system does.
pub(crate) struct OfSystem;

impl Resolve for OfSystem {
    fn resolve(&self, host: &str, port: u16) -> Resolved {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

/// What the sender's thread makes connections with.
pub(crate) struct Dialer {
    pub(crate) tls: Tls,
    pub(crate) resolver: Arc<dyn Resolve>,
    /// Permits for the [`LOOKUPS`] at once.
    pub(crate) lookups: Arc<Semaphore>,
    pub(crate) pool: Arc<Pool>,
}

impl Dialer {
    /// Makes a new connection for the order, within its time to connect.
    pub(crate) async fn connect(&self, order: &Order) -> Result<Connection, HttpError> {
        let end = Instant::now() + order.connect;
        let open = self.pool.open(&order.client, end).await?;
        let route = &order.route;
        let addresses = self.addresses(order, end).await?;
        let (stream, address) = dial(&addresses, end).await?;
        // An address that is on both ends is this device, whatever kind of address it is.
        if stream.local_addr()?.ip() == stream.peer_addr()?.ip() && !route.may_reach_itself(address) {
            let error = HttpError::AddressProhibited(format!(
                "`{}` has the address {address}, which is this device's own: `addresses = [\"loopback\"]` of the \
                 grant would allow it",
                route.place.host
            ));
            order.client.refuse(&error);
            return Err(error);
        }
        // Without `TCP_NODELAY`, small requests would wait for the acknowledgement of others.
        let _not_supported = stream.set_nodelay(true);
        let within = end.saturating_duration_since(Instant::now());
        let (requests, driver) = if route.place.is_tls {
            let name = ServerName::try_from(route.place.host.clone())
                .map_err(|error| HttpError::Uri(error.to_string()))?;
            let connected = timeout(within, self.tls.connector()?.connect(name, stream)).await;
            let stream = connected.map_err(|_late| HttpError::ConnectTimeout)??;
            handshake(stream, order).await?
        } else {
            handshake(stream, order).await?
        };
        let mut ended = order.all.clone();
        tokio::spawn(charged(order.client.clone(), async move {
            let _open = open;
            tokio::select! {
                biased;
                _dropped = ended.changed() => {}
                () = driver => {}
            }
        }));
        Ok(Connection { requests, address, late: Box::pin(sleep(order.first_byte)) })
    }

    /// The addresses of the order's host that the request may go to.
    async fn addresses(&self, order: &Order, end: Instant) -> Result<Vec<SocketAddr>, HttpError> {
        let Route { place, .. } = &order.route;
        let found = match place.host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, place.port)],
            Err(_name) => {
                let within = end.saturating_duration_since(Instant::now());
                let found = timeout(within, self.look_up(order)).await;
                found.map_err(|_late| HttpError::DnsTimeout)??
            }
        };
        let Some(first) = found.first().copied() else {
            return Err(HttpError::Dns("it has no address".to_owned()));
        };
        let allowed: Vec<_> =
            found.into_iter().filter(|address| order.route.may_reach(address.ip())).collect();
        if allowed.is_empty() {
            let error = HttpError::AddressProhibited(format!(
                "`{}` has the address {}, which is not public: `addresses` of the grant would allow it",
                place.host,
                first.ip()
            ));
            order.client.refuse(&error);
            return Err(error);
        }
        Ok(allowed)
    }

    /// The addresses of the order's name. A lookup cannot be cancelled: it keeps its permits until it ends, even if
    /// nobody waits for it any more.
    async fn look_up(&self, order: &Order) -> Result<Vec<SocketAddr>, HttpError> {
        let failed = |error: &dyn std::fmt::Display| HttpError::Dns(error.to_string());
        // The guest's own permit comes first, so that a guest with slow names delays only itself.
        let of_guest = order.client.lookups.clone().acquire_owned().await;
        let of_all = self.lookups.clone().acquire_owned().await;
        let places = (of_guest.map_err(|error| failed(&error))?, of_all.map_err(|error| failed(&error))?);
        let (resolver, place) = (self.resolver.clone(), order.route.place.clone());
        let found = spawn_blocking(move || {
            let _places = places;
            resolver.resolve(&place.host, place.port)
        });
        found.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}

/// Dials one address after the other until one accepts. Each has its share of the time.
async fn dial(addresses: &[SocketAddr], end: Instant) -> Result<(TcpStream, IpAddr), HttpError> {
    let mut failed = HttpError::ConnectTimeout;
    for (tried, address) in addresses.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match timeout(share.max(Duration::from_millis(1)), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok((stream, address.ip())),
            Ok(Err(error)) => failed = error.into(),
            Err(_late) => failed = HttpError::ConnectTimeout,
        }
    }
    Err(failed)
}

/// Runs a connection until it ends.
type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    order: &Order,
) -> Result<(http1::SendRequest<crate::body::CountedBody>, Driver), HttpError> {
    let header_size = usize::try_from(order.client.header_size).unwrap_or(usize::MAX);
    let (requests, connection) = http1::Builder::new()
        // All headers must fit into the buffer, with room for the line before them.
        .max_buf_size(header_size.saturating_add(STATUS_LINE).max(READ_AHEAD))
        .max_headers(HEADERS)
        .max_header_size(header_size)
        .handshake(TokioIo::new(stream))
        .await?;
    // Errors of the connection are dropped here, because they also reach the request that is under way.
    Ok((requests, Box::pin(async move { drop(connection.await) })))
}

/// The settings of TLS, which are made for the first connection that needs them.
#[derive(Default)]
pub(crate) struct Tls {
    /// The certificates of `http.ca-file`. With `None`, those of the system are trusted.
    roots: Option<Arc<RootCertStore>>,
    connector: OnceLock<TlsConnector>,
}

impl Tls {
    /// Trusts the certificates of [`HttpConfig::ca_file`] alone, or those of the system.
    pub(crate) fn of(config: &HttpConfig) -> Result<Self, NotStarted> {
        match &config.ca_file {
            Some(path) => Self::of_file(path).map_err(|error| NotStarted(error.to_string())),
            None => Ok(Self::default()),
        }
    }

    fn of_file(path: &Path) -> Result<Self, NotTrusted> {
        let failed = |why: String| NotTrusted { path: path.to_owned(), why };
        let found: Vec<_> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| failed(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in found {
            roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(failed("it has no certificate".to_owned()));
        }
        Ok(Self { roots: Some(Arc::new(roots)), connector: OnceLock::new() })
    }

    /// What begins TLS on a connection. Without `http.ca-file`, the first call reads the system's certificates, which
    /// blocks the sender's thread for milliseconds.
    pub(crate) fn connector(&self) -> Result<TlsConnector, HttpError> {
        if let Some(connector) = self.connector.get() {
            return Ok(connector.clone());
        }
        let roots = match &self.roots {
            Some(roots) => roots.clone(),
            None => system_roots()?,
        };
        // The provider is named, because a program with several providers has no default.
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpError::Configuration(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(self.connector.get_or_init(|| TlsConnector::from(Arc::new(config))).clone())
    }
}

fn system_roots() -> Result<Arc<RootCertStore>, HttpError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems have a few certificates that do not conform any more: those are left out.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        let message =
            format!("the system's certificates cannot be read, and `http.ca-file` is not set: {why}");
        return Err(HttpError::Configuration(message));
    }
    Ok(Arc::new(roots))
}

/// The operator's certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificates of `http.ca-file`, `{}`, cannot be used: {why}", path.display())]
pub(crate) struct NotTrusted {
    path: PathBuf,
    why: String,
}
