//! Exported queues: jobs of this Main on their way to JetStream.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{task::JoinSet, time};
use weir_names::Error;
use weir_peer::{Job, Peer, Queue, Request};

use super::{is_answer_of, stored};
use crate::{
    bridge::Links,
    config::QueueBy,
    link::{Link, NoAnswer},
    sessions::{Served, Sessions},
    shared::{Shared, tell},
    wire,
};

/// The time until a job that JetStream refused is sent again. After a refusal of Main it is five times as long.
const AGAIN: Duration = Duration::from_secs(1);

/// The time for JetStream to answer before the job is sent again, under the same id.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Most jobs of a queue by `take` that are on their way at once.
const ON_THE_WAY: usize = 8;

/// Begins to take the jobs of all exported queues.
pub(crate) async fn export(sessions: &Sessions, links: &Links, tasks: &mut JoinSet<()>) {
    let shared = &sessions.shared;
    let Some(peer) = &sessions.jobs else { return };
    let exporter =
        Exporter { shared: shared.clone(), peer: peer.clone(), links: links.clone(), life: sessions.life };
    let exporter = Arc::new(exporter);
    if let Some(store) = &shared.config.main.as_ref().store {
        let queues = shared.config.export.queues.iter();
        let stored = queues.filter(|(_, export)| export.by == QueueBy::Store);
        let served = Served {
            shared: shared.clone(),
            peer: peer.clone(),
            name: store.as_ref().as_str().into(),
            operations: stored.map(|(name, _)| name.as_ref().to_string()).collect(),
            what: "which keeps the jobs of queues",
        };
        let (exporter, offered) = (exporter.clone(), served.offer().await);
        tasks.spawn(served.run(offered, move |request| exporter.clone().keep(request)));
    }
    for (name, export) in &shared.config.export.queues {
        if export.by == QueueBy::Take {
            for _ in 0..ON_THE_WAY {
                tasks.spawn(exporter.clone().take(name.as_ref().as_str().into()));
            }
        }
    }
}

/// The jobs of one session with Main.
struct Exporter {
    shared: Arc<Shared>,
    peer: Peer,
    links: Links,
    /// A number in the id of each job, because Main counts its messages anew when it starts.
    life: u64,
}

impl Exporter {
    /// Answers a put once JetStream has the job.
    async fn keep(self: Arc<Self>, request: Request) {
        let id = format!("{}-{:x}-{}", self.shared.subjects.node(), self.life, request.id());
        let put = async {
            let queue = request.operation();
            let export = self.shared.config.export.queue(queue);
            let is_granted =
                export.is_some_and(|export| export.senders.iter().any(|own| own.is(request.sender())));
            if !is_granted || Shared::is_bridge(request.sender()) {
                let sender = request.sender();
                let text = format!("`export.queues.{queue}.senders` of the bridge does not list `{sender}`");
                return Err(Error::PermissionDenied(text));
            }
            if !Link::is_there(&self.links.borrow()) {
                return Err(Error::NoProvider(format!("`{queue}` is kept by NATS, which is away")));
            }
            self.put(queue, request.sender(), &id, request.payload(), 0).await
        };
        let put = tokio::select! {
            put = put => put,
            // The job may be stored all the same.
            () = request.given_up() => return,
        };
        match put {
            Ok(()) => request.answer(Ok(Bytes::new())).await,
            Err(error) => request.refuse(error).await,
        }
    }

    /// Takes jobs from a queue until the session ends or the bridge drains.
    async fn take(self: Arc<Self>, name: Box<str>) {
        let mut draining = self.shared.draining();
        loop {
            let taken = async {
                // The queue is kept over the jobs: dropped, it would give back those that wait.
                let queue: Queue = self.peer.queue(&name)?;
                loop {
                    self.bring(&name, queue.take().await?).await;
                }
            };
            let ended: Result<(), Error> = tokio::select! {
                ended = taken => ended,
                () = draining.wait() => return,
            };
            if self.peer.ended().is_some() {
                return;
            }
            if let Err(error) = ended {
                tell!(
                    error,
                    self.shared.times,
                    ("take {name}"),
                    "cannot take from queue `{name}`, which is exported: {error}"
                );
            }
            time::sleep(5 * AGAIN).await;
        }
    }

    /// Brings a job to JetStream, however long that takes. If it is too large for the server, or the future is dropped,
    /// the job goes back to its queue.
    async fn bring(&self, queue: &str, job: Job) {
        let id = format!("{}-{:x}-{}", self.shared.subjects.node(), self.life, job.id());
        // Deliveries before this one, after each of which the job may have been put already.
        let before = job.deliveries().saturating_sub(1);
        while let Err(error) = self.put(queue, job.sender(), &id, job.payload(), before).await {
            if let Error::TooLarge { .. } = error {
                tracing::error!("a job of queue `{queue}` can never cross, and goes back: {error}");
                return;
            }
            tell!(warn, self.shared.times, ("bring {queue}"), "a job of queue `{queue}` waits: {error}");
            time::sleep(AGAIN).await;
        }
        job.done();
    }

    /// Sends a job again and again until JetStream has it, or refuses it. Waits for a link without a time limit.
    async fn put(
        &self,
        queue: &str,
        sender: &str,
        id: &str,
        payload: &Bytes,
        deliveries: u32,
    ) -> Result<(), Error> {
        let mut links = self.links.clone();
        loop {
            let link = links.wait_for(Link::is_there).await.ok().and_then(|link| link.clone());
            let Some(link) = link else { return Err(Error::NoProvider("the bridge stops".to_owned())) };
            let mut headers = wire::headers(&self.shared.subjects, sender);
            headers.insert(wire::MESSAGE_ID, id);
            if deliveries > 0 {
                headers.insert(wire::DELIVERIES, deliveries.to_string());
            }
            let accepts = is_answer_of(self.shared.subjects.stream(queue));
            let subject = self.shared.subjects.job(queue);
            let put = link.request(subject, headers, payload.clone(), accepts);
            match time::timeout(ANSWER_TIME, put).await {
                Ok(Ok(answer)) => return stored(&answer.payload),
                Ok(Err(NoAnswer::NoResponders)) => {
                    return Err(Error::NoProvider(format!("no stream of NATS keeps `{queue}`")));
                }
                Ok(Err(NoAnswer::Refused)) => {
                    return Err(Error::PermissionDenied(format!(
                        "`{queue}` is kept by NATS: {}",
                        NoAnswer::Refused
                    )));
                }
                Ok(Err(NoAnswer::TooLarge { bytes, allowed })) => {
                    return Err(Error::TooLarge { bytes, allowed });
                }
                // The job may be stored. Sent again under its id, it does not become a second one.
                Ok(Err(NoAnswer::Ended)) | Err(_) => {}
            }
        }
    }
}
