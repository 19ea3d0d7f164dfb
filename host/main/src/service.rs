//! Contracts served from Rust code.

use std::{collections::HashMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::Instant,
};
use weir_bus::{Bus, Error, HandlerError, Incoming, MessageId, Request, Responder, Taken, Waiter};
use weir_names::{ContractName, MAIN, OperationName, TraceContext};
use weir_openrpc::{Descriptions, Document, Role, shown};

use crate::contracts::Provider;

/// Handlers that run, or wait for a thread, at once for each contract.
const MAX_HANDLERS: usize = 256;

/// A handler's answer.
pub type Answer = Result<Bytes, HandlerError>;

/// A request to a served contract.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServedRequest {
    /// The message's id.
    pub id: MessageId,
    /// The sending extension's id, a peer's name, or `main`.
    pub sender: String,
    /// The arguments.
    pub payload: Bytes,
    waiter: Arc<Waiter>,
}

impl ServedRequest {
    pub(crate) fn new(id: MessageId, sender: String, payload: Bytes, waiter: Arc<Waiter>) -> Self {
        Self { id, sender, payload, waiter }
    }

    /// The request's span, if it is recorded. The handler passes it on with what it sends, as in
    /// [`CallOptions::trace`](crate::client::CallOptions::trace).
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.waiter.span().map(|span| *span.context())
    }

    /// Ends the request's span, if it is recorded, with this outcome: for an answer whose value tells of a failure.
    pub(crate) fn note_failed(&self, outcome: &'static str) {
        if let Some(span) = self.waiter.span() {
            span.note_failed(outcome);
        }
    }

    /// Time left for the answer.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.waiter.term().deadline.saturating_duration_since(Instant::now())
    }

    /// Waits until the caller gives up or the deadline passes, so that a handler can stop work it began elsewhere.
    /// The handler's own future is dropped then.
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
    document: Option<Document>,
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
    /// A contract without operations.
    #[must_use]
    pub fn new(contract: ContractName) -> Self {
        Self { contract, handlers: HashMap::new(), document: None }
    }

    /// Adds an operation with an async handler. It runs on the worker thread and must not block, because all of Main
    /// waits.
    ///
    /// At the deadline, or when the caller gives up, its future is dropped: spawn a task for work that must finish. A
    /// contract runs 256 handlers at once. Up to 1024 more requests or 16 MiB wait; others get `overloaded`.
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

    /// Adds an operation with a blocking handler, which runs on the pool of `[main] blocking-threads`.
    ///
    /// Half of the pool is for handlers, shared equally between contracts. The pool grows to give each contract at
    /// least one thread. Abandoned requests get no thread. A running handler keeps its thread until it returns, because
    /// nothing can stop it: heed [`remaining`](ServedRequest::remaining).
    #[must_use]
    pub fn on_blocking<F>(mut self, operation: OperationName, handler: F) -> Self
    where
        F: Fn(ServedRequest) -> Answer + Send + Sync + 'static,
    {
        self.handlers.insert(operation, Handler::Blocking(Arc::new(handler)));
        self
    }

    /// Describes the contract, so that `weir describe`, `weir call`, `weir generate` and the gateway's `rpc.discover` know
    /// its types. Whatever contract or interface the document is of, it stands for this one. It may be made of WIT:
    /// `weir describe --openrpc greeter.wit > greeter.json`.
    ///
    /// ```
    /// use weir_host::{Service, openrpc::Document};
    ///
    /// # let greeter = r#"{"openrpc":"1.3.2","info":{"title":"greeter@1","version":"1"},"methods":[]}"#;
    /// // let greeter = include_str!("greeter.json");
    /// let service = Service::new("greeter@1".parse()?).described(Document::parse(greeter)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Main does not start if document and service have not the same operations, or if the document takes over 64 KiB.
    #[must_use]
    pub fn described(mut self, document: Document) -> Self {
        let contract = self.contract.clone();
        self.document = Some(Document { contract, role: Role::Provider, export: None, ..document });
        self
    }

    /// The served contract.
    #[must_use]
    pub fn contract(&self) -> &ContractName {
        &self.contract
    }

    /// What the program describes of this contract, if it does.
    pub(crate) fn provider(&self) -> Option<Provider> {
        let text = self.document.as_ref()?.line();
        Some(Provider {
            name: MAIN.to_owned(),
            serves: vec![self.contract.clone()],
            descriptions: Descriptions::new(text).into(),
        })
    }

    fn check_document(&self) -> Result<(), Error> {
        let Some(document) = &self.document else { return Ok(()) };
        let faulty =
            |what: String| Err(Error::Invalid(format!("the description of `{}`: {what}", self.contract)));
        let is_served = |name: &str| self.handlers.keys().any(|served| served.as_str() == name);
        if let Some(method) = document.methods.iter().find(|method| !is_served(&method.name)) {
            return faulty(format!("`{}` is not served", shown(&method.name)));
        }
        if let Some(name) = self.handlers.keys().find(|name| document.method(name.as_str()).is_none()) {
            return faulty(format!("`{name}` is not in it"));
        }
        match Document::parse_section(document.line().as_bytes()) {
            Ok(_) => Ok(()),
            Err(error) => faulty(error.to_string()),
        }
    }

    pub(crate) fn blocks(&self) -> bool {
        self.handlers.values().any(|handler| matches!(handler, Handler::Blocking(_)))
    }
}

/// The arguments of a request to one of Main's own contracts.
pub(crate) fn asked<T: DeserializeOwned>(
    operation: &str,
    request: &ServedRequest,
) -> Result<T, HandlerError> {
    serde_json::from_slice(&request.payload)
        .map_err(|error| HandlerError::new("invalid", format!("`{operation}` takes a JSON object: {error}")))
}

/// The answer of one of Main's own contracts.
pub(crate) fn json<T: Serialize>(value: &T) -> Answer {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| HandlerError::new("failed", error.to_string()))
}

/// Serves the contracts of Main and of the embedding program.
#[derive(Debug)]
pub(crate) struct Services {
    bus: Arc<Bus>,
    by_contract: HashMap<ContractName, ServedContract>,
    /// A waiting request counts as at least this many bytes, so that the room for bytes also bounds how many wait.
    least_waiting: usize,
}

/// A contract with limits of its own, so that no contract starves another.
#[derive(Debug)]
struct ServedContract {
    service: Service,
    /// A permit for each handler that may run at once.
    handlers: Arc<Semaphore>,
    /// Bytes of requests waiting for a handler.
    waiting: Arc<Semaphore>,
    /// A permit for each thread that blocking handlers may use at once.
    threads: Arc<Semaphore>,
}

impl Services {
    /// Declares the served contracts; the handlers of each take at most `threads` threads.
    pub(crate) fn new(bus: Arc<Bus>, services: Vec<Service>, threads: usize) -> Result<Self, Error> {
        for service in &services {
            let operations: Vec<String> = service.handlers.keys().map(ToString::to_string).collect();
            bus.serve_from_main(&service.contract, &operations)?;
            service.check_document()?;
        }
        let inbox = bus.main().limits().inbox;
        let bytes = usize::try_from(inbox.bytes).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let own = |service: Service| ServedContract {
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

    /// Serves for ever. Dropping the future drops the handlers that run, and their requests fail with `peer-gone`.
    pub(crate) async fn run(&self) {
        let main = self.bus.main();
        let mut handlers = JoinSet::new();
        loop {
            tokio::select! {
                () = main.readable() => {
                    if let Taken::Message(Incoming::Request(request)) = main.take() {
                        self.handle(request, &mut handlers);
                    }
                    // Taking a request takes nothing of tokio's budget, so other tasks would wait while there are more.
                    tokio::task::coop::consume_budget().await;
                }
                // A handler that panicked has dropped its responder, which answers the request with `peer-gone`.
                Some(_ended) = handlers.join_next() => {}
            }
        }
    }

    fn handle(&self, request: Request, handlers: &mut JoinSet<()>) {
        let Request { payload, responder, .. } = request;
        let operation = responder.operation();
        let Some(own) = self.by_contract.get(&operation.contract) else { return };
        let Some(handler) = own.service.handlers.get(&operation.name).cloned() else { return };
        let admission = match own.handlers.clone().try_acquire_owned() {
            Ok(slot) => Admission::Slot(slot),
            Err(_) => {
                let bytes = u32::try_from(payload.len().max(self.least_waiting)).unwrap_or(u32::MAX);
                let Ok(room) = own.waiting.clone().try_acquire_many_owned(bytes) else {
                    responder.give(Err(Error::Overloaded(MAIN.to_owned())));
                    return;
                };
                Admission::Waits(room, own.handlers.clone())
            }
        };
        let sender = self.bus.peer(responder.sender()).map(|peer| peer.name().to_owned());
        let served =
            ServedRequest::new(responder.id(), sender.unwrap_or_default(), payload, responder.waiter());
        handlers.spawn(answer(handler, served, responder, admission, own.threads.clone()));
    }
}

enum Admission {
    /// The handler may run.
    Slot(OwnedSemaphorePermit),
    /// The request waits for one of these slots, and holds room meanwhile.
    Waits(OwnedSemaphorePermit, Arc<Semaphore>),
}

/// Runs the handler until the caller stops waiting. Only a running blocking handler outlives that.
fn answer(
    handler: Handler,
    served: ServedRequest,
    responder: Responder,
    admission: Admission,
    threads: Arc<Semaphore>,
) -> impl Future<Output = ()> + Send {
    let waiter = responder.waiter();
    // An async function would hold each of its arguments twice.
    async move {
        let _slot = match admission {
            Admission::Slot(slot) => slot,
            Admission::Waits(_room, slots) => match unless_ended(&waiter, slots.acquire_owned()).await {
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
                    // The caller may have given up while this waited for a thread.
                    if !responder.is_done() {
                        responder.give(handler(served).map_err(Error::from));
                    }
                });
                // A handler that panicked has dropped its responder, which answers the request with `peer-gone`.
                let _panicked = unless_ended(&waiter, work).await;
            }
        }
    }
}

/// The result of `work`, or `None` once the caller stops waiting. Biased, because most work is done on its first poll.
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
