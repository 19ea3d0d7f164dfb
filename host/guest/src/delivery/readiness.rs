//! The state that an instance has declared: nothing yet, ready, or interrupted.

use std::sync::Arc;

use weir_bus::{Peer, Phase};
use weir_names::harmless;

use crate::signals::{Notice, Signals};

/// The most bytes of the reason that a guest gives.
pub(crate) const MAX_REASON: usize = 1024;

#[derive(Debug)]
pub(crate) struct Readiness {
    peer: Arc<Peer>,
    signals: Arc<Signals>,
    declared: Declared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    Nothing,
    Ready,
    Interrupted,
}

impl Readiness {
    pub(super) fn new(peer: Arc<Peer>, signals: Arc<Signals>) -> Self {
        Self { peer, signals, declared: Declared::Nothing }
    }

    pub(crate) async fn ready(&mut self) {
        if self.declared != Declared::Ready {
            self.declared = Declared::Ready;
            self.peer.set_phase_if_up(Phase::Ready);
            self.signals.notify(Notice::Ready).await;
        }
    }

    /// Declares the extension interrupted, with the reason.
    pub(crate) async fn interrupted(&mut self, reason: String) {
        let reason = harmless(&reason, MAX_REASON);
        // Counts as declared, so that the first receive does not declare the instance ready.
        self.declared = Declared::Interrupted;
        self.peer.set_phase_if_up(Phase::Interrupted(reason.clone()));
        self.signals.notify(Notice::Interrupted(reason)).await;
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.declared != Declared::Nothing
    }
}
