//! Accepts and serves connections until Main has stopped everything else.

use std::{
    convert::Infallible,
    fmt,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::Arc,
    time::Duration,
};

use axum::{Router, extract::FromRequestParts, http::request::Parts, response::IntoResponse};
use hyper::{
    Request, StatusCode,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use weir_host::{
    Control,
    attached::{Attached, Closed, Part},
    names::harmless,
};
use weir_sockets::{BoundSocket, Opens, SocketError};

use crate::{
    error::Refusal,
    routes::{self, ServerState},
};

/// The most connections: more than operators need, and few enough to leave file descriptors to the extensions.
const MAX_CONNECTIONS: usize = 128;

/// The most further connections that are answered with `busy`. Those beyond wait in the backlog.
const MAX_REFUSED: usize = 16;

/// Time for a request's head, and between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_HEAD: usize = 16 * 1024;

/// The most bytes of a command's method and path that the log shows.
const MAX_SAID: usize = 256;

/// The pause after `accept` has failed. Without it, `accept` would fail again and again while file descriptors have run
/// out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The name of the control interface among the parts of Main.
const PART: &str = "control-socket";

/// The socket of the control interface, which only its owner can open. Nobody answers before [`serve`](Self::serve).
/// Clones share the socket, and the last of them gives it back.
#[derive(Clone, Debug)]
pub struct ControlSocket(Arc<BoundSocket>);

impl ControlSocket {
    /// Binds the socket. Takes over the socket of a Main that ended without removing it.
    ///
    /// # Errors
    ///
    /// [`SocketError::InUse`] if another Main answers there. Other errors mean that something else than a socket is at
    /// the path, that no socket can have this path, or that the system refuses.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        BoundSocket::bind(path, Opens::Owner).map(|socket| Self(socket.into()))
    }

    /// Serves the control interface until Main has stopped everything else. Embedders give it to
    /// [`Builder::attach`](weir_host::Builder::attach). Starts again if it ends before.
    pub async fn serve(self, attached: Attached) {
        // Made here, because connections outlive `accept_all` and keep their places when it starts again.
        let free = [MAX_CONNECTIONS, MAX_REFUSED].map(|places| Arc::new(Semaphore::new(places)));
        attached.supervise(PART, |attached| self.clone().accept_all(attached, free.clone())).await;
    }

    async fn accept_all(
        self,
        attached: Attached,
        [free, free_to_refuse]: [Arc<Semaphore>; 2],
    ) -> Result<(), String> {
        let listener = self.0.listener.try_clone().and_then(UnixListener::from_std);
        let listener = listener.map_err(|error| format!("it cannot listen: {error}"))?;
        let part = attached.part(PART);
        let Attached { client, control, peers, mut closed, .. } = attached;
        let router = routes::router(client, control, peers, closed.clone());
        let served = Places { router, free };
        let refused = Places { router: routes::busy(MAX_CONNECTIONS), free: free_to_refuse };
        loop {
            tokio::select! {
                Some((stream, permit, router)) = accept(&listener, &served, &refused, &part) => {
                    tokio::spawn(converse(stream, router, closed.clone(), permit));
                }
                () = closed.wait() => return Ok(()),
            }
        }
    }
}

/// The routes for some connections, and how many more of these there may be.
struct Places {
    router: Router,
    free: Arc<Semaphore>,
}

/// The next connection, with its place and its routes: those of `served`, or of `refused` if all of its places are
/// taken. `None` if a semaphore is closed.
async fn accept(
    listener: &UnixListener,
    served: &Places,
    refused: &Places,
    part: &Part,
) -> Option<(UnixStream, OwnedSemaphorePermit, Router)> {
    let stream = loop {
        match listener.accept().await {
            Ok((stream, _)) => break stream,
            Err(error) => {
                tracing::warn!("cannot accept on the control socket: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    };
    tokio::select! {
        biased;
        permit = served.free.clone().acquire_owned() => Some((stream, permit.ok()?, served.router.clone())),
        permit = refused.free.clone().acquire_owned() => {
            part.refused("busy", || format!("all {MAX_CONNECTIONS} connections of the control socket are in use"));
            Some((stream, permit.ok()?, refused.router.clone()))
        }
    }
}

async fn converse(stream: UnixStream, router: Router, mut closed: Closed, _permit: OwnedSemaphorePermit) {
    let (asker, router) = (Asker::of(&stream), TowerToHyperService::new(router));
    // The check below needs a descriptor of its own, since the connection owns the stream. Without one, every command
    // is carried out.
    let other_end = stream.as_fd().try_clone_to_owned().ok();
    let named = service_fn(move |mut request: Request<Incoming>| {
        // A command that has begun goes on without its asker. One whose asker has gone before is not begun.
        let is_unwanted = !request.method().is_safe() && other_end.as_ref().is_some_and(has_hung_up);
        if is_unwanted {
            let command = harmless(format_args!("{} {}", request.method(), request.uri()), MAX_SAID);
            tracing::info!("not carried out, because its asker had gone before: {command} by=\"{asker}\"");
        }
        request.extensions_mut().insert(asker.clone());
        let answer = (!is_unwanted).then(|| router.call(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => {
                    Ok(Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", "nobody waits").into_response())
                }
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), named);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closed.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection to the control socket broke: {error}");
    }
}

/// Whether the other end is closed. A client that has only ended its own output still waits for the answer.
fn has_hung_up(stream: &OwnedFd) -> bool {
    // The system reports a hang-up without being asked.
    let mut looked = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut looked, Some(&Timespec::default())).is_ok()
        && looked.iter().any(|stream| stream.revents().contains(PollFlags::HUP))
}

/// The process at the other end of a connection: its user and number, as the kernel knows them.
#[derive(Clone, Debug)]
pub(super) struct Asker(Arc<str>);

impl Asker {
    pub(super) fn of(stream: &UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        let name = credentials.map(|of| match of.pid() {
            Some(pid) => format!("uid {}, pid {pid}", of.uid()),
            None => format!("uid {}", of.uid()),
        });
        Self(name.map_or_else(|| "an unknown process".into(), Into::into))
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromRequestParts<ServerState> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _served: &ServerState) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self("an unknown process".into())))
    }
}

/// [`Control`] in the asker's name.
pub(super) struct AskedControl(pub(super) Control);

impl FromRequestParts<ServerState> for AskedControl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, served: &ServerState) -> Result<Self, Infallible> {
        let Asker(name) = Asker::from_request_parts(parts, served).await?;
        Ok(Self(served.control.by(name)))
    }
}
