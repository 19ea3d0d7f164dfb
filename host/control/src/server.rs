//! Accepts connections and serves each, until Main has stopped everything else.

use std::{sync::Arc, time::Duration};

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
    net::{UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use weir_host::attached::{Attached, Closed};

use crate::{asker::Asker, routes, socket::ControlSocket};

/// Connections at once. More than one operator and a few scripts need, and few enough to leave file
/// descriptors to the extensions.
const MAX_CONNECTIONS: usize = 128;

/// Further connections at once, which are told that Main is busy. All others wait in the socket's backlog.
const MAX_REFUSED: usize = 16;

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
        let served = Places { router, free: Arc::new(Semaphore::new(MAX_CONNECTIONS)) };
        let refused =
            Places { router: routes::busy(MAX_CONNECTIONS), free: Arc::new(Semaphore::new(MAX_REFUSED)) };
        loop {
            tokio::select! {
                Some((stream, permit, router)) = accept(&listener, &served, &refused) => {
                    tokio::spawn(converse(stream, router, closed.clone(), permit));
                }
                () = closed.wait() => return,
            }
        }
    }
}

/// So many connections, and what answers them.
struct Places {
    router: Router,
    free: Arc<Semaphore>,
}

async fn accept(
    listener: &UnixListener,
    served: &Places,
    refused: &Places,
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
        permit = refused.free.clone().acquire_owned() => Some((stream, permit.ok()?, refused.router.clone())),
    }
}

/// Answers the requests of one connection.
async fn converse(stream: UnixStream, router: Router, mut closed: Closed, _permit: OwnedSemaphorePermit) {
    let (asker, router) = (Asker::of(&stream), TowerToHyperService::new(router));
    let named = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(asker.clone());
        router.call(request)
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
