//! Traces: which message caused which, and what became of each. Only sampled messages are recorded.
//!
//! A message that is not sampled carries no trace data. Knows nothing of how spans are shown or exported.

mod recorded;

use std::{
    fmt,
    num::NonZero,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use tokio::time::Instant;
use weir_names::{SpanId, TraceContext, TraceId};

use self::recorded::Record;
pub use self::recorded::RecordedSpans;
pub(crate) use self::recorded::{Recorded, What};
use crate::id::PeerId;

/// The work that a message is part of: its deadline, its trace, and counts that the message brings along.
#[derive(Clone, Debug, Default)]
pub struct Parent {
    /// The deadline of that work, if it has one. The message's own deadline cannot be later.
    pub deadline: Option<Instant>,
    /// Where the message stands in a trace. Without it, the message may begin a trace.
    pub trace: Option<Box<SpanOrigin>>,
    /// For a job, how often it was delivered before it came here. For an event, how many were lost before it.
    pub counted: u64,
}

/// The place of a span in its trace, known before the span begins.
#[derive(Clone, Debug)]
pub struct SpanOrigin {
    trace: TraceId,
    parent: Option<SpanId>,
    link: Option<TraceContext>,
}

/// The share of messages that are sampled, and the spans of the messages that ended last.
#[derive(Debug)]
pub(crate) struct Traces {
    /// Of 2³² traces, how many are sampled. `u32::MAX` samples all.
    sampled: AtomicU32,
    recorded: Recorded,
}

/// What the deliveries of a sampled job need for their spans.
#[derive(Clone, Debug)]
pub(crate) struct JobTrace {
    traces: Arc<Traces>,
    origin: SpanOrigin,
    /// When the job was put.
    put: Instant,
}

/// The span of a message under way.
pub struct OpenSpan {
    traces: Arc<Traces>,
    context: TraceContext,
    origin: SpanOrigin,
    began: Instant,
    start: SystemTime,
    taken: OnceLock<Instant>,
    /// The fuel that the receiver had used when it got the message.
    fuel_before: AtomicU64,
    /// The fuel that the receiver used for the message.
    fuel: OnceLock<u64>,
    /// The outcome to record if the answer is a value that reports a failure.
    failed: OnceLock<&'static str>,
}

impl SpanOrigin {
    /// Returns the origin of a span that is part of the span `context`.
    #[must_use]
    pub fn within(context: &TraceContext) -> Box<Self> {
        Box::new(Self { trace: context.trace, parent: Some(context.span), link: None })
    }

    /// Returns the origin of the first span of a new trace, with a link to the span `context` that caused it.
    #[must_use]
    pub fn after(context: &TraceContext) -> Box<Self> {
        Box::new(Self { link: Some(*context), ..Self::first() })
    }

    /// Returns the origin of the first span of a new trace.
    fn first() -> Self {
        let trace = NonZero::new(fastrand::u128(1..)).unwrap_or(NonZero::<u128>::MIN);
        Self { trace: TraceId(trace), parent: None, link: None }
    }
}

impl Traces {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { sampled: AtomicU32::new(0), recorded: Recorded::default() })
    }

    /// Sets how many of 2³² traces that begin here are sampled, and how many spans are kept at most.
    pub(crate) fn configure(&self, sampled: u32, spans: usize) {
        self.sampled.store(sampled, Ordering::Relaxed);
        self.recorded.keep(spans);
    }

    pub(crate) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Decides whether a message is sampled, and returns its place in a trace if so.
    #[inline]
    pub(crate) fn sample(&self, parent: Option<Box<SpanOrigin>>) -> Option<Box<SpanOrigin>> {
        match parent {
            // With a link, the message begins a trace of its own, which is drawn anew. Otherwise events that cause each
            // other would be recorded for ever once one of them was sampled.
            Some(origin) if origin.link.is_some() => self.draw().then_some(origin),
            Some(origin) => Some(origin),
            None if self.is_off() => None,
            None => self.draw().then(|| Box::new(SpanOrigin::first())),
        }
    }

    /// Decides by chance whether a new trace is sampled.
    #[cold]
    pub(crate) fn draw(&self) -> bool {
        let sampled = self.sampled.load(Ordering::Relaxed);
        sampled == u32::MAX || fastrand::u32(..) < sampled
    }

    /// Begins the span of a message that was sent at `began`, if the message is sampled.
    #[inline]
    pub(crate) fn open(
        self: &Arc<Self>,
        parent: Option<Box<SpanOrigin>>,
        began: Instant,
    ) -> Option<Arc<OpenSpan>> {
        if parent.is_none() && self.is_off() {
            return None;
        }
        self.open_sampled(parent, began)
    }

    #[cold]
    fn open_sampled(
        self: &Arc<Self>,
        parent: Option<Box<SpanOrigin>>,
        began: Instant,
    ) -> Option<Arc<OpenSpan>> {
        self.sample(parent).map(|origin| self.begin(*origin, began))
    }

    fn is_off(&self) -> bool {
        self.sampled.load(Ordering::Relaxed) == 0
    }

    // Cold, because few messages are sampled: the common path stays short.
    #[cold]
    pub(crate) fn begin(self: &Arc<Self>, origin: SpanOrigin, began: Instant) -> Arc<OpenSpan> {
        let span = SpanId(NonZero::new(fastrand::u64(1..)).unwrap_or(NonZero::<u64>::MIN));
        let ago = began.elapsed();
        Arc::new(OpenSpan {
            traces: self.clone(),
            context: TraceContext { trace: origin.trace, span, is_sampled: true },
            origin,
            began,
            start: SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH),
            taken: OnceLock::new(),
            fuel_before: AtomicU64::new(0),
            fuel: OnceLock::new(),
            failed: OnceLock::new(),
        })
    }
}

impl JobTrace {
    pub(crate) fn new(traces: Arc<Traces>, origin: SpanOrigin, put: Instant) -> Box<Self> {
        Box::new(Self { traces, origin, put })
    }

    /// Begins the span of one delivery of the job. The span counts from when the job was put, and is taken now.
    #[cold]
    pub(crate) fn take(&self) -> Arc<OpenSpan> {
        let span = self.traces.begin(self.origin.clone(), self.put);
        span.note_taken();
        span
    }
}

impl OpenSpan {
    /// Returns the span's place in its trace, for messages that are part of the span.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// Notes that the receiver has taken the message. The time before this is recorded as waiting.
    #[cold]
    pub fn note_taken(&self) {
        self.taken.get_or_init(Instant::now);
    }

    /// Notes how much fuel the receiver had used in total before it got the message.
    pub fn note_fuel_before(&self, used: u64) {
        self.fuel_before.store(used, Ordering::Relaxed);
    }

    /// Notes how much fuel the receiver has used in total once it is done with the message.
    pub fn note_fuel(&self, used: u64) {
        self.fuel.get_or_init(|| used.saturating_sub(self.fuel_before.load(Ordering::Relaxed)));
    }

    /// Notes the outcome of a request that failed although its answer is a value. The first note counts.
    pub fn note_failed(&self, outcome: &'static str) {
        self.failed.get_or_init(|| outcome);
    }

    /// Ends the span and records it.
    #[cold]
    pub(crate) fn end(&self, what: What, caller: PeerId, provider: Option<&str>, outcome: &'static str) {
        let now = Instant::now();
        let taken = self.taken.get();
        let failed = self.failed.get().copied().filter(|_| outcome == "ok");
        self.traces.recorded.push(Record {
            context: self.context,
            parent: self.origin.parent,
            link: self.origin.link,
            what,
            caller,
            provider: provider.map(Into::into),
            start: self.start,
            duration: now.saturating_duration_since(self.began),
            waited: taken.map(|taken| taken.saturating_duration_since(self.began)),
            worked: taken.map(|taken| now.saturating_duration_since(*taken)),
            fuel: self.fuel.get().copied(),
            outcome: failed.unwrap_or(outcome),
        });
    }
}

impl fmt::Debug for OpenSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenSpan").field(&self.context).finish()
    }
}
