//! Contracts that Main itself serves, from Rust code.

use std::{collections::HashMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::Instant,
};
use weir_bus::{Bus, Error, HandlerError, Incoming, MessageId, Request, Responder, Taken, Waiter};
use weir_names::{ContractName, MAIN, OperationName};

/// Handlers of one contract that may run at once, or wait for a thread; further requests wait for them.
const MAX_HANDLERS: usize = 256;

/// What a handler answers.
pub type Answer = Result<Bytes, HandlerError>;

/// A request to a contract that Main serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServedRequest {
    /// The message's id.
    pub id: MessageId,
    /// Who sent it: an extension's id, or `main`.
    pub sender: String,
    /// The arguments.
    pub payload: Bytes,
    /// When the sender stops waiting.
    deadline: Instant,
    waiter: Arc<Waiter>,
}

impl ServedRequest {
    /// Time left for the answer.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Ends when nobody waits for the answer any more: for what a handler has begun elsewhere, since a
    /// future of its own is dropped then.
    pub async fn given_up(&self) {
        self.waiter.ended().await;
    }
}

type AsyncHandler = Arc<dyn Fn(ServedRequest) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

#[derive(Clone)]
enum Handler {
    Async(AsyncHandler),
    Blocking(Arc<dyn Fn(ServedRequest) -> Answer + Send + Sync>),
}

/// A contract with its handlers.
///
/// ```
/// use weir_host::{HandlerError, Service};
///
/// let info = Service::new("platform.info@1".parse()?)
///     .on("model".parse()?, async |_request| Ok("weir-box".into()))
///     .on_blocking("hostname".parse()?, |_request| {
///         let name = std::fs::read("/etc/hostname");
///         name.map(Into::into).map_err(|error| HandlerError::new("io", error.to_string()))
///     });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Service {
    contract: ContractName,
    handlers: HashMap<OperationName, Handler>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("contract", &self.contract)
            .field("operations", &self.handlers.keys())
            .finish()
    }
}

impl Service {
    /// A contract without operations yet.
    #[must_use]
    pub fn new(contract: ContractName) -> Self {
        Self { contract, handlers: HashMap::new() }
    }

    /// Adds an operation whose handler runs on the worker thread. It must not block: everything
    /// that Main does waits for it.
    ///
    /// Its future is dropped, at an await, at the deadline or when the caller gives up. What must be done
    /// to its end belongs into a task of its own. 256 run at once for each contract; further requests wait,
    /// as many as would wait for an extension, and are then refused as `overloaded`.
    #[must_use]
    pub fn on<F, R>(mut self, operation: OperationName, handler: F) -> Self
    where
        F: Fn(ServedRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Answer> + Send + 'static,
    {
        let handler: AsyncHandler = Arc::new(move |request| Box::pin(handler(request)));
        self.handlers.insert(operation, Handler::Async(handler));
        self
    }

    /// Adds an operation whose handler may block: it runs on the blocking pool, of which `[main]
    /// blocking-threads` is the size.
    ///
    /// Half of these threads are for handlers, in equal parts for each contract with such. The pool has more
    /// where that would be less than one for each. A request that nobody waits for any more gets no thread.
    /// A handler that runs has its thread until it returns: nothing can stop it.
    /// [`remaining`](ServedRequest::remaining) says how long it may take.
    #[must_use]
    pub fn on_blocking<F>(mut self, operation: OperationName, handler: F) -> Self
    where
        F: Fn(ServedRequest) -> Answer + Send + Sync + 'static,
    {
        self.handlers.insert(operation, Handler::Blocking(Arc::new(handler)));
        self
    }

    /// The contract that it serves.
    #[must_use]
    pub fn contract(&self) -> &ContractName {
        &self.contract
    }

    /// Whether any of its handlers takes a thread.
    pub(crate) fn blocks(&self) -> bool {
        self.handlers.values().any(|handler| matches!(handler, Handler::Blocking(_)))
    }
}

/// Serves requests to Main until dropped; handlers still at work are then dropped, too.
#[derive(Debug)]
pub(crate) struct Services {
    bus: Arc<Bus>,
    by_contract: HashMap<ContractName, Served>,
    /// Bytes that a request counts at least where it waits for a handler.
    least_waiting: usize,
}

/// A contract, and what is its own so that no other can take it all.
#[derive(Debug)]
struct Served {
    service: Service,
    handlers: Arc<Semaphore>,
    /// Bytes of requests that wait for one of these.
    waiting: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

impl Services {
    /// Declares what Main serves; the blocking handlers of each contract take at most so many threads.
    pub(crate) fn new(bus: Arc<Bus>, services: Vec<Service>, threads: usize) -> Result<Self, Error> {
        for service in &services {
            let operations: Vec<String> = service.handlers.keys().map(ToString::to_string).collect();
            bus.serve_from_main(&service.contract, &operations)?;
        }
        let inbox = bus.main().limits().inbox;
        let bytes = usize::try_from(inbox.bytes).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let own = |service: Service| Served {
            service,
            handlers: Arc::new(Semaphore::new(MAX_HANDLERS)),
            waiting: Arc::new(Semaphore::new(bytes)),
            threads: Arc::new(Semaphore::new(threads)),
        };
        let by_contract =
            services.into_iter().map(|service| (service.contract.clone(), own(service))).collect();
        let messages = usize::try_from(inbox.messages).unwrap_or(usize::MAX).max(1);
        Ok(Self { bus, by_contract, least_waiting: bytes.div_ceil(messages) })
    }

    pub(crate) async fn run(self) {
        let main = self.bus.main();
        let mut handlers = JoinSet::new();
        loop {
            tokio::select! {
                () = main.readable() => {
                    if let Taken::Message(Incoming::Request(request)) = main.take() {
                        self.handle(request, &mut handlers);
                    }
                    // The bus knows nothing of tokio's budget.
                    tokio::task::coop::consume_budget().await;
                }
                // A handler that panicked has dropped its duty to answer, which answers.
                Some(_ended) = handlers.join_next() => {}
            }
        }
    }

    fn handle(&self, request: Request, handlers: &mut JoinSet<()>) {
        let Request { payload, responder, .. } = request;
        let operation = responder.operation();
        let Some(own) = self.by_contract.get(&operation.contract) else { return };
        let Some(handler) = own.service.handlers.get(&operation.name).cloned() else { return };
        let place = match own.handlers.clone().try_acquire_owned() {
            Ok(slot) => Place::Slot(slot),
            Err(_) => {
                let bytes = u32::try_from(payload.len().max(self.least_waiting)).unwrap_or(u32::MAX);
                let Ok(room) = own.waiting.clone().try_acquire_many_owned(bytes) else {
                    responder.give(Err(Error::Overloaded(MAIN.to_owned())));
                    return;
                };
                Place::Waits(room, own.handlers.clone())
            }
        };
        let served = ServedRequest {
            id: responder.id(),
            sender: self.bus.peer(responder.sender()).map(|peer| peer.name().to_owned()).unwrap_or_default(),
            payload,
            deadline: responder.deadline(),
            waiter: responder.waiter(),
        };
        handlers.spawn(answer(handler, served, responder, place, own.threads.clone()));
    }
}

/// Where a request is on its way to a handler.
enum Place {
    /// It has one.
    Slot(OwnedSemaphorePermit),
    /// It has room to wait for one of these.
    Waits(OwnedSemaphorePermit, Arc<Semaphore>),
}

/// Has a handler answer a request, unless nobody waits for that any more first: a blocking one that runs goes on, of
/// all else nothing is left.
fn answer(
    handler: Handler,
    served: ServedRequest,
    responder: Responder,
    place: Place,
    threads: Arc<Semaphore>,
) -> impl Future<Output = ()> + Send {
    let waiter = responder.waiter();
    // An async function would hold each of its arguments twice.
    async move {
        let _slot = match place {
            Place::Slot(slot) => slot,
            Place::Waits(_room, slots) => match unless_ended(&waiter, slots.acquire_owned()).await {
                Some(Ok(slot)) => slot,
                _ => return,
            },
        };
        match handler {
            Handler::Async(handler) => {
                if let Some(outcome) = unless_ended(&waiter, handler(served)).await {
                    responder.give(outcome.map_err(Error::from));
                }
            }
            Handler::Blocking(handler) => {
                let Some(Ok(thread)) = unless_ended(&waiter, threads.acquire_owned()).await else { return };
                let work = tokio::task::spawn_blocking(move || {
                    let _thread = thread;
                    // It may have waited behind other work of the pool.
                    if !responder.is_done() {
                        responder.give(handler(served).map_err(Error::from));
                    }
                });
                // A handler that panicked has dropped its duty to answer, which answers.
                let _panicked = unless_ended(&waiter, work).await;
            }
        }
    }
}

/// What comes of it, unless nobody waits for the answer any more first. Most is there at once: the order spares that the rest.
async fn unless_ended<T>(waiter: &Waiter, work: impl Future<Output = T>) -> Option<T> {
    if waiter.is_done() {
        return None;
    }
    tokio::select! {
        biased;
        done = work => Some(done),
        () = waiter.ended() => None,
    }
}
