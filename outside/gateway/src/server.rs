//! The thread of the gateway: its listeners, and the way of a connection to its protocol.

#[cfg(feature = "servers")]
mod own_sockets;

use std::{future::pending, io, net::SocketAddr, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use axum::Router;
use futures_util::future::OptionFuture;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::timeout,
};
use weir_connection::{Place, Remote};
use weir_host::attached::{Attached, on_thread};
use weir_sockets::SocketError;

#[cfg(feature = "servers")]
pub(crate) use self::own_sockets::OwnSocket;
#[cfg(feature = "tls")]
use crate::http2::{self, Watch};
use crate::{
    GatewayConfig, PART, http,
    http::{Caller, Permit},
    hub::Hub,
    shared::{Ending, Shared},
    stream::{Bound, Flow, Listener, Stream},
    streams,
    tls::Tls,
};

/// A server's own socket, in a build that has none: no value of this type can be made.
#[cfg(not(feature = "servers"))]
#[derive(Clone, Debug)]
pub(crate) enum OwnSocket {}

#[cfg(not(feature = "servers"))]
impl OwnSocket {
    #[expect(clippy::unused_async, reason = "a build with servers waits for a place")]
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        match *self {}
    }
}

/// The name of the gateway's thread, which `ps -L` shows.
const THREAD_NAME: &str = "weir-gateway";

/// Time for a TLS handshake, and after that for the head of the request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may read nothing of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of the head of a request, and of the buffer that a connection reads into.
const MAX_HEAD: usize = 16 * 1024;

/// The pause after a failed `accept`. Without it, a lack of file descriptors would keep the thread busy with failures.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for the last words to all apps. Main waits no longer than a second for the gateway. A restart of the gateway
/// waits for these words first, for at most this time.
const GRACE: Duration = Duration::from_millis(900);

/// Why the gateway cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// A Unix socket cannot be bound.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// An address cannot be bound.
    #[error("the gateway cannot listen on `{address}`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use `{}` for TLS: {why}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// The gateway, bound to its addresses. Connections wait there until [`serve`](Self::serve) answers them.
#[derive(Debug)]
pub struct Gateway {
    config: GatewayConfig,
    tls: Option<Tls>,
    http: Vec<Bound>,
    streams: Vec<Bound>,
    /// The servers' own sockets. They stay when the gateway starts again.
    #[cfg(feature = "servers")]
    of_servers: Arc<own_sockets::Sockets>,
}

impl Gateway {
    /// Binds all addresses. Returns `None` if no address is configured: then nothing of the gateway runs.
    ///
    /// # Errors
    ///
    /// [`GatewayError`] for an address that cannot be had, or a certificate that cannot be used.
    pub fn bind(config: &GatewayConfig) -> Result<Option<Self>, GatewayError> {
        if !config.is_configured() {
            return Ok(None);
        }
        let tls = config.tls.as_ref().map(Tls::new).transpose()?;
        let http = config.listen.iter().map(Bound::new).collect::<Result<_, _>>()?;
        let streams = config.streams.iter().map(Bound::new).collect::<Result<_, _>>()?;
        Ok(Some(Self {
            config: config.clone(),
            tls,
            http,
            streams,
            #[cfg(feature = "servers")]
            of_servers: Arc::default(),
        }))
    }

    /// Serves apps on a thread of its own until Main has stopped everything else. For
    /// [`Builder::attach`](weir_host::Builder::attach). A thread that ends before Main is started again, on the same
    /// addresses: see [`Attached::supervise`].
    pub async fn serve(self, attached: Attached) {
        let gateway = Arc::new(self);
        let again = |attached| {
            let gateway = gateway.clone();
            on_thread(THREAD_NAME, move || gateway.accept(attached))
        };
        attached.supervise(PART, again).await;
    }

    async fn accept(self: Arc<Self>, attached: Attached) -> Result<(), String> {
        let hub = Hub::new(&attached.peers).map_err(|error| error.to_string())?;
        let places = usize::try_from(self.config.connections).unwrap_or(usize::MAX);
        let shared = Shared::new(self.config.clone(), &attached, hub);
        let (alive, mut none_alive) = mpsc::channel(1);
        let mut closed = attached.closed;
        let door = Door {
            router: http::router(shared.clone()),
            shared: shared.clone(),
            tls: self.tls.clone(),
            server: None,
            free: Arc::new(Semaphore::new(places)),
            alive,
        };
        let mut tasks = JoinSet::new();
        for (bound, is_http) in
            self.http.iter().map(|bound| (bound, true)).chain(self.streams.iter().map(|bound| (bound, false)))
        {
            let listener = bound.listener().map_err(|error| format!("it cannot listen: {error}"))?;
            let what = if is_http { "" } else { " for streams" };
            tracing::info!("the gateway listens on `{}`{what}", listener.address().unwrap_or_default());
            tasks.spawn(door.clone().listen(listener, is_http));
        }
        #[cfg(feature = "servers")]
        tasks.spawn(door.clone().listen_for_servers(self.of_servers.clone(), places));
        drop(door);
        let (events, timers) = (shared.clone(), shared.clone());
        tasks.spawn(async move { events.hub.run().await });
        // Neither of the two ends by itself.
        tasks.spawn(async move {
            tokio::join!(timers.tickets.expire(), timers.tick());
            Ok(())
        });
        let ended = tokio::select! {
            () = closed.wait() => Ok(()),
            Some(ended) = tasks.join_next() => ended.unwrap_or_else(|error| Err(error.to_string())),
        };
        let why = match ended {
            Ok(()) => {
                // The session of the hub ends just before Main closes the gateway.
                closed.wait().await;
                Ending::Main
            }
            // If a task is missing, apps wait for what never comes: all connections end, and the gateway starts again.
            Err(_) => Ending::Restart,
        };
        tasks.shutdown().await;
        // Each app hears why.
        shared.end(why);
        let _rest_cut_off = timeout(GRACE, none_alive.recv()).await;
        ended
    }
}

/// What accepts connections. The listener of each address has a clone.
#[derive(Clone)]
struct Door {
    shared: Arc<Shared>,
    router: Router,
    tls: Option<Tls>,
    /// The server whose own socket this is the door of.
    server: Option<OwnSocket>,
    /// The places of `gateway.connections` that are free.
    free: Arc<Semaphore>,
    /// When the gateway ends, it waits until every connection has dropped its clone.
    alive: mpsc::Sender<()>,
}

impl Door {
    /// Accepts connections until the task is dropped.
    async fn listen(self, listener: Listener, is_http: bool) -> Result<(), String> {
        loop {
            match listener.accept().await {
                Ok(stream) => {
                    let own = match &self.server {
                        Some(own) => own.place().await,
                        None => None,
                    };
                    let permit = self.permit(stream.source).await.ok_or("it has no places")?;
                    let permit = (permit, own);
                    // Whoever can open a server's own socket is no stranger.
                    let place = self.server.is_none().then(|| self.shared.strangers.enter(stream.source));
                    // Ends at the latest with the runtime. Before that the gateway waits until `alive` is dropped.
                    tokio::spawn(self.clone().welcome(stream, place, permit, is_http));
                }
                Err(error) => {
                    tracing::warn!("the gateway cannot accept: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits for a place among `gateway.connections`. If none is free, a connection that has not proved a name is
    /// closed for it. Without such a connection, new ones wait in the backlog.
    async fn permit(&self, source: Remote) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Some(permit);
        }
        self.shared.strangers.evict(source);
        self.free.clone().acquire_owned().await.ok()
    }

    /// Counts and logs a connection that was closed because another took its place.
    fn made_room(&self) {
        let text = "a connection that had not proved a name made room for another";
        self.shared.part.refused("busy", || text.to_owned());
    }

    async fn welcome(self, stream: Stream, mut place: Option<Place>, permit: Permit, is_http: bool) {
        let flow = Arc::<Flow>::default();
        // Watched below TLS, because TLS takes bytes even if the client reads none.
        let stream = if is_http { stream.watched(flow.clone(), READ_TIMEOUT) } else { stream };
        let secured = tokio::select! {
            biased;
            secured = timeout(HEAD_TIMEOUT, secure(self.tls.as_ref(), stream)) => secured,
            Some(()) = OptionFuture::from(place.as_mut().map(Place::taken)) => return self.made_room(),
            _ending = self.shared.ending() => return,
        };
        let failed =
            |why: String| self.shared.part.refused("tls", || format!("a TLS handshake failed: {why}"));
        let stream = match secured {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return failed(error.to_string()),
            Err(elapsed) => return failed(elapsed.to_string()),
        };
        if is_http {
            self.converse(stream, flow, place, permit).await;
        } else if let Some(place) = place {
            let Self { shared, alive, .. } = self;
            streams::converse(&shared, stream, place).await;
            drop((permit, alive));
        }
    }

    async fn converse(self, stream: Stream, flow: Arc<Flow>, place: Option<Place>, permit: Permit) {
        let proved = Arc::new(Notify::new());
        let caller = Caller {
            server: self.server.clone(),
            uid: stream.uid,
            is_unix: stream.is_unix,
            is_tls: stream.wants_tls,
            proved: proved.clone(),
            flow,
            _permit: Arc::new(permit),
            _alive: self.alive.clone(),
        };
        let router = TowerToHyperService::new(self.router.clone());
        #[cfg(feature = "tls")]
        if stream.is_http2 {
            let (watch, flow) = (Arc::new(Watch::default()), caller.flow.clone());
            let requests = watch.clone();
            let service = service_fn(move |mut request: Request<Incoming>| {
                let under = requests.begin(&mut request);
                request.extensions_mut().insert(caller.clone());
                let answer = router.call(request);
                async move { answer.await.map(|answer| under.answered(answer)) }
            });
            let builder = http2::builder(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
            let connection = builder.serve_connection(TokioIo::new(stream.io), service);
            let (end, overdue) = (watch.end(&flow, READ_TIMEOUT), watch.overdue(&flow, READ_TIMEOUT));
            return self
                .drive(
                    connection,
                    hyper::server::conn::http2::Connection::graceful_shutdown,
                    end,
                    overdue,
                    &proved,
                    place,
                )
                .await;
        }
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(caller.clone());
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream.io), service)
            .with_upgrades();
        let graceful = http1::UpgradeableConnection::graceful_shutdown;
        self.drive(connection, graceful, pending(), pending(), &proved, place).await;
    }

    /// Serves a connection to its end. Before it has proved a name it gives way to others; later it ends gracefully with
    /// the gateway. It ends with `end`, too, which says whether what is under way may end, and at the latest with `overdue`,
    /// which is waited for from then on.
    async fn drive<C: Future<Output = hyper::Result<()>>>(
        &self,
        connection: C,
        graceful: fn(Pin<&mut C>),
        end: impl Future<Output = bool>,
        overdue: impl Future<Output = ()>,
        proved: &Notify,
        mut place: Option<Place>,
    ) {
        let (mut connection, mut end) = (std::pin::pin!(connection), std::pin::pin!(end));
        let mut overdue = std::pin::pin!(overdue);
        let (mut is_last, mut is_ending) = (false, false);
        let ended = loop {
            tokio::select! {
                // In this order, so that a connection that has just proved its name keeps its place.
                biased;
                ended = connection.as_mut() => break ended,
                () = proved.notified(), if place.is_some() => place = None,
                Some(()) = OptionFuture::from(place.as_mut().map(Place::taken)) => return self.made_room(),
                may_end = end.as_mut(), if !is_last => {
                    if !may_end {
                        return;
                    }
                    is_last = true;
                    graceful(connection.as_mut());
                }
                () = overdue.as_mut(), if is_last => return,
                _ending = self.shared.ending(), if !is_ending => {
                    if place.is_some() {
                        return;
                    }
                    is_ending = true;
                    graceful(connection.as_mut());
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a connection to the gateway broke: {error}");
        }
    }
}

async fn secure(tls: Option<&Tls>, stream: Stream) -> io::Result<Stream> {
    match tls {
        Some(tls) if stream.wants_tls => tls.accept(stream).await,
        // The check of the configuration refuses such an address without a certificate.
        None if stream.wants_tls => Err(io::Error::other("there is no certificate")),
        _ => Ok(stream),
    }
}
