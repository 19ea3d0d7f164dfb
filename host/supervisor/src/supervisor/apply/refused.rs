//! Ends what runs and may not run any more, once a reload has brought other rules.

use weir_config::ArtifactHash;
use weir_guest::LoadRequest;
use weir_logs::{Level, Source};
use weir_reports::ExtensionState;

use super::{
    super::{Supervisor, run::Run, slots::Slot},
    Part,
};

impl Supervisor {
    /// Restarts the extensions whose running component the rules of now do not admit. The start is asked by the rules
    /// again. Leaves those that the present stage of a reload is about to change.
    pub(super) fn end_what_may_not_run(&mut self) {
        let changes_now = |slot: &Slot| {
            let applying = self.applying.as_ref().filter(|applying| applying.part != Part::Holding);
            applying.is_some_and(|applying| applying.is_now(slot.unit.id()))
        };
        let refused = |(index, slot): (usize, &Slot)| {
            (!changes_now(slot)).then(|| Some((index, self.refused(slot)?)))?
        };
        let ends: Vec<_> = self.slots.iter().filter_map(refused).collect();
        for (index, hash) in ends {
            let Some(slot) = self.slots.get(index) else { continue };
            let text = format!(
                "is stopped: its component with the SHA-256 `{hash}` may not run any more, by `main.revoked`, \
                 `main.trusted-keys`, `main.require-signature` or the lock"
            );
            let id = slot.unit.id().as_str().into();
            self.parts.logs.write(&id, Level::Warn, Source::Main, &text, std::iter::empty());
            self.begin_restart(index, Vec::new(), None);
        }
    }

    /// Whether an extension runs what may not run by the rules of now.
    pub(in super::super) fn is_refused(&self, slot: &Slot) -> bool {
        self.refused(slot).is_some()
    }

    /// What an extension runs and may not run by the rules of now.
    fn refused(&self, slot: &Slot) -> Option<ArtifactHash> {
        let refused = |run: &Run| {
            let kept = run.version.program()?;
            let admits = self.parts.programs.admits(LoadRequest::from(&*run.version.config), &kept);
            (!admits).then_some(kept.program.hash)
        };
        let is_up = slot.life.is_running() && slot.life.state() != ExtensionState::Draining;
        slot.runs().filter(|_| is_up).find_map(refused)
    }
}
