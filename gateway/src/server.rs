//! The thread of the gateway: its listeners, and the way of a connection to its protocol.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, thread, time::Duration};

use axum::Router;
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
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};
use weir_connection::{Place, Source};
use weir_host::{
    Control,
    attached::{Attached, Closed},
    peers::Peers,
};
use weir_sockets::SocketError;

use crate::{
    GatewayConfig, http,
    http::Caller,
    hub::{self, Hub},
    shared::Shared,
    stream::{Bound, Flow, Listener, Stream},
    streams,
    tls::Tls,
};

/// As `ps -L` shows it.
const THREAD_NAME: &str = "weir-gateway";

/// Time for a TLS handshake, for the head of a request, and between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may read nothing of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_HEAD: usize = 16 * 1024;

/// Without a pause, `accept` fails again and again, as when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for the last words to all apps. Main waits for a second.
const GRACE: Duration = Duration::from_millis(900);

/// Why the gateway cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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

/// The gateway, bound to its addresses. Nobody answers yet.
#[derive(Debug)]
pub struct Gateway {
    config: GatewayConfig,
    tls: Option<Tls>,
    http: Vec<Bound>,
    streams: Vec<Bound>,
}

impl Gateway {
    /// Binds all addresses. None if none is configured: then nothing of the gateway runs.
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
        Ok(Some(Self { config: config.clone(), tls, http, streams }))
    }

    /// Serves apps on a thread of its own until Main has stopped everything else. For
    /// [`Builder::attach`](weir_host::Builder::attach).
    pub async fn serve(self, attached: Attached) {
        let Attached { peers, control, closed, .. } = attached;
        let (ended, end) = oneshot::channel();
        let serve = move || {
            if let Err(error) = self.run(&peers, control, closed) {
                tracing::error!("the gateway cannot serve: {error}");
            }
            // Fails only if Main waits no longer.
            let _main = ended.send(());
        };
        match thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(serve) {
            // Fails only if the thread has panicked.
            Ok(_thread) => drop(end.await),
            Err(error) => tracing::error!("the gateway cannot serve: {error}"),
        }
    }

    fn run(self, peers: &Peers, control: Control, closed: Closed) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        runtime.block_on(self.accept(peers, control, closed))
    }

    async fn accept(self, peers: &Peers, control: Control, mut closed: Closed) -> io::Result<()> {
        let Self { config, tls, http, streams } = self;
        let hub = Hub::new(peers).map_err(io::Error::other)?;
        let places = usize::try_from(config.connections).unwrap_or(usize::MAX);
        let shared = Shared::new(config, peers.clone(), control, hub);
        let (alive, mut none_alive) = mpsc::channel(1);
        let door = Door {
            router: http::router(shared.clone()),
            shared: shared.clone(),
            tls,
            free: Arc::new(Semaphore::new(places)),
            closed: closed.clone(),
            alive,
        };
        let mut tasks = JoinSet::new();
        for (bound, is_http) in
            http.into_iter().map(|bound| (bound, true)).chain(streams.into_iter().map(|bound| (bound, false)))
        {
            let listener = bound.listener()?;
            let what = if is_http { "" } else { " for streams" };
            tracing::info!("the gateway listens on `{}`{what}", listener.address()?);
            tasks.spawn(door.clone().listen(listener, is_http));
        }
        drop(door);
        for work in [Work::Hub, Work::Tickets, Work::Pings] {
            let shared = shared.clone();
            tasks.spawn(async move {
                match work {
                    Work::Hub => shared.hub.run().await,
                    Work::Tickets => shared.tickets.expire().await,
                    Work::Pings => shared.tick().await,
                }
            });
        }
        tokio::select! {
            () = closed.wait() => {}
            // With less than all of it, apps would wait for what never comes.
            Some(ended) = tasks.join_next() => match ended {
                Err(error) => tracing::error!("the gateway ends, because a part of it has panicked: {error}"),
                // All other parts go on for ever.
                Ok(()) => tracing::error!("the gateway ends, because the session `{}` has ended", hub::NAME),
            },
        }
        tasks.shutdown().await;
        // Each app hears that Main ends.
        let _rest_cut_off = timeout(GRACE, none_alive.recv()).await;
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Work {
    Hub,
    Tickets,
    Pings,
}

/// The way in, the same at each address.
#[derive(Clone)]
struct Door {
    shared: Arc<Shared>,
    router: Router,
    tls: Option<Tls>,
    free: Arc<Semaphore>,
    closed: Closed,
    alive: mpsc::Sender<()>,
}

impl Door {
    async fn listen(self, listener: Listener, is_http: bool) {
        loop {
            match listener.accept().await {
                Ok(stream) => {
                    let Some(permit) = self.permit(stream.source).await else { return };
                    let place = self.shared.strangers.enter(stream.source);
                    // Ends with the runtime, which waits for it first.
                    tokio::spawn(self.clone().welcome(stream, place, permit, is_http));
                }
                Err(error) => {
                    tracing::warn!("the gateway cannot accept: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// One of `gateway.connections`, from one that has not proved a name if none is free. Without any such, further
    /// connections wait in the backlog.
    async fn permit(&self, source: Source) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Some(permit);
        }
        self.shared.strangers.evict(source);
        self.free.clone().acquire_owned().await.ok()
    }

    async fn welcome(
        mut self,
        stream: Stream,
        mut place: Place,
        permit: OwnedSemaphorePermit,
        is_http: bool,
    ) {
        let flow = Arc::<Flow>::default();
        // Below TLS, which would take bytes that nobody reads.
        let stream = if is_http { stream.watched(flow.clone(), READ_TIMEOUT) } else { stream };
        let secured = tokio::select! {
            secured = timeout(HEAD_TIMEOUT, secure(self.tls.as_ref(), stream)) => secured,
            () = place.taken() => return,
            () = self.closed.wait() => return,
        };
        let stream = match secured {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!("a TLS handshake failed: {error}"),
            Err(_elapsed) => return,
        };
        if is_http {
            self.converse(stream, flow, place, permit).await;
        } else {
            let Self { shared, closed, alive, .. } = self;
            streams::converse(&shared, stream, place, closed).await;
            drop((permit, alive));
        }
    }

    async fn converse(
        mut self,
        stream: Stream,
        flow: Arc<Flow>,
        mut place: Place,
        permit: OwnedSemaphorePermit,
    ) {
        let proved = Arc::new(Notify::new());
        let caller = Caller {
            uid: stream.uid,
            is_unix: stream.is_unix,
            proved: proved.clone(),
            flow,
            _permit: Arc::new(permit),
            _alive: self.alive.clone(),
        };
        let router = TowerToHyperService::new(self.router.clone());
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
        let mut connection = std::pin::pin!(connection);
        let first = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = place.taken() => return,
            () = proved.notified() => None,
            () = self.closed.wait() => return,
        };
        drop(place);
        let ended = match first {
            Some(ended) => ended,
            None => tokio::select! {
                ended = connection.as_mut() => ended,
                () = self.closed.wait() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            },
        };
        if let Err(error) = ended {
            tracing::debug!("a connection to the gateway broke: {error}");
        }
    }
}

async fn secure(tls: Option<&Tls>, stream: Stream) -> io::Result<Stream> {
    match tls {
        Some(tls) if stream.wants_tls => tls.accept(stream).await,
        // Its configuration was refused.
        None if stream.wants_tls => Err(io::Error::other("there is no certificate")),
        _ => Ok(stream),
    }
}
