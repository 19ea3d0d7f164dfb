//! The Unix sockets of HTTP servers that have their own.

use std::{
    collections::BTreeMap,
    fs,
    future::pending,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{AbortHandle, JoinSet},
};
use weir_host::{
    events::MainEvent,
    names::{ExtensionId, chain},
};

use super::{Bound, Door, Listener};
use crate::{Listen, http};

/// The pause before a socket that cannot be bound is tried again.
const SOCKET_PAUSE: Duration = Duration::from_secs(10);

/// The pause between an event of Main and the look at what it has changed.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// The sockets that are bound.
pub(super) type Sockets = Mutex<BTreeMap<PathBuf, Bound>>;

/// A server's own socket.
#[derive(Clone, Debug)]
pub(crate) struct OwnSocket {
    pub(crate) id: ExtensionId,
    pub(crate) path: Arc<Path>,
    /// The places that are free for connections to such sockets.
    places: Arc<Semaphore>,
}

impl OwnSocket {
    /// Waits for a place for another connection.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().acquire_owned().await.ok()
    }
}

impl Door {
    /// Listens on the servers' own sockets, as the configuration has them, also after a reload. Their connections have half
    /// of the `places` at most, since nothing there gives way to others.
    pub(super) async fn listen_for_servers(self, bound: Arc<Sockets>, places: usize) -> Result<(), String> {
        let own_places = Arc::new(Semaphore::new((places / 2).max(1)));
        let mut events = self.shared.control.events();
        let mut listening: BTreeMap<PathBuf, (ExtensionId, AbortHandle)> = BTreeMap::new();
        let (mut tasks, mut failed) = (JoinSet::new(), BTreeMap::new());
        let mut tries_again = true;
        loop {
            let wanted = self.shared.servers.sockets();
            // In the middle of a reload a path may be nobody's, and the next moment another server's. The reload's end is an
            // event, too.
            if !self.shared.control.is_reloading() {
                // First those that go: another server may have the path now.
                listening.retain(|path, (id, task)| {
                    let stays = wanted.get(path) == Some(id);
                    if !stays {
                        task.abort();
                    }
                    stays
                });
                bound.lock().retain(|path, _| wanted.contains_key(path));
                failed.retain(|path, _| wanted.contains_key(path));
            }
            for (path, id) in wanted {
                if listening.contains_key(&path) || failed.contains_key(&path) && !tries_again {
                    continue;
                }
                match listener(&bound, &path) {
                    Ok(listener) => {
                        tracing::info!("the gateway listens on `unix:{}` for `{id}`", path.display());
                        failed.remove(&path);
                        let router = http::server_router(self.shared.clone());
                        let places = own_places.clone();
                        let server = Some(OwnSocket { id: id.clone(), path: path.clone().into(), places });
                        let task =
                            tasks.spawn(Self { server, router, ..self.clone() }.listen(listener, true));
                        listening.insert(path, (id, task));
                    }
                    Err(error) => {
                        if failed.get(&path) != Some(&error) {
                            tracing::error!("`{id}` has no socket of its own: {error}");
                        }
                        failed.insert(path, error);
                    }
                }
            }
            tries_again = false;
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => {
                        tries_again = matches!(event, MainEvent::Reloaded);
                        // Events come in crowds, and one look is enough for all.
                        tokio::time::sleep(LOOK_PAUSE).await;
                        while let Some(Some(event)) = events.next().now_or_never() {
                            tries_again |= matches!(event, MainEvent::Reloaded);
                        }
                    }
                    // Main has ended, and ends the gateway.
                    None => pending().await,
                },
                () = tokio::time::sleep(SOCKET_PAUSE), if !failed.is_empty() => tries_again = true,
                Some(ended) = tasks.join_next() => match ended {
                    Err(error) if error.is_cancelled() => {}
                    ended => return ended.unwrap_or_else(|error| Err(error.to_string())),
                },
            }
        }
    }
}

/// The listener at a server's own socket, which is bound unless it is already.
fn listener(bound: &Sockets, path: &Path) -> Result<Listener, String> {
    let mut bound = bound.lock();
    if !bound.contains_key(path) {
        // One that is made here would let everybody in, and the operator's may not.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            let found = fs::metadata(parent).map_err(|error| format!("`{}`: {error}", parent.display()))?;
            if !found.is_dir() {
                return Err(format!("`{}` is no directory", parent.display()));
            }
        }
        let made = Bound::new(&Listen::Unix(path.to_owned())).map_err(|error| chain(&error))?;
        bound.insert(path.to_owned(), made);
    }
    let made = bound.get(path).ok_or("it is not bound")?;
    made.listener().map_err(|error| error.to_string())
}
