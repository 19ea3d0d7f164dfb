//! Exported contracts as services of NATS: `nats micro ls`, `info` and `stats` show them.
//!
//! The client of NATS can do this, too. But its endpoints lose the calls that are on their way when they stop.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_nats::{
    Subscriber,
    datetime::{self, DateTime},
    service::{Info, PingResponse, Stats, endpoint, error::Error as Status},
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use weir_names::harmless;
use weir_peer::Peer;

use crate::{
    link::Link,
    shared::{Shared, tell},
    subject,
};

/// All questions of the services API.
pub(super) const QUESTIONS: &str = "$SRV.>";

/// How the type of each answer begins. The verb comes after it.
const KIND: &str = "io.nats.micro.v1.";

/// One exported contract.
#[derive(Debug)]
pub(super) struct Service {
    info: Info,
    started: DateTime,
    /// The figures of each endpoint, in the order of [`Endpoint`].
    stats: Mutex<[endpoint::Stats; 2]>,
}

/// Which node calls are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// To any node: its queue group shares them.
    Any,
    /// To this node.
    Own,
}

impl Service {
    pub(super) fn new(shared: &Shared, name: &str) -> Self {
        let version = name.rsplit_once('@').map_or("0", |(_, version)| version);
        let metadata = HashMap::from(
            [("weir-contract", name), ("weir-node", shared.subjects.node())]
                .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        let endpoints =
            [("any", false), (shared.subjects.node(), true)].map(|(name_of_calls, to_this_one)| {
                endpoint::Info {
                    name: name_of_calls.to_owned(),
                    subject: shared.subjects.calls(to_this_one, name),
                    queue_group: subject::token(name),
                    metadata: metadata.clone(),
                }
            });
        let stats = endpoints.clone().map(|endpoint::Info { name, subject, queue_group, .. }| {
            endpoint::Stats { name, subject, queue_group, ..endpoint::Stats::default() }
        });
        let info = Info {
            kind: format!("{KIND}info_response"),
            name: subject::token(name),
            id: format!("{:x}", shared.process),
            description: format!("{name} of a Weir node"),
            version: format!("{version}.0.0"),
            metadata,
            endpoints: endpoints.into(),
        };
        Self { info, started: datetime::now(), stats: Mutex::new(stats) }
    }

    /// Counts a call that is answered.
    pub(super) fn count(&self, endpoint: Endpoint, took: Duration, error: Option<Status>) {
        let mut stats = self.stats.lock();
        let [any, own] = &mut *stats;
        let stats = match endpoint {
            Endpoint::Any => any,
            Endpoint::Own => own,
        };
        stats.requests += 1;
        stats.processing_time += took;
        stats.average_processing_time =
            stats.processing_time / u32::try_from(stats.requests).unwrap_or(u32::MAX);
        if error.is_some() {
            stats.errors += 1;
            stats.last_error = error;
        }
    }

    /// The answer to a question. `None` if it is for another service, or has no verb of the services API.
    fn answer(&self, question: &str) -> Option<serde_json::Result<Vec<u8>>> {
        let Info { name, id, version, metadata, .. } = &self.info;
        let mut tokens = question.strip_prefix("$SRV.")?.split('.');
        let verb = tokens.next()?;
        let is_asked = [name, id].into_iter().all(|own| tokens.next().is_none_or(|asked| asked == own));
        if !is_asked || tokens.next().is_some() {
            return None;
        }
        Some(match verb {
            "PING" => serde_json::to_vec(&PingResponse {
                kind: format!("{KIND}ping_response"),
                name: name.clone(),
                id: id.clone(),
                version: version.clone(),
                metadata: metadata.clone(),
            }),
            "INFO" => serde_json::to_vec(&self.info),
            "STATS" => serde_json::to_vec(&Stats {
                kind: format!("{KIND}stats_response"),
                name: name.clone(),
                id: id.clone(),
                version: version.clone(),
                started: self.started,
                endpoints: self.stats.lock().to_vec(),
            }),
            _ => return None,
        })
    }
}

/// Answers all questions until the link ends, or the session, or the bridge drains.
pub(super) async fn answer(
    shared: Arc<Shared>,
    peer: Peer,
    link: Link,
    services: Vec<Arc<Service>>,
    mut questions: Subscriber,
) {
    while let Some(Some(question)) = shared.until_over(&peer, questions.next()).await {
        let Some(reply) = &question.reply else { continue };
        // An answer there would be a message from this node to JetStream or to the fleet, which the asker chose.
        if reply.starts_with('$') || reply.starts_with("weir.") {
            let reply = harmless(reply, 200);
            tell!(
                warn,
                shared.strangers,
                ("services"),
                "refuses to answer a question for services at `{reply}`"
            );
            continue;
        }
        let answers = services.iter().filter_map(|service| service.answer(&question.subject));
        for answer in answers.filter_map(Result::ok) {
            // If it cannot be sent, the link has ended.
            drop(link.client().publish(reply.clone(), answer.into()).await);
        }
    }
}
