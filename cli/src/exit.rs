//! How a failure is printed, and the exit code that `docs/command-line.md` promises for it.

use std::process::ExitCode;

use weir_host::{
    config::ConfigErrors,
    control::ControlError,
    hooks::{HookError, HookOutcome},
    host::StartError,
};

use crate::{
    client::{Refused, Unanswered, Unreachable},
    output::{self, OutputClosed, printable},
};

/// Wrong arguments that clap cannot find.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The command has failed, and has already printed why.
#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub(crate) struct Said;

/// A hook ended the run, and the run is printed already. The outcome decides the exit code.
#[derive(Debug, thiserror::Error)]
#[error("a hook has failed")]
pub(crate) struct HookFailed(pub(crate) HookOutcome);

pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    // The reader of the output has left, since it needed no more.
    if error.is::<OutputClosed>() {
        return ExitCode::SUCCESS;
    }
    if !error.is::<Said>() && !error.is::<HookFailed>() {
        say(error);
    }
    ExitCode::from(code(error))
}

pub(crate) fn say(error: &anyhow::Error) {
    output::complain(&format!("error: {}", chain(error)));
}

/// Returns the error and its causes, safe for a terminal. Errors of a configuration and of the arguments keep their
/// lines, and others are on one line.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    if has_lines(error) {
        text.lines().map(printable).collect::<Vec<_>>().join("\n")
    } else {
        printable(&text)
    }
}

/// Whether line feeds in the error are this program's own: it is of a configuration or the arguments. Those in other
/// errors may come from a third party.
fn has_lines(error: &anyhow::Error) -> bool {
    error.is::<ConfigErrors>()
        || error.is::<Usage>()
        || matches!(error.downcast_ref(), Some(StartError::Config(_)))
        || matches!(error.downcast_ref(), Some(HookError::Config(_)))
        || error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == "not-configured")
}

fn code(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        2
    } else if error.is::<Unreachable>() {
        3
    } else if error.is::<Unanswered>() {
        6
    } else if let Some(ControlError::Unknown(_)) = error.downcast_ref() {
        4
    } else if let Some(error) = error.downcast_ref() {
        of_hooks(error)
    } else if let Some(HookFailed(outcome)) = error.downcast_ref() {
        outcome.run_exit_code()
    } else {
        error.downcast_ref::<Refused>().map_or(1, |refused| of_code(&refused.code))
    }
}

fn of_code(code: &str) -> u8 {
    match code {
        "invalid" | "misfit" => 2,
        "unknown-contract" | "not-described" | "unknown-extension" | "unknown-session" | "unknown-queue"
        | "unknown-store" | "unknown-owner" | "no-such-key" | "no-version" => 4,
        "permission-denied" | "limit-exceeded" | "too-large" | "would-deadlock" => 5,
        "timeout" => 6,
        "handler" => 7,
        "no-provider" | "not-ready" | "overloaded" | "peer-gone" | "trapped" | "not-started"
        | "not-reloaded" | "reloading" | "shutting-down" | "too-many-streams" | "busy" => 8,
        _ => 1,
    }
}

fn of_hooks(error: &HookError) -> u8 {
    match error {
        HookError::Invalid(_) => 2,
        HookError::Unknown(_) => 4,
        HookError::TimedOut => 6,
        _ => 1,
    }
}
