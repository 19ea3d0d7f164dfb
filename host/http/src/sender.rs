//! The sender: its thread, begun with the first request.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    runtime,
    sync::{Semaphore, mpsc},
};
use weir_config::Limits;

use crate::{
    client::{HttpClient, HttpGuest, Order},
    config::HttpConfig,
    connect::{Dialer, LOOKUPS, OfSystem, Resolve},
    error::HttpError,
    exchange::{Begun, carry_out, charged},
    pool::Pool,
    tls::Tls,
};

/// Requests that may wait for the thread, which takes them at once. Further ones are refused.
const ORDERS: usize = 1024;

/// Sends the requests of all guests. Clones share the thread; with the last one it ends.
#[derive(Clone)]
pub struct HttpSender(Arc<Inner>);

struct Inner {
    dialer: Arc<Dialer>,
    clients: AtomicU64,
    thread: Mutex<Option<Running>>,
}

struct Running {
    orders: mpsc::Sender<(Order, Begun)>,
    thread: JoinHandle<()>,
}

/// The sender cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotStarted(String);

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSender").finish_non_exhaustive()
    }
}

impl HttpSender {
    /// Starts nothing yet. Reads [`HttpConfig::ca_file`], if there is one.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no valid certificates.
    pub fn new(config: &HttpConfig) -> Result<Self, NotStarted> {
        Self::with_resolver(config, Arc::new(OfSystem))
    }

    /// The same, with another way to resolve names.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    #[doc(hidden)]
    pub fn with_resolver(config: &HttpConfig, resolver: Arc<dyn Resolve>) -> Result<Self, NotStarted> {
        let tls = match &config.ca_file {
            Some(path) => Tls::of_file(path).map_err(|error| NotStarted(error.to_string()))?,
            None => Tls::default(),
        };
        let pool = Pool::new(config.connections, config.idle_timeout);
        Ok(Self(Arc::new(Inner {
            dialer: Arc::new(Dialer { tls, resolver, lookups: Arc::new(Semaphore::new(LOOKUPS)), pool }),
            clients: AtomicU64::new(0),
            thread: Mutex::default(),
        })))
    }

    /// A way to send for one guest.
    #[must_use]
    pub fn client(&self, guest: HttpGuest, limits: &Limits) -> HttpClient {
        HttpClient::new(self.clone(), self.0.clients.fetch_add(1, Ordering::Relaxed), guest, limits)
    }

    /// Connections that are open, and those among them that are idle.
    #[doc(hidden)]
    #[must_use]
    pub fn connections(&self) -> (usize, usize) {
        self.0.dialer.pool.counts()
    }

    /// Connections that one guest may have.
    pub(crate) fn share(&self) -> usize {
        self.0.dialer.pool.share()
    }

    pub(crate) fn order(&self, order: Order, request: Begun) -> Result<(), HttpError> {
        let mut thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match &mut *thread {
            Some(running) => running,
            none => {
                let running = start(self.0.dialer.clone())
                    .map_err(|error| HttpError::Configuration(format!("no thread: {error}")))?;
                none.insert(running)
            }
        };
        running.orders.try_send((order, request)).map_err(|_full| HttpError::TooMany)
    }
}

fn start(dialer: Arc<Dialer>) -> io::Result<Running> {
    let (sender, mut orders) = mpsc::channel::<(Order, Begun)>(ORDERS);
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        // They end a second after the last name.
        .max_blocking_threads(LOOKUPS)
        .thread_keep_alive(Duration::from_secs(1))
        .thread_name("weir-http-dns")
        .build()?;
    let work = move || {
        runtime.block_on(async {
            // Each ends with its guest, and all with the runtime.
            while let Some((order, request)) = orders.recv().await {
                tokio::spawn(charged(order.client.clone(), carry_out(order, request, dialer.clone())));
            }
        });
        // A name may take its resolver half a minute.
        runtime.shutdown_background();
    };
    let thread = thread::Builder::new().name("weir-http".to_owned()).spawn(work)?;
    Ok(Running { orders: sender, thread })
}

impl Drop for Inner {
    fn drop(&mut self) {
        let running = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { orders, thread }) = running {
            drop(orders);
            if thread.join().is_err() {
                tracing::error!("the thread that sends HTTP requests had panicked");
            }
        }
    }
}
