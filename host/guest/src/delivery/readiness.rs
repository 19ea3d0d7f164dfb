//! What an instance has said of itself: nothing yet, that it is ready, or that it is interrupted.

use std::sync::Arc;

use weir_bus::{Peer, Phase};
use weir_names::harmless;

use crate::signals::{Notice, Signals};

/// Bytes of what a guest gives as a reason.
const MAX_REASON: usize = 1024;

/// What an instance has said of itself, for the bus and for the supervisor.
#[derive(Debug)]
pub(crate) struct Readiness {
    peer: Arc<Peer>,
    signals: Arc<Signals>,
    declared: Declared,
}

/// What it has said last.
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

    /// Declares the extension ready, once.
    pub(crate) async fn ready(&mut self) {
        if self.declared != Declared::Ready {
            self.declared = Declared::Ready;
            self.peer.set_phase_if_up(Phase::Ready);
            self.signals.notify(Notice::Ready).await;
        }
    }

    /// Declares the extension interrupted, and why.
    pub(crate) async fn interrupted(&mut self, reason: String) {
        let reason = harmless(&reason, MAX_REASON);
        // It has said how it is: the first receive implies nothing else.
        self.declared = Declared::Interrupted;
        self.peer.set_phase_if_up(Phase::Interrupted(reason.clone()));
        self.signals.notify(Notice::Interrupted(reason)).await;
    }

    /// Whether it has said anything of itself.
    pub(crate) fn is_declared(&self) -> bool {
        self.declared != Declared::Nothing
    }
}
