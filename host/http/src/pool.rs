//! The open connections, and the idle ones among them, which wait for another request.
//!
//! A connection serves one guest only. Otherwise an answer that one guest has prepared could reach another.

use std::{
    collections::VecDeque,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use tokio::{
    sync::OwnedSemaphorePermit,
    task::AbortHandle,
    time::{Sleep, sleep_until, timeout_at},
};

use crate::{
    admission::{Place, Route},
    body::CountedBody,
    client::Shared,
    error::HttpError,
};

/// The connections of all guests.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The idle connections, those that have been idle the longest first.
    idle: Mutex<VecDeque<Idle>>,
    open: AtomicUsize,
    max_open: usize,
    idle_timeout: Duration,
    /// The task that closes idle connections. It also counts as finished if its runtime is gone.
    reaper: Mutex<Option<AbortHandle>>,
}

/// A connection that is ready for a request.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) requests: SendRequest<CountedBody>,
    /// The address of the server.
    pub(crate) address: IpAddr,
    /// The timer for answers that are late, used for one answer after the other.
    pub(crate) late: Pin<Box<Sleep>>,
}

#[derive(Debug)]
struct Idle {
    guest: u64,
    place: Arc<Place>,
    since: Instant,
    connection: Connection,
}

/// An open connection, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    pool: Arc<Pool>,
    _place: OwnedSemaphorePermit,
}

impl Pool {
    pub(crate) fn new(max_open: u32, idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            idle: Mutex::default(),
            open: AtomicUsize::new(0),
            max_open: usize::try_from(max_open).unwrap_or(usize::MAX),
            idle_timeout,
            reaper: Mutex::default(),
        })
    }

    /// Takes an idle connection of this guest to an address that the request may go to.
    pub(crate) fn take(&self, guest: u64, route: &Route) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let fits = |idle: &Idle| {
            idle.guest == guest
                && idle.place == route.place
                && route.may_reach(idle.connection.address)
                && idle.connection.requests.is_ready()
        };
        // The connection that was used last is the least likely to be closed by its server.
        let place = idle.iter().rposition(fits)?;
        Some(idle.remove(place)?.connection)
    }

    /// Keeps a connection for another request.
    pub(crate) fn put(self: &Arc<Self>, guest: u64, place: Arc<Place>, connection: Connection) {
        if connection.requests.is_closed() {
            return;
        }
        self.idle.lock().push_back(Idle { guest, place, since: Instant::now(), connection });
        let mut reaper = self.reaper.lock();
        if reaper.as_ref().is_none_or(AbortHandle::is_finished) {
            *reaper = Some(tokio::spawn(self.clone().reap_idle()).abort_handle());
        }
    }

    /// Closes what has been idle for too long. Ends with the last one, so an empty pool has no timer.
    async fn reap_idle(self: Arc<Self>) {
        loop {
            let next = {
                let mut reaper = self.reaper.lock();
                let mut idle = self.idle.lock();
                let now = Instant::now();
                while idle.front().is_some_and(|first| now >= first.since + self.idle_timeout) {
                    idle.pop_front();
                }
                match idle.front() {
                    Some(first) => first.since + self.idle_timeout,
                    None => {
                        *reaper = None;
                        return;
                    }
                }
            };
            sleep_until(next.into()).await;
        }
    }

    /// Forgets connections that have ended.
    fn tidy(&self) {
        self.idle.lock().retain(|idle| !idle.connection.requests.is_closed());
    }

    /// The most connections of one guest: half of all, so that no guest has them all.
    pub(crate) fn share(&self) -> usize {
        (self.max_open / 2).max(1)
    }

    /// Takes room for one more connection of a guest. A guest without room loses its longest idle connection, and waits
    /// for room until `end`. If the pool is full, the longest idle connection of any guest is closed. Fails if that
    /// makes no room: the guest gets none in time, or no connection of the full pool is idle.
    pub(crate) async fn open(self: &Arc<Self>, guest: &Shared, end: Instant) -> Result<Open, HttpError> {
        let place = match guest.connections.clone().try_acquire_owned() {
            Ok(place) => place,
            Err(_none) => {
                self.close_idle(|idle| idle.guest == guest.id);
                // A connection that is being closed, or whose request is still written, gives its permit back soon.
                let place = timeout_at(end.into(), guest.connections.clone().acquire_owned()).await;
                place.map_err(|_late| HttpError::TooMany)?.map_err(|_closed| HttpError::TooMany)?
            }
        };
        let is_full = self.open.load(Ordering::Relaxed) >= self.max_open;
        if is_full && !self.close_idle(|_| true) {
            return Err(HttpError::TooMany);
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(Open { pool: self.clone(), _place: place })
    }

    /// Closes the longest idle connection for which `is_one` holds. Returns whether there was one.
    fn close_idle(&self, is_one: impl Fn(&Idle) -> bool) -> bool {
        let mut idle = self.idle.lock();
        let place = idle.iter().position(is_one);
        place.and_then(|place| idle.remove(place)).is_some()
    }

    /// The number of open connections, and of the idle ones among them.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.open.load(Ordering::Relaxed), self.idle.lock().len())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.pool.open.fetch_sub(1, Ordering::Relaxed);
        self.pool.tidy();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hyper_util::rt::TokioIo;
    use tokio::{runtime, task::yield_now, time::timeout};

    use super::*;

    async fn put(pool: &Arc<Pool>) {
        let (stream, _server) = tokio::io::duplex(64);
        let (requests, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        let late = Box::pin(sleep_until(Instant::now().into()));
        let place = Place { is_tls: false, host: "server".to_owned(), port: 80 };
        pool.put(0, Arc::new(place), Connection { requests, address: Ipv4Addr::LOCALHOST.into(), late });
    }

    #[test]
    fn idle_connections_are_closed_also_after_the_runtime_of_earlier_ones_has_gone() {
        let runtime = || runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let pool = Pool::new(4, Duration::ZERO);
        // It ends before anything is closed.
        runtime().block_on(put(&pool));
        assert_eq!(pool.counts().1, 1);
        runtime().block_on(async {
            put(&pool).await;
            let closed = async {
                while pool.counts().1 > 0 {
                    yield_now().await;
                }
            };
            timeout(Duration::from_secs(60), closed).await.unwrap();
        });
    }
}
