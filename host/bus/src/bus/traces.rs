//! Traces: what is sampled, and the spans that were.

use weir_names::{TraceContext, TraceId};

use super::Bus;
use crate::trace::{RecordedSpans, SpanOrigin};

impl Bus {
    /// Of 2³² traces that begin here, so many are sampled from now on; all with `u32::MAX`. At most `spans` are kept.
    pub fn configure_traces(&self, sampled: u32, spans: usize) {
        self.traces.configure(sampled, spans);
    }

    /// Where a message stands that is part of a span of another program. If it need not be recorded, it is sampled as
    /// if the trace began here, so that strangers cannot fill the memory for spans.
    pub fn join_trace(&self, context: &TraceContext, is_wanted: bool) -> Option<Box<SpanOrigin>> {
        (is_wanted || self.traces.draw()).then(|| SpanOrigin::within(context))
    }

    /// Up to `max` of the spans that are kept, after the one with this number, of one trace or all.
    pub fn spans(&self, after: u64, trace: Option<TraceId>, max: usize) -> RecordedSpans {
        let name = |id| self.owners.get(id).map_or_else(String::new, |peer| peer.name().to_owned());
        self.traces.recorded().spans(after, trace, max, name)
    }

    /// How many spans were recorded so far, and how many of these were dropped to make room.
    pub fn span_counts(&self) -> (u64, u64) {
        self.traces.recorded().counts()
    }
}
