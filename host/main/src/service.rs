//! Contracts that Main itself serves, from Rust code.

use std::{collections::HashMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use weir_bus::{Bus, Error, HandlerError, Incoming, MessageId, Request, Taken, Waiter};
use weir_names::{ContractName, OperationName};

/// Handlers that may run at once; further requests wait in Main's inbox.
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

    /// Ends when nobody waits for the answer any more. One clone of a request can wait for that.
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
}

/// Serves requests to Main until dropped; handlers still at work are then dropped, too.
#[derive(Debug)]
pub(crate) struct Services {
    bus: Arc<Bus>,
    by_contract: HashMap<ContractName, Service>,
    /// Threads of the blocking pool that handlers may take: not all, or a handler that waits for an
    /// extension's files would wait for itself.
    threads: Arc<Semaphore>,
}

impl Services {
    /// Declares what Main serves; its blocking handlers take at most so many threads.
    pub(crate) fn new(bus: Arc<Bus>, services: Vec<Service>, threads: usize) -> Result<Self, Error> {
        for service in &services {
            let operations: Vec<String> = service.handlers.keys().map(ToString::to_string).collect();
            bus.serve_from_main(&service.contract, &operations)?;
        }
        let by_contract = services.into_iter().map(|service| (service.contract.clone(), service)).collect();
        Ok(Self { bus, by_contract, threads: Arc::new(Semaphore::new(threads)) })
    }

    pub(crate) async fn run(self) {
        let main = self.bus.main();
        let mut handlers = JoinSet::new();
        loop {
            tokio::select! {
                () = main.readable(), if handlers.len() < MAX_HANDLERS => {
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
        let handler = self
            .by_contract
            .get(&operation.contract)
            .and_then(|service| service.handlers.get(&operation.name));
        let served = ServedRequest {
            id: responder.id(),
            sender: self.bus.peer(responder.sender()).map(|peer| peer.name().to_owned()).unwrap_or_default(),
            payload,
            deadline: responder.deadline(),
            waiter: responder.waiter(),
        };
        match handler.cloned() {
            Some(Handler::Async(handler)) => {
                handlers.spawn(async move {
                    let outcome = handler(served).await;
                    responder.give(outcome.map_err(Error::from));
                });
            }
            Some(Handler::Blocking(handler)) => {
                let threads = self.threads.clone();
                handlers.spawn(async move {
                    let Ok(_thread) = threads.acquire().await else { return };
                    if responder.is_done() {
                        return;
                    }
                    let work = tokio::task::spawn_blocking(move || {
                        responder.give(handler(served).map_err(Error::from));
                    });
                    // A handler that panicked has dropped its duty to answer, which answers.
                    let _panicked = work.await;
                });
            }
            None => drop(responder),
        }
    }
}
