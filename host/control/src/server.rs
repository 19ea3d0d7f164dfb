//! Accepts connections and serves each, until Main has stopped everything else.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use weir_host::attached::{Attached, Closed};

use crate::{routes, socket::ControlSocket};

/// Connections at once; further ones wait in the socket's backlog. More than one operator and a few
/// scripts need, and few enough to leave file descriptors to the extensions.
const MAX_CONNECTIONS: usize = 128;

/// Time for the head of a request, and as long as a connection may wait between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the head of a request.
const MAX_HEAD: usize = 16 * 1024;

/// After a failed `accept`, as when file descriptors have run out: without a pause the next one would
/// fail as well, and the one after it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl ControlSocket {
    /// Serves the control interface until Main has stopped everything else. To be given to
    /// [`Builder::attach`](weir_host::Builder::attach).
    pub async fn serve(self, attached: Attached) {
        let (listener, _in_place) = match self.listen() {
            Ok(listening) => listening,
            Err(error) => return tracing::error!("cannot serve the control interface: {error}"),
        };
        let Attached { client, control, mut closed, .. } = attached;
        let router = routes::router(client, control, closed.clone());
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            tokio::select! {
                Some((stream, permit)) = accept(&listener, &connections) => {
                    tokio::spawn(converse(stream, router.clone(), closed.clone(), permit));
                }
                () = closed.wait() => return,
            }
        }
    }
}

async fn accept(
    listener: &UnixListener,
    connections: &Arc<Semaphore>,
) -> Option<(UnixStream, OwnedSemaphorePermit)> {
    let permit = connections.clone().acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return Some((stream, permit)),
            Err(error) => {
                tracing::warn!("cannot accept on the control socket: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers the requests of one connection.
async fn converse(stream: UnixStream, router: Router, mut closed: Closed, _permit: OwnedSemaphorePermit) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
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
