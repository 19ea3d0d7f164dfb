//! Exported contracts: other nodes call them here, each in a queue group with the other nodes that export it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use async_nats::{
    HeaderMap, Message,
    client::PublishErrorKind,
    service::{NATS_SERVICE_ERROR, NATS_SERVICE_ERROR_CODE, error::Error as Status},
};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{AbortHandle, JoinSet},
};
use weir_names::{Error, harmless};
use weir_peer::Peer;

use super::{
    services::{self, Endpoint, Service},
    serving::Serving,
};
use crate::{
    config::{ExportContract, is_sender},
    link::Link,
    sessions::Sessions,
    shared::Shared,
    subject::CallSubject,
    wire,
};

/// The longest time that a call of another node may take.
const REMAINING_MAX: Duration = Duration::from_secs(3600);

/// Serves all exported contracts to the fleet.
pub(crate) async fn export(sessions: &Sessions, link: &Link, tasks: &mut JoinSet<()>) -> Result<()> {
    let shared = &sessions.shared;
    let (contracts, limits) = (&shared.config.export.contracts, &shared.config.limits);
    if contracts.is_empty() {
        return Ok(());
    }
    // Main refuses what is more than its limit for the session.
    let most = limits.served.get().min(sessions.calls.in_flight()).max(1);
    let room = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1)));
    // One slow contract leaves room for the others.
    let share = if contracts.len() > 1 { (most * 3 / 4).max(1) } else { most };
    let mut services = Vec::new();
    for (name, export) in contracts {
        let name = name.as_ref().as_str();
        let service = Arc::new(Service::new(shared, name));
        services.push(service.clone());
        let exported = Exported {
            shared: shared.clone(),
            link: link.clone(),
            peer: sessions.calls.clone(),
            service,
            name: name.into(),
            export: export.clone(),
            share: usize::try_from(share).unwrap_or(1),
            under_way: Mutex::default(),
        };
        let serving = Serving::begin(exported, room.clone()).await;
        tasks.spawn(serving.with_context(|| format!("cannot export `{name}`"))?.run());
    }
    let questions = link.client().subscribe(services::QUESTIONS).await?;
    tasks.spawn(services::answer(shared.clone(), sessions.calls.clone(), link.clone(), services, questions));
    Ok(())
}

/// A call of another node.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) message: Message,
    endpoint: Endpoint,
    come: Instant,
}

impl Call {
    pub(super) fn new(message: Message, endpoint: Endpoint) -> Self {
        Self { message, endpoint, come: Instant::now() }
    }
}

/// One exported contract.
pub(super) struct Exported {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Link,
    pub(super) peer: Peer,
    service: Arc<Service>,
    pub(super) name: Box<str>,
    export: ExportContract,
    /// Most calls of this contract, within what there is for all.
    share: usize,
    /// Calls under way, by the subject of their answer. As many as there is room for.
    pub(super) under_way: Mutex<HashMap<String, AbortHandle>>,
}

impl Exported {
    /// What a caller wants, if it may have that. `Err(None)` stands for a call that gets no answer.
    pub(super) fn accept(&self, call: &Call) -> Result<CallSubject, Option<Error>> {
        let message = &call.message;
        let (subjects, subject) = (&self.shared.subjects, &message.subject);
        let Some(caller) = subjects.caller_of(subject) else {
            self.refuse("a malformed subject", subject);
            return Err(None);
        };
        if !message.reply.as_deref().is_some_and(|reply| subjects.is_inbox_of(caller, reply)) {
            self.refuse(&format!("node `{caller}` wants its answer elsewhere"), subject);
            return Err(None);
        }
        let asked = subjects.parse_call(subject).filter(|asked| *asked.contract == *self.name);
        let Some(asked) = asked else {
            self.refuse("a malformed subject", subject);
            return Err(Some(Error::Invalid("the subject of the call is malformed".to_owned())));
        };
        let headers = message.headers.as_ref();
        let claimed = wire::header(headers, wire::NODE).unwrap_or("nobody");
        if claimed != asked.node {
            let claimed = harmless(claimed, 64);
            self.refuse(&format!("node `{}` claims to be `{claimed}`", asked.node), &message.subject);
            let text = format!("the subject is of node `{}`, and the header of `{claimed}`", asked.node);
            return Err(Some(Error::PermissionDenied(text)));
        }
        // A sender that is no valid name counts as none.
        let sender = wire::header(headers, wire::SENDER).filter(|sender| is_sender(sender));
        // This node's own calls come back to it where it is one of those that are asked: `prefer = "any"`.
        let is_own = asked.node == self.shared.subjects.node();
        let is_granted = is_own || self.export.to.iter().any(|caller| caller.is(&asked.node, sender));
        let operations = self.export.operations.as_ref();
        let is_offered =
            operations.is_none_or(|operations| operations.iter().any(|own| own.as_str() == asked.operation));
        if !is_granted || !is_offered {
            let who = sender.map_or_else(|| asked.node.clone(), |sender| format!("{}/{sender}", asked.node));
            let what =
                if is_granted { format!("{}/{}", self.name, asked.operation) } else { self.name.to_string() };
            self.refuse(&format!("`{who}` may not call `{what}`"), &message.subject);
            let node = self.shared.subjects.node();
            let text = format!("`{node}` does not export `{what}` to `{who}`");
            return Err(Some(Error::PermissionDenied(text)));
        }
        Ok(asked)
    }

    /// Takes room for one more call. Fails if Main is away, or if this contract or all together have as many calls as
    /// they may.
    pub(super) fn make_room(&self, room: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
        let node = self.shared.subjects.node();
        if self.peer.ended().is_some() {
            return Err(Error::NoProvider(format!("Main of `{node}` is away")));
        }
        let is_full = self.under_way.lock().len() >= self.share;
        let permit = room.clone().try_acquire_owned().ok().filter(|_| !is_full);
        permit.ok_or_else(|| Error::Overloaded(format!("the bridge of `{node}`")))
    }

    fn refuse(&self, why: &str, subject: &str) {
        self.shared.refuse(format_args!("a call of `{}`", self.name), why, subject);
    }

    /// Asks Main, and returns the call with its answer. The permit keeps the call's room until then.
    pub(super) async fn carry_out(
        self: Arc<Self>,
        call: Call,
        asked: CallSubject,
        _permit: OwnedSemaphorePermit,
    ) -> (Call, Result<Bytes, Error>) {
        let outcome = self.ask_main(&call.message, &asked).await;
        (call, outcome)
    }

    async fn ask_main(&self, message: &Message, asked: &CallSubject) -> Result<Bytes, Error> {
        let _under_way = UnderWay { exported: self, number: message.reply.as_deref() };
        let headers = message.headers.as_ref();
        let peer = self.peer.part_of(wire::trace(headers));
        let mut operation = peer.operation(&self.name, &asked.operation);
        if let Some(remaining) = wire::remaining(headers) {
            operation = operation.timeout(remaining.min(REMAINING_MAX));
        }
        let mut stopped = self.shared.stopped();
        let outcome = tokio::select! {
            outcome = operation.send(message.payload.clone()) => outcome,
            // The bridge waits no longer.
            () = stopped.wait() => Err(Error::PeerGone),
        };
        outcome.map_err(|error| match error {
            // The bridge has reached its own limit, not the caller.
            Error::LimitExceeded { name, .. } if name == "in-flight" => {
                Error::Overloaded(format!("the bridge of `{}`", self.shared.subjects.node()))
            }
            error => error,
        })
    }

    /// Gives a call up, because its caller waits no longer.
    pub(super) fn give_up(&self, cancel: &Message) {
        let subjects = &self.shared.subjects;
        let caller = subjects.parse_cancel(&cancel.subject);
        let number = std::str::from_utf8(&cancel.payload).ok();
        // A node gives up its own calls alone.
        let own = number.filter(|number| caller.is_some_and(|node| subjects.is_inbox_of(node, number)));
        let task = own.and_then(|number| self.under_way.lock().remove(number));
        if let Some(task) = task {
            // Dropped, the call tells Main.
            task.abort();
        }
    }

    /// Answers a call, and counts it. An answer that is too large for the server becomes an error. If nothing can be
    /// sent, the link has ended, and the caller knows.
    pub(super) async fn answer(&self, call: &Call, outcome: Result<Bytes, Error>) {
        let Some(reply) = call.message.reply.clone() else { return };
        let client = self.link.client();
        let mut headers = HeaderMap::new();
        // The caller takes only what has this header for an answer of a node.
        headers.insert(wire::NODE, self.shared.subjects.node());
        let failed = match outcome {
            Ok(payload) => {
                let bytes = payload.len() as u64;
                let sent = client.publish_with_headers(reply.clone(), headers.clone(), payload).await;
                let is_too_large =
                    sent.is_err_and(|error| error.kind() == PublishErrorKind::MaxPayloadExceeded);
                is_too_large.then(|| Error::TooLarge { bytes, allowed: client.max_payload() as u64 })
            }
            Err(error) => Some(error),
        };
        let status = failed
            .as_ref()
            .map(|error| Status { status: error.case().to_owned(), code: wire::status(error) });
        if let (Some(error), Some(Status { status, code })) = (&failed, &status) {
            headers.insert(wire::ERROR, wire::written(error));
            headers.insert(NATS_SERVICE_ERROR, status.as_str());
            headers.insert(NATS_SERVICE_ERROR_CODE, code.to_string());
            drop(client.publish_with_headers(reply, headers, Bytes::new()).await);
        }
        self.service.count(call.endpoint, call.come.elapsed(), status);
    }
}

/// Takes a call off [`Exported::under_way`] when dropped.
struct UnderWay<'e> {
    exported: &'e Exported,
    number: Option<&'e str>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.exported.under_way.lock().remove(number);
        }
    }
}
