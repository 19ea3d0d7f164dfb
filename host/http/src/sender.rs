//! The sender of all requests. Its thread begins with the first request.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    runtime,
    sync::{Semaphore, mpsc},
};
use weir_config::Limits;

use crate::{
    client::{HttpClient, HttpGuest, Order},
    config::HttpConfig,
    connect::{Dialer, LOOKUPS, OfSystem, Resolve, Tls},
    error::HttpError,
    exchange::{Begun, carry_out, charged},
    pool::Pool,
};

/// The most requests that wait for the thread, which takes them at once. Further ones are refused.
const ORDERS: usize = 1024;

/// The least time between two beginnings of the thread, which may end by a fault.
const PAUSE: Duration = Duration::from_secs(1);

/// Called with the reason why the thread has ended, once it has begun again.
pub type OnEnd = Arc<dyn Fn(&str) + Send + Sync>;

/// Sends the requests of all guests. Clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub struct HttpSender(Arc<Inner>);

struct Inner {
    dialer: Arc<Dialer>,
    /// How many clients were made so far: the id of the next.
    clients: AtomicU64,
    thread: Mutex<Option<Running>>,
    on_end: OnEnd,
}

type Orders = mpsc::Sender<(Order, Begun)>;

struct Running {
    orders: Orders,
    thread: JoinHandle<()>,
    /// When the thread began, or, after its end, when the next one last failed to begin.
    began: Instant,
}

/// The sender cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotStarted(pub(crate) String);

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSender").finish_non_exhaustive()
    }
}

impl HttpSender {
    /// A sender whose thread has not begun yet. Reads [`HttpConfig::ca_file`], if there is one. A thread that has ended
    /// by a fault begins again with the next request; then `on_end` is called with the reason.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no valid certificates.
    pub fn new(config: &HttpConfig, on_end: OnEnd) -> Result<Self, NotStarted> {
        Self::with_resolver(config, Arc::new(OfSystem), on_end)
    }

    /// [`new`](Self::new), with another way to resolve names.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    #[doc(hidden)]
    pub fn with_resolver(
        config: &HttpConfig,
        resolver: Arc<dyn Resolve>,
        on_end: OnEnd,
    ) -> Result<Self, NotStarted> {
        let tls = Tls::of(config)?;
        let pool = Pool::new(config.connections, config.idle_timeout);
        Ok(Self(Arc::new(Inner {
            dialer: Arc::new(Dialer { tls, resolver, lookups: Arc::new(Semaphore::new(LOOKUPS)), pool }),
            clients: AtomicU64::new(0),
            thread: Mutex::default(),
            on_end,
        })))
    }

    /// The client of one guest.
    #[must_use]
    pub fn client(&self, guest: HttpGuest, limits: &Limits) -> HttpClient {
        HttpClient::new(self.clone(), self.0.clients.fetch_add(1, Ordering::Relaxed), guest, limits)
    }

    /// The number of open connections, and of the idle ones among them.
    #[doc(hidden)]
    #[must_use]
    pub fn connections(&self) -> (usize, usize) {
        self.0.dialer.pool.counts()
    }

    /// The most connections of one guest.
    pub(crate) fn share(&self) -> usize {
        self.0.dialer.pool.share()
    }

    pub(crate) fn order(&self, order: Order, request: Begun) -> Result<(), HttpError> {
        self.orders()?.try_send((order, request)).map_err(|_full| HttpError::TooMany)
    }

    /// The channel of orders to the thread, which is started if there is none.
    fn orders(&self) -> Result<Orders, HttpError> {
        let (orders, over) = self.begun()?;
        if let Some(over) = over {
            (self.0.on_end)(&over.why());
        }
        Ok(orders)
    }

    /// The channel of orders to the thread, which is started if there is none. If it takes the place of a thread that
    /// has ended, also returns that one.
    fn begun(&self) -> Result<(Orders, Option<Running>), HttpError> {
        let mut thread = self.0.thread.lock();
        match &mut *thread {
            Some(running) if !running.orders.is_closed() => Ok((running.orders.clone(), None)),
            Some(over) if over.began.elapsed() < PAUSE => {
                let why = "the thread that sends has ended, and begins again in a second";
                Err(HttpError::Configuration(why.to_owned()))
            }
            over => match start(self.0.dialer.clone()) {
                Ok(running) => Ok((running.orders.clone(), over.replace(running))),
                Err(error) => {
                    if let Some(over) = over {
                        over.began = Instant::now();
                    }
                    Err(HttpError::Configuration(format!("no thread: {error}")))
                }
            },
        }
    }
}

impl Running {
    /// Why the thread has ended. Does not wait for what the thread still drops.
    fn why(self) -> String {
        if !self.thread.is_finished() {
            return "its thread ends".to_owned();
        }
        match self.thread.join() {
            Ok(()) => "its thread has returned".to_owned(),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().copied();
                let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                format!("it has panicked: {}", text.unwrap_or("without a text"))
            }
        }
    }
}

fn start(dialer: Arc<Dialer>) -> io::Result<Running> {
    let (sender, mut orders) = mpsc::channel::<(Order, Begun)>(ORDERS);
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        // The threads that resolve names end a second after the last name.
        .max_blocking_threads(LOOKUPS)
        .thread_keep_alive(Duration::from_secs(1))
        .thread_name("weir-http-dns")
        .build()?;
    let work = move || {
        runtime.block_on(async {
            // Nobody joins these tasks: each ends with its guest, and all end with the runtime.
            while let Some((order, request)) = orders.recv().await {
                tokio::spawn(charged(order.client.clone(), carry_out(order, request, dialer.clone())));
            }
        });
        // Not joined: resolving a name may take half a minute.
        runtime.shutdown_background();
    };
    let thread = thread::Builder::new().name("weir-http".to_owned()).spawn(work)?;
    Ok(Running { orders: sender, thread, began: Instant::now() })
}

impl Drop for Inner {
    fn drop(&mut self) {
        let running = self.thread.get_mut().take();
        if let Some(Running { orders, thread, .. }) = running {
            drop(orders);
            if thread.join().is_err() {
                tracing::error!("the thread that sends HTTP requests had panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_begins_again_after_a_second_and_its_end_is_told() {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let heard = told.clone();
        let on_end: OnEnd = Arc::new(move |why| heard.lock().push(why.to_owned()));
        let sender = HttpSender::new(&HttpConfig::default(), on_end).unwrap();
        let set = |began| {
            let (orders, _gone) = mpsc::channel(1);
            let thread = thread::spawn(|| panic!("on purpose"));
            while !thread.is_finished() {
                thread::yield_now();
            }
            *sender.0.thread.lock() = Some(Running { orders, thread, began });
        };
        set(Instant::now());
        assert!(matches!(sender.orders(), Err(HttpError::Configuration(_))));
        assert!(told.lock().is_empty());
        set(Instant::now().checked_sub(PAUSE).unwrap());
        assert!(!sender.orders().unwrap().is_closed());
        assert!(!sender.orders().unwrap().is_closed());
        assert_eq!(*told.lock(), ["it has panicked: on purpose"]);
    }
}
