//! Traces: which message is done for which, and what became of each, as far as it is sampled.
//!
//! A message that is not sampled carries nothing of this. Knows nothing of how spans are shown or exported.

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

/// What a message is done for.
#[derive(Clone, Debug, Default)]
pub struct Parent {
    /// Its deadline, if any, caps the message's own.
    pub deadline: Option<Instant>,
    /// The span that it is part of. None if it may begin a trace.
    pub trace: Option<Box<SpanOrigin>>,
    /// What was counted of the message before it came here: deliveries of a job, or events lost before an event.
    pub counted: u64,
}

/// What is known of a sampled span before it begins.
#[derive(Clone, Debug)]
pub struct SpanOrigin {
    trace: TraceId,
    parent: Option<SpanId>,
    link: Option<TraceContext>,
}

/// Which messages are sampled, and the spans of those that have ended.
#[derive(Debug)]
pub(crate) struct Traces {
    /// Of 2³² traces, how many are sampled.
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
    /// The receiver's fuel when it got the message, and what it used for it.
    fuel_before: AtomicU64,
    fuel: OnceLock<u64>,
    /// What failed, though the answer is a value.
    failed: OnceLock<&'static str>,
}

impl SpanOrigin {
    /// Of a span that is part of another one.
    #[must_use]
    pub fn within(context: &TraceContext) -> Box<Self> {
        Box::new(Self { trace: context.trace, parent: Some(context.span), link: None })
    }

    /// Of the first span of a trace that another one has caused.
    #[must_use]
    pub fn after(context: &TraceContext) -> Box<Self> {
        Box::new(Self { link: Some(*context), ..Self::first() })
    }

    /// Of the first span of a trace.
    fn first() -> Self {
        let trace = NonZero::new(fastrand::u128(1..)).unwrap_or(NonZero::<u128>::MIN);
        Self { trace: TraceId(trace), parent: None, link: None }
    }
}

impl Traces {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { sampled: AtomicU32::new(0), recorded: Recorded::default() })
    }

    /// Of 2³² traces that begin here, so many are sampled; at most so many spans are kept.
    pub(crate) fn configure(&self, sampled: u32, spans: usize) {
        self.sampled.store(sampled, Ordering::Relaxed);
        self.recorded.keep(spans);
    }

    pub(crate) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Where a message stands in a trace, if it is sampled.
    #[inline]
    pub(crate) fn sample(&self, parent: Option<Box<SpanOrigin>>) -> Option<Box<SpanOrigin>> {
        match parent {
            // A trace of its own. Else events that cause each other would be recorded for ever, once one was.
            Some(origin) if origin.link.is_some() => self.draw().then_some(origin),
            Some(origin) => Some(origin),
            None if self.is_off() => None,
            None => self.draw().then(|| Box::new(SpanOrigin::first())),
        }
    }

    /// Whether the next trace is sampled.
    #[cold]
    pub(crate) fn draw(&self) -> bool {
        let sampled = self.sampled.load(Ordering::Relaxed);
        sampled == u32::MAX || fastrand::u32(..) < sampled
    }

    /// Begins the span of a message that is sent at `began`.
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

    // Rarely called, so it stays out of what nearly always runs.
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

    /// A reader takes the job.
    #[cold]
    pub(crate) fn take(&self) -> Arc<OpenSpan> {
        let span = self.traces.begin(self.origin.clone(), self.put);
        span.note_taken();
        span
    }
}

impl OpenSpan {
    /// Its place, for messages that are part of it.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// The receiver has it in hand from now on.
    #[cold]
    pub fn note_taken(&self) {
        self.taken.get_or_init(Instant::now);
    }

    /// The fuel that the receiver had used before it got the message.
    pub fn note_fuel_before(&self, used: u64) {
        self.fuel_before.store(used, Ordering::Relaxed);
    }

    /// The fuel that the receiver has used when it is done with the message.
    pub fn note_fuel(&self, used: u64) {
        self.fuel.get_or_init(|| used.saturating_sub(self.fuel_before.load(Ordering::Relaxed)));
    }

    /// What was asked for has failed in this way, though the answer is a value that says so.
    pub fn note_failed(&self, outcome: &'static str) {
        self.failed.get_or_init(|| outcome);
    }

    /// The message's way ends here.
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
