//! The recorded messages that a session has in hand.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use weir_bus::OpenSpan;
use weir_names::TraceId;

use super::Live;

/// The traces of the recorded requests and jobs in hand, with the number of messages of each. What the session sends as
/// part of one is recorded, too: also under a span of its own, as programs with tools of OpenTelemetry have them.
#[derive(Debug, Default)]
pub(crate) struct Traced(Mutex<HashMap<TraceId, usize>>);

/// A recorded request or job, in hand until this is dropped.
#[derive(Debug)]
pub(crate) struct TracedGuard {
    live: Arc<Live>,
    trace: TraceId,
}

impl Traced {
    pub(crate) fn has(&self, trace: TraceId) -> bool {
        self.0.lock().contains_key(&trace)
    }
}

impl TracedGuard {
    #[cold]
    pub(crate) fn new(live: &Arc<Live>, span: &OpenSpan) -> Box<Self> {
        let trace = span.context().trace;
        *live.traced.0.lock().entry(trace).or_default() += 1;
        Box::new(Self { live: live.clone(), trace })
    }
}

impl Drop for TracedGuard {
    fn drop(&mut self) {
        let mut in_hand = self.live.traced.0.lock();
        if let Some(messages) = in_hand.get_mut(&self.trace) {
            *messages -= 1;
            if *messages == 0 {
                in_hand.remove(&self.trace);
            }
        }
    }
}
