//! The spans of the messages that ended last, each with a number that counts up from 1.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use weir_names::{QueueName, SpanId, Topic, TraceContext, TraceId};
use weir_reports::{Span, SpanKind};

use crate::id::{OperationId, PeerId};

/// How many spans are kept unless the operator configures another number.
const DEFAULT: usize = 4096;

/// The last spans of one Main.
#[derive(Debug)]
pub(crate) struct Recorded {
    instance: u64,
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    max: usize,
    /// The spans that are kept, oldest first.
    records: VecDeque<Record>,
    /// How many spans were recorded so far. This is also the number of the last span.
    count: u64,
    /// How many of them were dropped to make room for later ones.
    lost: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) context: TraceContext,
    pub(super) parent: Option<SpanId>,
    pub(super) link: Option<TraceContext>,
    pub(super) what: What,
    pub(super) caller: PeerId,
    pub(super) provider: Option<Box<str>>,
    pub(super) start: SystemTime,
    pub(super) duration: Duration,
    pub(super) waited: Option<Duration>,
    pub(super) worked: Option<Duration>,
    pub(super) fuel: Option<u64>,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Request(Arc<OperationId>),
    Job(QueueName),
    Event(Topic),
}

/// Some of the spans that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedSpans {
    /// Oldest first.
    pub spans: Vec<Span>,
    /// A random number, chosen when Main starts. With another one, the numbers of spans have begun anew.
    pub instance: u64,
    /// How many spans were recorded so far. This is also the number of the last span.
    pub recorded: u64,
    /// How many of these were dropped to make room for later ones.
    pub lost: u64,
}

impl Default for Recorded {
    fn default() -> Self {
        let ring = Ring { max: DEFAULT, records: VecDeque::new(), count: 0, lost: 0 };
        Self { instance: fastrand::u64(..), ring: Mutex::new(ring) }
    }
}

impl Recorded {
    /// Keeps at most `max` spans from now on, and drops the oldest beyond that.
    pub(super) fn keep(&self, max: usize) {
        let mut ring = self.ring.lock();
        ring.max = max;
        ring.make_room(0);
        ring.records.shrink_to(max);
    }

    pub(super) fn push(&self, record: Record) {
        let mut ring = self.ring.lock();
        ring.make_room(1);
        ring.records.push_back(record);
        ring.count += 1;
    }

    /// Returns up to `max` spans with numbers above `after`, of one trace or all. `name` returns the name of a peer.
    pub(crate) fn spans(
        &self,
        after: u64,
        trace: Option<TraceId>,
        max: usize,
        name: impl Fn(PeerId) -> String,
    ) -> RecordedSpans {
        let (records, recorded, lost) = {
            let ring = self.ring.lock();
            let first = ring.count - ring.records.len() as u64 + 1;
            let skipped =
                usize::try_from(after.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX);
            let numbered = (first..).zip(&ring.records).skip(skipped);
            let chosen =
                numbered.filter(|(_, record)| trace.is_none_or(|trace| record.context.trace == trace));
            let records: Vec<_> = chosen.take(max).map(|(number, record)| (number, record.clone())).collect();
            (records, ring.count, ring.lost)
        };
        // Done outside the lock, because the worker thread takes that lock for each span that ends.
        let spans = records.into_iter().map(|(number, record)| record.shown(number, &name)).collect();
        RecordedSpans { spans, instance: self.instance, recorded, lost }
    }

    /// Returns how many spans were recorded so far, and how many of these were dropped to make room.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let ring = self.ring.lock();
        (ring.count, ring.lost)
    }
}

impl Ring {
    /// Drops the oldest spans until there is room for `more` new ones.
    fn make_room(&mut self, more: usize) {
        let many = (self.records.len() + more).saturating_sub(self.max).min(self.records.len());
        self.records.drain(..many);
        self.lost += many as u64;
    }
}

impl Record {
    fn shown(self, number: u64, name: impl Fn(PeerId) -> String) -> Span {
        let kind = match self.what {
            What::Request(operation) => {
                SpanKind::Request { contract: operation.contract.clone(), operation: operation.name.clone() }
            }
            What::Job(queue) => SpanKind::Job { queue },
            What::Event(topic) => SpanKind::Event { topic },
        };
        Span {
            number,
            trace: self.context.trace,
            span: self.context.span,
            parent: self.parent,
            link: self.link,
            kind,
            caller: name(self.caller),
            provider: self.provider.map(Into::into),
            start: self.start,
            duration: self.duration,
            waited: self.waited,
            worked: self.worked,
            fuel: self.fuel,
            outcome: self.outcome.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/configuration.md` says about 300 bytes: these, the receiver's name, and a topic or queue.
    #[test]
    fn a_span_takes_no_more_memory_than_the_manual_says() {
        assert!(size_of::<Record>() <= 272, "{}", size_of::<Record>());
    }
}
