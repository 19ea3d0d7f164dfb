//! What is said on stderr: each change once, losses of each kind at most once a minute, and warnings of the collector.

use std::time::{Duration, Instant};

use weir_otlp::{PartialSuccess, Taken};

use crate::output::{complain, counted, printable};

/// The least time between two lines about the same loss.
const QUIET: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Teller {
    pub(super) endpoint: String,
    is_main_away: bool,
    is_collector_away: bool,
    dropped: Loss,
    unreadable: Loss,
    refused: Loss,
}

impl Teller {
    pub(super) fn new(endpoint: String) -> Self {
        Self { endpoint, ..Self::default() }
    }

    pub(super) fn main_is_away(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_main_away, true) {
            complain(&format!("error: {why}; trying again"));
        }
    }

    pub(super) fn main_is_there(&mut self) {
        if std::mem::take(&mut self.is_main_away) {
            complain("Main is back");
        }
    }

    pub(super) fn collector_is_away(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_collector_away, true) {
            let (endpoint, why) = (printable(&self.endpoint), printable(why));
            complain(&format!(
                "error: the collector at `{endpoint}` does not take spans: {why}; trying again"
            ));
        }
    }

    pub(super) fn collector_is_there(&mut self) {
        if std::mem::take(&mut self.is_collector_away) {
            complain("the collector is back");
        }
    }

    /// Counts the spans that were lost before this answer of Main, or that it has in an unknown form.
    pub(super) fn took(&mut self, taken: Taken) {
        if taken.restarted {
            complain("Main has restarted: spans from before that were not read are lost");
        }
        self.dropped.count(taken.lost, "lost: Main dropped them before they were read");
        self.unreadable.count(taken.unreadable, "left out: they cannot be read; is Main of another version?");
    }

    /// Counts spans that the collector has refused. The collector has answered, so it counts as being there.
    pub(super) fn refused(&mut self, spans: u64, why: &str) {
        self.collector_is_there();
        self.refused.count(spans, &format!("lost: the collector refused them: {why}"));
    }

    /// Counts the spans that the collector rejected of a batch. If it rejected none, shows its warning.
    pub(super) fn partly(&mut self, partial: &PartialSuccess) {
        let PartialSuccess { rejected, message } = partial;
        if *rejected > 0 {
            self.refused.count(*rejected, &format!("lost: the collector rejected them: {message}"));
        } else {
            complain(&format!("warning: the collector says: {}", printable(message)));
        }
    }

    /// Says what was not yet said. Returns how many spans the collector refused in all.
    pub(super) fn finish(&mut self) -> u64 {
        for loss in [&mut self.dropped, &mut self.unreadable, &mut self.refused] {
            loss.say();
        }
        self.refused.all
    }
}

/// Spans that were lost for one reason.
#[derive(Default)]
struct Loss {
    all: u64,
    unsaid: u64,
    why: String,
    said: Option<Instant>,
}

impl Loss {
    fn count(&mut self, spans: u64, why: &str) {
        if spans > 0 {
            self.all = self.all.saturating_add(spans);
            self.unsaid = self.unsaid.saturating_add(spans);
            why.clone_into(&mut self.why);
        }
        if self.said.is_none_or(|said| said.elapsed() >= QUIET) {
            self.say();
        }
    }

    fn say(&mut self) {
        let spans = std::mem::take(&mut self.unsaid);
        if spans > 0 {
            self.said = Some(Instant::now());
            complain(&format!("warning: {} {}", counted(spans, "span"), printable(&self.why)));
        }
    }
}
