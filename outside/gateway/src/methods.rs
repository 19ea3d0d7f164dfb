//! What each JSON-RPC method does, on any transport.

mod discover;

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use weir_connection::{Operations, next_free};
use weir_host::{
    Error,
    client::{CallOptions, Job, PublishOptions, PutOptions, Queue},
    names::CallGrant,
    peers::Session,
};

use crate::{
    Alias,
    hub::{Form, Hub},
    outbox::Outbox,
    rpc::{self, Request, RpcError},
    shared::Shared,
};

/// How long `queues.take` waits for a job if the app sets no time.
const TAKE_PATIENCE: Duration = Duration::from_secs(30);

/// The answer to a request.
pub(crate) type Outcome = Result<Reply, RpcError>;

#[derive(Debug)]
pub(crate) enum Reply {
    /// The provider's bytes.
    Payload(Bytes),
    /// A value of the gateway's own.
    Value(Box<RawValue>),
    /// A job, or `None` if none came in time. `None` also answers `rpc.cancel`, as `null`.
    Job(Option<Job>),
}

/// What became of a request.
pub(crate) enum Begun {
    Now(Outcome),
    /// The outcome comes later. Dropping the future gives the request up.
    Later(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

/// The methods for one session, and what it has in hand.
#[derive(Debug)]
pub(crate) struct Methods {
    shared: Arc<Shared>,
    session: Session,
    operations: Operations,
    /// Queues that the app has put into.
    queues: HashMap<Box<str>, Arc<Queue>>,
    /// Jobs that the app has in hand, by the number that it knows them by.
    jobs: HashMap<u32, Job>,
    last_job: u32,
    /// `None` for a POST, whose answer cannot carry events, jobs and requests.
    outbox: Option<Arc<Outbox>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscribe {
    pattern: String,
}

/// The parameters of an alias of a topic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listen {
    listen: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Publish<'t> {
    topic: String,
    #[serde(borrow, default)]
    payload: Option<&'t RawValue>,
    #[serde(default)]
    to: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Put<'t> {
    queue: String,
    #[serde(borrow, default)]
    payload: Option<&'t RawValue>,
    #[serde(default)]
    until_done: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    queue: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobNumber {
    job: u32,
}

#[derive(Serialize)]
struct TakenJob<'j> {
    job: u32,
    id: String,
    deliveries: u32,
    sender: &'j str,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    payload: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    contract: String,
    operations: Vec<String>,
}

impl Reply {
    fn value(value: &impl Serialize) -> Self {
        // The values of the gateway never fail to serialize.
        serde_json::value::to_raw_value(value).map_or(Self::Payload(Bytes::new()), Self::Value)
    }
}

impl Methods {
    pub(crate) fn new(shared: Arc<Shared>, session: Session, outbox: Option<Arc<Outbox>>) -> Self {
        Self {
            shared,
            session,
            operations: Operations::default(),
            queues: HashMap::new(),
            jobs: HashMap::new(),
            last_job: 0,
            outbox,
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Ends a subscription of which the grant was taken back.
    pub(crate) fn leave(&self, pattern: &str, form: &Form) {
        if let Some(outbox) = &self.outbox {
            self.shared.hub.leave(outbox, pattern, form);
        }
    }

    /// Begins what a request asks for.
    pub(crate) fn begin(&mut self, request: &Request<'_>) -> Begun {
        let begun = match &*request.method {
            "events.subscribe" => self.subscribe(request).map(Begun::done),
            "events.unsubscribe" => self.unsubscribe(request).map(Begun::done),
            "events.publish" => self.publish(request),
            "queues.put" => self.put(request),
            "queues.take" => self.take(request),
            "queues.done" => self.end_job(request, true).map(Begun::done),
            "queues.return" => self.end_job(request, false).map(Begun::done),
            "contracts.serve" => self.serve(request).map(Begun::done),
            "rpc.discover" => Ok(Begun::done(self.discover())),
            method => match self.shared.clone().config.aliases.get(method) {
                None => match method.split_once('/') {
                    Some((contract, operation)) => self.call(request, contract, operation),
                    None => Err(self.no_method(method)),
                },
                Some(Alias::Call { contract, operation }) => {
                    self.call(request, contract.as_str(), operation.as_str())
                }
                Some(Alias::Topic(topic)) => self.listen(request, topic.as_str()).map(Begun::done),
            },
        };
        begun.unwrap_or_else(|error| Begun::Now(Err(error)))
    }

    /// Notes that the app has the job in hand, and returns the answer that brings the job.
    pub(crate) fn hand_over(&mut self, job: Job) -> Reply {
        let number = next_free(&mut self.last_job, &self.jobs);
        let reply = Reply::value(&TakenJob {
            job: number,
            id: job.id().0.to_string(),
            deliveries: job.deliveries(),
            sender: &job.sender(),
            traceparent: job.trace().map(|trace| trace.to_string()),
            payload: rpc::payload_value(job.payload()),
        });
        self.jobs.insert(number, job);
        reply
    }

    fn call(&mut self, request: &Request<'_>, contract: &str, operation: &str) -> Result<Begun, RpcError> {
        // The grant comes before the parameters: a fault in them would tell that the method is there.
        let found = self.operations.find(&self.session, contract, operation, request.provider.as_deref());
        let operation = found.map_err(|error| self.of_call(error, &request.method))?;
        let payload = rpc::payload(request.params)?;
        let denied = self.no_method(&request.method);
        let mut options = CallOptions::default();
        (options.timeout, options.trace) = (request.timeout, request.trace);
        options.is_unanswered = request.id.is_none();
        Ok(Begun::later(async move {
            match operation.call_with(payload, options).await {
                Ok(payload) => Ok(Reply::Payload(payload)),
                Err(Error::PermissionDenied(_)) => Err(denied),
                Err(error) => Err(error.into()),
            }
        }))
    }

    /// The error as the app gets it: a method that it may not call looks like one that is not there.
    fn of_call(&self, error: Error, method: &str) -> RpcError {
        match error {
            Error::PermissionDenied(_) => self.no_method(method),
            Error::Invalid(_) if method.parse::<CallGrant>().is_err() => self.no_method(method),
            error => error.into(),
        }
    }

    fn no_method(&self, method: &str) -> RpcError {
        RpcError::no_method(method, self.session.name().as_str())
    }

    fn subscribe(&mut self, request: &Request<'_>) -> Result<Reply, RpcError> {
        let Subscribe { pattern } = rpc::params(request.params)?;
        let (hub, outbox) = self.events()?;
        hub.join(&self.session, outbox, &pattern, Form::Event)?;
        Ok(Reply::value(&json!({ "pattern": pattern })))
    }

    fn unsubscribe(&mut self, request: &Request<'_>) -> Result<Reply, RpcError> {
        let Subscribe { pattern } = rpc::params(request.params)?;
        let (hub, outbox) = self.events()?;
        if !hub.leave(outbox, &pattern, &Form::Event) {
            return Err(Error::Invalid(format!("there is no subscription to `{pattern}`")).into());
        }
        Ok(Reply::value(&json!({ "pattern": pattern })))
    }

    fn listen(&mut self, request: &Request<'_>, topic: &str) -> Result<Reply, RpcError> {
        self.session.may_subscribe(topic).map_err(|error| self.of_call(error, &request.method))?;
        let Listen { listen } = rpc::params(request.params)?;
        let (hub, outbox) = self.events()?;
        let form = Form::Alias((&*request.method).into());
        if listen {
            let joined = hub.join(&self.session, outbox, topic, form);
            joined.map_err(|error| self.of_call(error, &request.method))?;
        } else {
            hub.leave(outbox, topic, &form);
        }
        Ok(Reply::value(&json!({ "listening": listen, "event": request.method })))
    }

    fn publish(&mut self, request: &Request<'_>) -> Result<Begun, RpcError> {
        let Publish { topic, payload, to } = rpc::params(request.params)?;
        let (client, payload) = (self.session.client().clone(), rpc::payload(payload)?);
        let mut options = PublishOptions::default();
        (options.timeout, options.to, options.trace) = (request.timeout, to, request.trace);
        Ok(Begun::later(async move {
            let receipt = client.publish_with(&topic, payload, options).await?;
            Ok(Reply::value(&receipt))
        }))
    }

    fn put(&mut self, request: &Request<'_>) -> Result<Begun, RpcError> {
        let Put { queue, payload, until_done } = rpc::params(request.params)?;
        let (queue, payload) = (self.queue(&queue)?, rpc::payload(payload)?);
        let mut options = PutOptions::default();
        (options.timeout, options.trace) = (request.timeout, request.trace);
        Ok(Begun::later(async move {
            if until_done {
                let done = queue.put_until_done(payload, options);
                match options.timeout {
                    None => done.await?,
                    Some(timeout) => {
                        tokio::time::timeout(timeout, done).await.map_err(|_| Error::Timeout)??
                    }
                }
                return Ok(Reply::value(&()));
            }
            let id = queue.put_with(payload, options).await?;
            Ok(Reply::value(&json!({ "id": id.0.to_string() })))
        }))
    }

    fn take(&mut self, request: &Request<'_>) -> Result<Begun, RpcError> {
        let Take { queue } = rpc::params(request.params)?;
        self.events()?;
        let mut queue = self.session.client().queue(&queue)?;
        queue.may_take()?;
        // As many jobs may be in hand as messages may be under way.
        let (used, allowed) = (self.jobs.len() as u64 + 1, u64::from(self.session.limits().in_flight));
        if used > allowed {
            return Err(Error::LimitExceeded { name: "in-flight".into(), used, allowed }.into());
        }
        let patience = request.timeout.unwrap_or(TAKE_PATIENCE);
        Ok(Begun::later(async move {
            let taken = tokio::time::timeout(patience, queue.take()).await;
            Ok(Reply::Job(taken.ok().flatten()))
        }))
    }

    fn end_job(&mut self, request: &Request<'_>, is_done: bool) -> Result<Reply, RpcError> {
        let JobNumber { job } = rpc::params(request.params)?;
        self.events()?;
        match self.jobs.remove(&job) {
            Some(job) if is_done => job.done(),
            Some(job) => drop(job),
            None => return Err(Error::Invalid(format!("no job {job} is in hand")).into()),
        }
        Ok(Reply::value(&()))
    }

    fn serve(&mut self, request: &Request<'_>) -> Result<Reply, RpcError> {
        let Serve { contract, operations } = rpc::params(request.params)?;
        self.events()?;
        self.session.serve(&contract, &operations)?;
        Ok(Reply::value(&()))
    }

    /// The queue with this name, which is looked up once. The bus checks the grants at each use.
    fn queue(&mut self, name: &str) -> Result<Arc<Queue>, Error> {
        if let Some(known) = self.queues.get(name) {
            return Ok(known.clone());
        }
        let queue = Arc::new(self.session.client().queue(name)?);
        self.queues.insert(name.into(), queue.clone());
        Ok(queue)
    }

    /// The hub, and the outbox of the connection. Fails for a POST: it has none, so it can carry no events, jobs and
    /// requests.
    fn events(&self) -> Result<(&Arc<Hub>, &Arc<Outbox>), RpcError> {
        let outbox = self.outbox.as_ref().ok_or_else(RpcError::needs_connection)?;
        Ok((&self.shared.hub, outbox))
    }
}

impl Drop for Methods {
    fn drop(&mut self) {
        if let Some(outbox) = &self.outbox {
            self.shared.hub.leave_all(outbox);
        }
    }
}

impl Begun {
    fn done(reply: Reply) -> Self {
        Self::Now(Ok(reply))
    }

    fn later(work: impl Future<Output = Outcome> + Send + 'static) -> Self {
        Self::Later(Box::pin(work))
    }
}
