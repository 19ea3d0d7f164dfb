//! Jobs: those of this Main to a work queue of JetStream, and from there to this Main. Here are the streams and consumers.
//!
//! A queue of the fleet is a stream. Each exporting node puts into it, and each importing node takes from it by one consumer
//! that they share. Each job has an id, by which JetStream drops what is put twice.

mod export;
mod import;

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use async_nats::{
    Message,
    jetstream::{
        self, ErrorCode,
        consumer::{AckPolicy, PullConsumer, pull},
        context::{Context as JetStream, GetStreamError, GetStreamErrorKind},
        stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream},
    },
};
use serde::Deserialize;
use weir_names::Error;

use crate::{
    config::{ExportQueue, ImportQueue},
    link::Link,
    shared::Shared,
};

pub(crate) use self::{export::export, import::import};

/// The consumer that all importing nodes share.
const CONSUMER: &str = "weir";

/// Most jobs of a queue that are in hand in the whole fleet.
const IN_HAND_MAX: i64 = 65_536;

/// How long the server remembers ids in a stream that no export describes.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// JetStream through a link.
pub(crate) fn jetstream(shared: &Shared, link: &Link) -> JetStream {
    let client = link.client().clone();
    match &shared.config.nats.as_ref().jetstream_domain {
        Some(domain) => jetstream::with_domain(client, domain.as_ref()),
        None => jetstream::new(client),
    }
}

/// The stream of a queue. With `is_maker`, because this node puts into it, makes the stream unless it is there. Fails
/// if the stream could lose jobs, or is not as the file wants it.
async fn stream(
    shared: &Shared,
    link: &Link,
    queue: &str,
    export: Option<&ExportQueue>,
    is_maker: bool,
) -> Result<Stream> {
    let context = jetstream(shared, link);
    let (name, subject) = (shared.subjects.stream(queue), shared.subjects.jobs(queue));
    let failed = |error: &dyn std::fmt::Display| anyhow!("cannot use the stream `{name}`: {error}");
    let found = context.get_stream(&name).await;
    let stream = match found {
        Ok(stream) => stream,
        Err(error) if is_missing(&error) && is_maker => {
            let config = config(&name, &subject, queue, export);
            context.create_stream(config).await.map_err(|error| failed(&error))?;
            context.get_stream(&name).await.map_err(|error| failed(&error))?
        }
        Err(error) if is_missing(&error) => {
            bail!("there is no stream `{name}` yet: a node that exports the queue makes it")
        }
        Err(error) => return Err(failed(&error)),
    };
    check(&stream.cached_info().config, &subject, export)?;
    Ok(stream)
}

fn is_missing(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn config(name: &str, subject: &str, queue: &str, export: Option<&ExportQueue>) -> Config {
    Config {
        name: name.to_owned(),
        description: Some(format!("the queue {queue} of a fleet of Weir")),
        subjects: vec![subject.to_owned()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        // A full stream refuses a job rather than lose one.
        discard: DiscardPolicy::New,
        num_replicas: export.and_then(|export| export.replicas).map_or(1, |replicas| replicas.size()),
        duplicate_window: export.map_or(DUPLICATE_WINDOW, |export| export.duplicate_window.get()),
        ..Config::default()
    }
}

/// Fails unless a stream keeps each job until it is done, and is as the file wants it.
fn check(found: &Config, subject: &str, export: Option<&ExportQueue>) -> Result<()> {
    let name = &found.name;
    ensure!(
        found.retention == RetentionPolicy::WorkQueue && found.subjects.iter().any(|own| own == subject),
        "the stream `{name}` is there already, and is no work queue of `{subject}`: remove or change it"
    );
    ensure!(
        found.discard == DiscardPolicy::New
            && found.max_age.is_zero()
            && found.max_messages_per_subject <= 0
            && found.storage == StorageType::File
            && !found.no_ack
            && !found.sealed,
        "the stream `{name}` loses jobs: it needs discard `new`, file storage and acknowledgements, and no `max-age`, \
         no limit for each subject and no seal"
    );
    let Some(export) = export else { return Ok(()) };
    if let Some(replicas) = export.replicas {
        let (found, wanted) = (found.num_replicas, replicas.size());
        ensure!(
            found >= wanted,
            "the stream `{name}` has {found} replicas, and the file wants {wanted}: change it"
        );
    }
    let (window, wanted) = (found.duplicate_window, export.duplicate_window.get());
    ensure!(
        window >= wanted,
        "the stream `{name}` remembers ids for {window:?}, and the file wants {wanted:?}: change either"
    );
    Ok(())
}

/// Whether a message is JetStream's answer to one for this stream. An error counts, whichever stream it is of. A stream
/// that records the subject answers, too, and does not count.
fn is_answer_of(stream: String) -> impl Fn(&Message) -> bool + Send + 'static {
    move |answer| match serde_json::from_slice(&answer.payload) {
        Ok(Stored { error: Some(_), .. }) => true,
        Ok(Stored { stream: found, .. }) => found == stream,
        Err(_) => false,
    }
}

/// The consumer of a queue, which is made unless it is there. One that is there stays as it is.
async fn consumer(stream: &Stream, import: &ImportQueue) -> Result<PullConsumer> {
    let config = pull::Config {
        durable_name: Some(CONSUMER.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: import.ack_wait.get(),
        // The bridge counts, so that a dead job goes to its queue and does not stay in the stream for ever.
        max_deliver: -1,
        max_ack_pending: IN_HAND_MAX,
        ..pull::Config::default()
    };
    let name = &stream.cached_info().config.name;
    // All nodes share the consumer, so none changes it for the others.
    if let Ok(found) = stream.get_consumer::<pull::Config>(CONSUMER).await {
        let (ack_wait, wanted) = (found.cached_info().config.ack_wait, config.ack_wait);
        if ack_wait != wanted {
            tracing::warn!(
                "the consumer of `{name}` has an `ack-wait` of {ack_wait:?}, and not of {wanted:?}"
            );
        }
        return Ok(found);
    }
    let made = stream.create_consumer(config).await;
    made.map_err(|error| anyhow!("{error}")).with_context(|| format!("cannot take from the stream `{name}`"))
}

/// What JetStream answers to a message.
#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    stream: String,
    #[serde(default)]
    seq: u64,
    error: Option<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

/// Codes of the server for a stream without room: `JSStreamStoreFailedF` says so for `maximum messages exceeded`.
const NO_ROOM: [u64; 3] = [10_077, 10_047, 10_028];

/// Fails unless JetStream's answer to a message says that the message is stored.
pub(crate) fn stored(answer: &[u8]) -> Result<(), Error> {
    let malformed = |_| Error::failed("JetStream answered with something else than JSON");
    match serde_json::from_slice(answer).map_err(malformed)? {
        Stored { seq: 1.., error: None, .. } => Ok(()),
        Stored { error: Some(Refused { err_code, description }), .. } if NO_ROOM.contains(&err_code) => {
            Err(Error::Overloaded(format!("the stream: {description}")))
        }
        Stored { error: Some(Refused { description, .. }), .. } => {
            Err(Error::NoProvider(format!("JetStream: {description}")))
        }
        Stored { .. } => Err(Error::failed("JetStream did not say where it has stored the job")),
    }
}

/// Most jobs of a queue that are remembered. A server that dies brings back the latest ones.
const REMEMBERED: usize = 16_384;

/// How often the latest jobs of a queue were brought to Main, by their numbers in the stream.
///
/// A server that is killed forgets the last deliveries and acknowledgements, and counts them anew. What this bridge remembers
/// tells a reader that it may have had the job.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    times: HashMap<u64, Earlier>,
    /// The oldest first.
    order: VecDeque<u64>,
}

/// Deliveries of a job before one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// Deliveries by this process.
    pub(crate) own: u32,
    /// Deliveries by all bridges, as far as this one knows: there may have been more.
    pub(crate) all: u32,
}

impl Brought {
    /// Counts a delivery, which has the number `delivery` by the server's count. Returns the deliveries before it.
    pub(crate) fn before(&mut self, number: u64, delivery: u32) -> Earlier {
        let server = delivery.saturating_sub(1);
        let before = match self.times.get(&number) {
            Some(Earlier { own, all }) => Earlier { own: *own, all: server.max(*all) },
            None => {
                self.order.push_back(number);
                Earlier { own: 0, all: server }
            }
        };
        let after = Earlier { own: before.own.saturating_add(1), all: before.all.saturating_add(1) };
        self.times.insert(number, after);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_jetstream_says_whether_the_job_is_stored() {
        assert_eq!(stored(br#"{"stream":"weir_home_a","seq":22}"#), Ok(()));
        assert_eq!(stored(br#"{"stream":"weir_home_a","seq":22,"duplicate":true}"#), Ok(()));
        let full = br#"{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"a","seq":0}"#;
        assert_eq!(stored(full).unwrap_err().case(), "overloaded");
        let away =
            br#"{"error":{"code":503,"err_code":10008,"description":"system temporarily unavailable"}}"#;
        assert_eq!(stored(away).unwrap_err().case(), "no-provider");
        for bad in ["", "{}", "[]", "+OK"] {
            assert_eq!(stored(bad.as_bytes()).unwrap_err().code(), "failed", "{bad}");
        }
    }

    #[test]
    fn a_job_that_comes_again_as_if_for_the_first_time_is_known() {
        let mut brought = Brought::default();
        assert_eq!(brought.before(7, 1).all, 0);
        assert_eq!(brought.before(7, 1).all, 1);
        assert_eq!(brought.before(7, 1).all, 2);
        assert_eq!(brought.before(8, 1).all, 0);
    }

    #[test]
    fn what_the_server_knows_of_other_bridges_counts_too() {
        let mut brought = Brought::default();
        assert_eq!(brought.before(7, 4).all, 3);
        assert_eq!(brought.before(7, 2).all, 4);
        assert_eq!(brought.before(7, 9), Earlier { own: 2, all: 8 });
    }

    #[test]
    fn jobs_without_end_take_no_memory_without_end() {
        let mut brought = Brought::default();
        for number in 0..100_000 {
            brought.before(number, 1);
            brought.before(number, 1);
        }
        assert_eq!((brought.times.len(), brought.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(brought.before(99_999, 1).all, 2);
    }
}
