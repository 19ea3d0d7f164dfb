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

use super::{
    brought::Earlier,
    stream::{consumer, is_answer_of, stored, stream},
};
use crate::{config::ImportQueue, link::Link, pause::Pause, sessions::Sessions, shared::Shared, wire};

/// How long the server keeps a question for jobs.
const ASK_TIME: Duration = Duration::from_secs(30);

/// The time until a job that cannot be brought now is brought again.
const AGAIN: Duration = Duration::from_secs(1);

/// Time for JetStream to say that it has an acknowledgement.
const ACK_TIME: Duration = Duration::from_secs(5);

/// Attempts that follow each other quickly.
const QUICK_ATTEMPTS: u32 = 10;

/// Most jobs of one question: what comes at once has room in the client of NATS.
const BATCH_MAX: usize = 256;

/// What the session needs beside jobs.
const RESERVE: u32 = 4;

/// Begins to make streams, and to bring the jobs of all imported queues. What is dropped with the last sender of
/// `prepared` says that all is there.
pub(crate) fn import(
    shared: &Arc<Shared>,
    sessions: &Sessions,
    link: &Link,
    tasks: &mut JoinSet<()>,
    prepared: &mpsc::Sender<()>,
) -> Result<(), Error> {
    let Some(peer) = &sessions.jobs else { return Ok(()) };
    let (config, queues) = (&shared.config, &shared.config.import.queues);
    for name in config.export.queues.keys().filter(|name| !queues.contains_key(*name)) {
        let (shared, link, name) = (shared.clone(), link.clone(), name.as_ref().clone());
        let (peer, prepared) = (peer.clone(), prepared.clone());
        tasks.spawn(async move {
            let _none = prepare(&shared, &peer, &link, name.as_str(), None, prepared).await;
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
            if let Some(consumer) = prepare(shared, peer, link, name, Some(import), prepared).await {
                importer.run(consumer, room).await;
            }
        });
    }
    Ok(())
}

/// The stream of a queue, by what the file says of it.
async fn stream_of(shared: &Shared, link: &Link, queue: &str, is_dead: bool) -> Result<Stream> {
    let export = shared.config.export.queues.iter().find(|(own, _)| own.as_ref().as_str() == queue);
    stream(shared, link, queue, export.map(|(_, export)| export), is_dead || export.is_some()).await
}

/// Makes what JetStream must have for a queue.
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

/// [`prepare_again`], until a connection ends or the bridge drains.
async fn prepare(
    shared: &Shared,
    peer: &Peer,
    link: &Link,
    queue: &str,
    import: Option<&ImportQueue>,
    prepared: mpsc::Sender<()>,
) -> Option<PullConsumer> {
    let mut draining = shared.draining();
    tokio::select! {
        consumer = prepare_again(shared, link, queue, import, prepared) => consumer,
        _ = peer.closed() => None,
        () = draining.wait() => None,
    }
}

/// [`prepare_once`], until it succeeds or the link ends. A server that has just started has no JetStream for a moment: only
/// after some attempts is `prepared` dropped, and others go on without this queue.
async fn prepare_again(
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
                if let Some(times) = shared.times.once_more(&format!("prepare {queue}: {error:#}")) {
                    tracing::error!(times, "queue `{queue}` does not cross: {error:#}");
                }
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
    /// Asks for jobs as there is room, until the link ends, or the bridge drains and none is in hand.
    async fn run(self: Arc<Self>, consumer: PullConsumer, room: Arc<Semaphore>) {
        let mut draining = self.shared.draining();
        let mut in_hand = JoinSet::new();
        let fetch = async {
            loop {
                if let Err(error) = self.clone().fetch(&consumer, &room, &mut in_hand).await {
                    if let Some(times) = self.shared.times.once_more(&format!("fetch {}", self.name)) {
                        tracing::warn!(times, "cannot ask for jobs of queue `{}`: {error}", self.name);
                    }
                    time::sleep(AGAIN).await;
                }
            }
        };
        tokio::select! {
            () = fetch => {}
            _ = self.peer.closed() => {}
            () = draining.wait() => {}
        }
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
        // The consumer's, which may be another one than the file's.
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
            if let Some(times) = self.shared.strangers.once_more(&format!("job of {from}")) {
                tracing::warn!(times, "refuses a job of node `{from}` in queue `{}`", self.name);
            }
            // Another node may take it, also one that comes later.
            return self.tell(&job, AckKind::Nak(Some(AGAIN * delivery.min(60)))).await;
        }
        let Earlier { own, all } = self.shared.deliveries_before(&self.name, sequence, delivery);
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
                    if let Some(times) = self.shared.times.once_more(&format!("put {}", self.name)) {
                        tracing::warn!(times, "a job of queue `{}` waits: {error}", self.name);
                    }
                    tokio::select! {
                        () = time::sleep(AGAIN) => {}
                        () = draining.wait() => {}
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Tells JetStream that a job is done, until it says that it has heard.
    async fn acknowledge(&self, job: &Message) {
        let Some(reply) = &job.reply else { return };
        let mut sent = None;
        let told = self.link.request(reply.to_string(), HeaderMap::new(), "+ACK".into(), &mut sent);
        if !matches!(time::timeout(ACK_TIME, told).await, Ok(Ok(_)))
            && let Some(times) = self.shared.times.once_more(&format!("ack {}", self.name))
        {
            tracing::warn!(times, "a job of queue `{}` is done, and may come once more", self.name);
        }
    }

    /// If it does not arrive, the job comes again after `ack-wait`.
    async fn tell(&self, job: &Message, what: AckKind) {
        drop(job.ack_with(what).await);
    }

    fn say_dead(&self, what: std::fmt::Arguments<'_>) {
        if let Some(times) = self.shared.times.once_more(&format!("dead {}", self.name)) {
            tracing::error!(times, "{what}");
        }
    }

    /// Puts a dead job where the file says, and takes it from its queue.
    async fn bury(&self, job: &Message, sequence: u64, why: &str) {
        let name = &self.name;
        let Some(dead) = &self.import.dead_letter else {
            self.say_dead(format_args!("a job of queue `{name}` is dead, and dropped: {why}"));
            return self.tell(job, AckKind::Term).await;
        };
        let dead = dead.as_ref().as_str();
        let mut headers = HeaderMap::new();
        headers.insert(wire::NODE, self.shared.subjects.node());
        headers.insert(wire::SENDER, self.shared.config.peer().as_str());
        headers.insert(wire::DEAD, harmless(format_args!("{}: {why}", job.subject), 400));
        // Its own id, too: numbers begin anew with a new stream.
        let id = wire::header(job.headers.as_ref(), wire::MESSAGE_ID).unwrap_or_default();
        headers.insert(wire::MESSAGE_ID, harmless(format_args!("dead-{name}-{sequence}-{id}"), 400));
        let mut sent = None;
        let (subject, payload) = (self.shared.subjects.job(dead), job.payload.clone());
        let accepts = is_answer_of(self.shared.subjects.stream(dead));
        let put = self.link.request_of(subject, headers, payload, &mut sent, accepts);
        let is_kept = match time::timeout(ACK_TIME, put).await {
            Ok(Ok(answer)) => stored(&answer.payload).is_ok(),
            _ => false,
        };
        if is_kept {
            self.say_dead(format_args!("a job of queue `{name}` is dead, and is now in `{dead}`: {why}"));
            self.tell(job, AckKind::Term).await;
        } else {
            self.say_dead(format_args!(
                "a job of queue `{name}` is dead, and `{dead}` does not take it: {why}"
            ));
            self.tell(job, AckKind::Nak(Some(AGAIN))).await;
        }
    }
}
