//! Imported queues: jobs of the fleet on their way to this Main.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use async_nats::{
    HeaderMap,
    jetstream::{AckKind, Message, consumer::PullConsumer, stream::Stream},
};
use futures_util::StreamExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time,
};
use weir_names::{Error, harmless};
use weir_peer::{Peer, Queue};

use super::{Earlier, consumer, is_answer_of, stored, stream};
use crate::{
    config::ImportQueue,
    link::Link,
    sessions::Sessions,
    shared::{Pause, Shared, tell},
    wire,
};

/// How long the server keeps a question for jobs.
const ASK_TIME: Duration = Duration::from_secs(30);

/// The time until a job that cannot be brought now is brought again.
const AGAIN: Duration = Duration::from_secs(1);

/// Time for JetStream to say that it has an acknowledgement.
const ACK_TIME: Duration = Duration::from_secs(5);

/// Attempts to prepare a queue that follow each other quickly.
const QUICK_ATTEMPTS: u32 = 10;

/// Most jobs of one question: what comes at once has room in the client of NATS.
const BATCH_MAX: usize = 256;

/// Room for other things than puts of jobs, of what the session may have under way.
const RESERVE: u32 = 4;

/// Begins to make streams, and to bring the jobs of all imported queues. Each task drops its copy of `prepared` once
/// its stream is there.
pub(crate) fn import(
    sessions: &Sessions,
    link: &Link,
    tasks: &mut JoinSet<()>,
    prepared: &mpsc::Sender<()>,
) -> Result<(), Error> {
    let shared = &sessions.shared;
    let Some(peer) = &sessions.jobs else { return Ok(()) };
    let (config, queues) = (&shared.config, &shared.config.import.queues);
    for name in config.export.queues.keys().filter(|name| !queues.contains_key(*name)) {
        let (shared, link, name) = (shared.clone(), link.clone(), name.as_ref().clone());
        let (peer, prepared) = (peer.clone(), prepared.clone());
        tasks.spawn(async move {
            shared.until_over(&peer, prepare(&shared, &link, name.as_str(), None, prepared)).await;
        });
    }
    for (name, import) in queues {
        let name = name.as_ref().as_str();
        // Main refuses what is more than its limit for the session.
        let share =
            peer.in_flight().saturating_sub(RESERVE) / u32::try_from(queues.len()).unwrap_or(u32::MAX).max(1);
        let most = config.limits.jobs.get().min(share).max(1);
        let importer = Importer {
            shared: shared.clone(),
            link: link.clone(),
            queue: peer.queue(name)?,
            peer: peer.clone(),
            name: name.into(),
            import: import.clone(),
        };
        let room = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1)));
        let prepared = prepared.clone();
        tasks.spawn(async move {
            let importer = Arc::new(importer);
            let Importer { shared, peer, link, name, import, .. } = &*importer;
            let prepared = prepare(shared, link, name, Some(import), prepared);
            if let Some(Some(consumer)) = shared.until_over(peer, prepared).await {
                importer.run(consumer, room).await;
            }
        });
    }
    Ok(())
}

/// The stream of a queue, by what the file says of it. It is made unless it is there, if the queue is exported or for
/// dead jobs.
async fn stream_of(shared: &Shared, link: &Link, queue: &str, is_dead: bool) -> Result<Stream> {
    let export = shared.config.export.queue(queue);
    stream(shared, link, queue, export, is_dead || export.is_some()).await
}

/// Makes what JetStream must have for a queue, and returns the consumer if the queue is imported.
async fn prepare_once(
    shared: &Shared,
    link: &Link,
    queue: &str,
    import: Option<&ImportQueue>,
) -> Result<Option<PullConsumer>> {
    let stream = stream_of(shared, link, queue, false).await?;
    let Some(import) = import else { return Ok(None) };
    if let Some(dead) = &import.dead_letter {
        drop(stream_of(shared, link, dead.as_ref().as_str(), true).await?);
    }
    consumer(&stream, import).await.map(Some)
}

/// Does the work of [`prepare_once`] until that succeeds or the link ends. A server that has just started has no
/// JetStream for a moment, so `prepared` is dropped only after some attempts. Then others go on without this queue.
async fn prepare(
    shared: &Shared,
    link: &Link,
    queue: &str,
    import: Option<&ImportQueue>,
    prepared: mpsc::Sender<()>,
) -> Option<PullConsumer> {
    let (mut pause, mut prepared, mut attempts) = (Pause::default(), Some(prepared), 0_u32);
    while !link.has_ended() {
        match prepare_once(shared, link, queue, import).await {
            Ok(consumer) => return consumer,
            Err(error) => {
                tell!(
                    error,
                    shared.times,
                    ("prepare {queue}: {error:#}"),
                    "queue `{queue}` does not cross: {error:#}"
                );
            }
        }
        attempts = attempts.saturating_add(1);
        if attempts < QUICK_ATTEMPTS {
            pause.wait().await;
        } else {
            drop(prepared.take());
            time::sleep(AGAIN).await;
        }
    }
    None
}

/// One imported queue.
struct Importer {
    shared: Arc<Shared>,
    link: Link,
    peer: Peer,
    queue: Queue,
    name: Box<str>,
    import: ImportQueue,
}

impl Importer {
    /// Asks for jobs as there is room, until the session ends or the bridge drains. Then waits until no job is in hand.
    async fn run(self: Arc<Self>, consumer: PullConsumer, room: Arc<Semaphore>) {
        let mut in_hand = JoinSet::new();
        let fetch = async {
            loop {
                if let Err(error) = self.clone().fetch(&consumer, &room, &mut in_hand).await {
                    let (times, name) = (&self.shared.times, &self.name);
                    tell!(warn, times, ("fetch {name}"), "cannot ask for jobs of queue `{name}`: {error}");
                    time::sleep(AGAIN).await;
                }
            }
        };
        let _over = self.shared.until_over(&self.peer, fetch).await;
        while in_hand.join_next().await.is_some() {}
    }

    /// One question to the server, for as many jobs as there is room for.
    async fn fetch(
        self: Arc<Self>,
        consumer: &PullConsumer,
        room: &Arc<Semaphore>,
        in_hand: &mut JoinSet<()>,
    ) -> Result<()> {
        let mut permits = Vec::from_iter(room.clone().acquire_owned().await);
        while permits.len() < BATCH_MAX
            && let Ok(permit) = room.clone().try_acquire_owned()
        {
            permits.push(permit);
        }
        while in_hand.try_join_next().is_some() {}
        // The consumer's own value, which may differ from that of the file.
        let ack_wait = consumer.cached_info().config.ack_wait;
        let batch = consumer.batch().max_messages(permits.len()).expires(ASK_TIME);
        let mut jobs = batch.messages().await?;
        while let Some(job) = jobs.next().await {
            let job = job.map_err(|error| anyhow::anyhow!("{error}"))?;
            // The server sends no more than it was asked for.
            let Some(permit) = permits.pop() else { break };
            in_hand.spawn(self.clone().bring(job, ack_wait, permit));
        }
        Ok(())
    }

    /// Brings a job to this Main, and tells JetStream what became of it.
    async fn bring(self: Arc<Self>, job: Message, ack_wait: Duration, _permit: OwnedSemaphorePermit) {
        let (delivery, sequence) = match job.info() {
            Ok(info) => (u32::try_from(info.delivered).unwrap_or(u32::MAX), info.stream_sequence),
            Err(_) => (1, 0),
        };
        let node = self.shared.subjects.parse_job(&job.subject);
        let claimed = wire::header(job.headers.as_ref(), wire::NODE);
        let is_good = node.is_some_and(|node| {
            self.import.from.as_ref().iter().any(|origin| origin.is(node))
                && claimed.is_some_and(|claimed| claimed == node)
        });
        if !is_good {
            let from = harmless(claimed.or(node).unwrap_or("?"), 64);
            let (times, name) = (&self.shared.strangers, &self.name);
            tell!(warn, times, ("job of {from}"), "refuses a job of node `{from}` in queue `{name}`");
            // Another node may take it, also one that comes later.
            return self.tell(&job, AckKind::Nak(Some(AGAIN * delivery.min(60)))).await;
        }
        let Earlier { own, all } =
            self.shared.brought.lock().entry(self.name.clone()).or_default().before(sequence, delivery);
        if own >= self.import.max_deliveries.get() {
            return self.bury(&job, sequence, "it was delivered too often").await;
        }
        let mut alive = time::interval((ack_wait / 3).max(Duration::from_millis(1)));
        alive.tick().await;
        let at_home = wire::header(job.headers.as_ref(), wire::DELIVERIES);
        let at_home: u32 = at_home.and_then(|text| text.parse().ok()).unwrap_or_default();
        let (put, mut stopped) = (self.put(&job, all.saturating_add(at_home)), self.shared.stopped());
        tokio::pin!(put);
        let outcome = loop {
            tokio::select! {
                outcome = &mut put => break outcome,
                _ = alive.tick() => self.tell(&job, AckKind::Progress).await,
                // The bridge waits no longer.
                () = stopped.wait() => break Err(Error::PeerGone),
            }
        };
        match outcome {
            Ok(()) => self.acknowledge(&job).await,
            Err(Error::Handler(error)) if error.code == "dead" => {
                self.bury(&job, sequence, "its readers did not finish it").await;
            }
            Err(error @ (Error::TooLarge { .. } | Error::Invalid(_))) => {
                self.bury(&job, sequence, &error.to_string()).await;
            }
            // The session has ended, or the bridge: another node may take it at once.
            Err(_) => self.tell(&job, AckKind::Nak(None)).await,
        }
    }

    /// Puts a job until a reader is done, or until no reader can be. While Main has no room for it, the bridge keeps it: so a
    /// full queue costs no job a delivery.
    async fn put(&self, job: &Message, deliveries: u32) -> Result<(), Error> {
        let mut draining = self.shared.draining();
        loop {
            match self.queue.put_until_done_after(deliveries, job.payload.clone()).await {
                Err(
                    error @ (Error::Overloaded(_)
                    | Error::NoProvider(_)
                    | Error::PermissionDenied(_)
                    | Error::LimitExceeded { .. }),
                ) if self.peer.ended().is_none() && !self.shared.is_draining() => {
                    let (times, name) = (&self.shared.times, &self.name);
                    tell!(warn, times, ("put {name}"), "a job of queue `{name}` waits: {error}");
                    tokio::select! {
                        () = time::sleep(AGAIN) => {}
                        () = draining.wait() => {}
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Tells JetStream that a job is done, and waits until it says that it has heard, for at most [`ACK_TIME`].
    async fn acknowledge(&self, job: &Message) {
        let Some(reply) = &job.reply else { return };
        let told = self.link.request(reply.to_string(), HeaderMap::new(), "+ACK".into(), |_| true);
        if !matches!(time::timeout(ACK_TIME, told).await, Ok(Ok(_))) {
            let (times, name) = (&self.shared.times, &self.name);
            tell!(warn, times, ("ack {name}"), "a job of queue `{name}` is done, and may come once more");
        }
    }

    /// Tells JetStream what became of a job. If that does not arrive, the job comes again after `ack-wait`.
    async fn tell(&self, job: &Message, what: AckKind) {
        drop(job.ack_with(what).await);
    }

    /// Puts a dead job where the file says, or drops it, and takes it from its queue. If the queue of dead jobs does
    /// not take it, the job comes again a moment later.
    async fn bury(&self, job: &Message, sequence: u64, why: &str) {
        let (fate, then) = match &self.import.dead_letter {
            None => ("dropped".to_owned(), AckKind::Term),
            Some(dead) => {
                let dead = dead.as_ref().as_str();
                match self.put_dead(dead, job, sequence, why).await {
                    true => (format!("is now in `{dead}`"), AckKind::Term),
                    false => (format!("`{dead}` does not take it"), AckKind::Nak(Some(AGAIN))),
                }
            }
        };
        let (times, name) = (&self.shared.times, &self.name);
        tell!(error, times, ("dead {name}"), "a job of queue `{name}` is dead, and {fate}: {why}");
        self.tell(job, then).await;
    }

    /// Puts a job into the queue of dead jobs, and returns whether that keeps it.
    async fn put_dead(&self, dead: &str, job: &Message, sequence: u64, why: &str) -> bool {
        let (name, subjects) = (&self.name, &self.shared.subjects);
        let mut headers = wire::headers(subjects, self.shared.config.peer().as_str());
        headers.insert(wire::DEAD, harmless(format_args!("{}: {why}", job.subject), 400));
        // The id has the job's own id, too, because the numbers of a new stream begin anew.
        let id = wire::header(job.headers.as_ref(), wire::MESSAGE_ID).unwrap_or_default();
        headers.insert(wire::MESSAGE_ID, harmless(format_args!("dead-{name}-{sequence}-{id}"), 400));
        let accepts = is_answer_of(subjects.stream(dead));
        let put = self.link.request(subjects.job(dead), headers, job.payload.clone(), accepts);
        match time::timeout(ACK_TIME, put).await {
            Ok(Ok(answer)) => stored(&answer.payload).is_ok(),
            _ => false,
        }
    }
}
