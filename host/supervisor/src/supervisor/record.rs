//! Records a failure: as a log line, in the extension's status and history, and as an event.

use std::time::SystemTime;

use weir_guest::{Exit, InstanceEnd, Unanswered};
use weir_logs::{Level, Source};
use weir_reports::{ExtensionState, FailureRecord, HandledMessage};

use super::{InstanceRole, Supervisor, run::End};
use crate::{events::MainEvent, roster::Unit};

impl Supervisor {
    /// Records that a request failed, for which the extension had an instance of its own. It serves on.
    pub(super) fn request_failed(&mut self, index: usize, role: InstanceRole, end: InstanceEnd) {
        let Some(slot) = self.slots.get(index) else { return };
        let run = match role {
            InstanceRole::Current => &slot.current,
            InstanceRole::Successor => &slot.successor,
            InstanceRole::Predecessor => &slot.predecessor,
        };
        let hash = run.as_ref().and_then(|run| Some(run.version.program()?.program.hash.to_string()));
        let number = run.as_ref().and_then(|run| run.version.number());
        let InstanceEnd { exit, handling, time, unanswered } = end;
        let end = End { handling, unanswered, hash, time, ..End::of(exit) };
        self.record_failure(&slot.unit, &end, slot.life.state(), None);
        let is_its_fault = match end.exit {
            // A slow client can have an answer by HTTP end late.
            Exit::HandlerOverdue { .. } => slot.unit.version().config.serves_http.is_none(),
            Exit::Hindered { .. } => false,
            _ => true,
        };
        if is_its_fault && role == InstanceRole::Current && slot.life.state() != ExtensionState::Draining {
            self.fails_a_request(index, number);
        }
    }

    /// Judges a version by a request that failed, and that the extension outlives. A reload on trial has its own way back.
    fn fails_a_request(&mut self, index: usize, number: Option<u64>) {
        let is_on_trial = self.slots.get(index).is_none_or(|slot| slot.life.is_on_trial());
        let (Some((_, id, update)), Some(number), false) = (self.versioned(index), number, is_on_trial)
        else {
            return;
        };
        self.parts.versions.count_failure(&id, number);
        if let Some(change) = self.parts.versions.judge(&id, number, &update) {
            self.decided(index, &change, None);
        }
    }

    /// Logs and keeps a failure, and sends its event. `then` is the state that follows.
    pub(super) fn record_failure(
        &self,
        unit: &Unit,
        end: &End,
        then: ExtensionState,
        next_restart: Option<SystemTime>,
    ) {
        let End { exit, handling, unanswered, hash, time, .. } = end;
        let handling = handling.as_ref().map(|handling| HandledMessage {
            message: handling.message,
            sequence: handling.sequence,
            sender: self
                .parts
                .bus
                .peer(handling.sender)
                .map(|peer| peer.name().to_owned())
                .unwrap_or_default(),
            operation: handling.operation.clone(),
        });
        let trace = match exit {
            Exit::Trapped { trace, .. } | Exit::OutOfFuel { trace, .. } => trace.clone(),
            _ => Vec::new(),
        };
        let failure = FailureRecord {
            extension: unit.id().clone(),
            time: *time,
            cause: exit.to_string(),
            hash: hash.clone(),
            handling,
            in_hand: unanswered.as_ref().map(Unanswered::ids).unwrap_or_default(),
            limit: exit.limit(),
            trace,
            then,
            next_restart,
        };
        // The text of a guest may begin with `failed: ` too, which is said once.
        let cause = failure.cause.strip_prefix("failed: ").unwrap_or(&failure.cause);
        let text = format!("failed: {cause}");
        let name = unit.id().as_str().into();
        self.parts.logs.write(&name, Level::Error, Source::Main, &text, fields(&failure).into_iter());
        unit.add_failure(failure.clone());
        let _nobody = self.parts.events.send(MainEvent::Failed(Box::new(failure)).into());
    }
}

fn fields(failure: &FailureRecord) -> Vec<(String, String)> {
    let FailureRecord { hash, handling, limit, trace, then, next_restart, .. } = failure;
    let mut fields = Vec::new();
    let mut add = |name: &str, value: String| fields.push((name.to_owned(), value));
    if let Some(handling) = handling {
        add("handling", handling.operation.clone());
        add("sender", handling.sender.clone());
        let numbers = [("message", handling.message.map(|id| id.0)), ("sequence", handling.sequence)];
        for (name, number) in numbers {
            number.into_iter().for_each(|number| add(name, number.to_string()));
        }
    }
    if let Some(limit) = limit {
        add("limit", limit.name.to_string());
        add("used", limit.used.to_string());
        add("allowed", limit.allowed.to_string());
    }
    add("then", then.to_string());
    if let Some(time) = next_restart {
        add("next-restart", humantime::format_rfc3339_millis(*time).to_string());
    }
    if let Some(hash) = hash {
        add("hash", hash.clone());
    }
    if !trace.is_empty() {
        add("trace", trace.join(" < "));
    }
    fields
}
