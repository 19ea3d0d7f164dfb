//! SIGHUP. For a service it means: reload the configuration. For a program on a terminal it means that the
//! terminal has gone, and ends the process as it does by default.

use std::{convert::Infallible, future};

use tokio::signal::unix::Signal;
use weir_host::{
    Control,
    control::{ControlError, ReloadReport},
};

/// Reloads the configuration at each signal. A signal during a reload causes another one afterwards: the file may
/// have changed again.
pub(super) async fn reload(control: &Control, hang_up: Option<Signal>) -> Infallible {
    let Some(mut hang_up) = hang_up else { return future::pending().await };
    let control = control.by("SIGHUP");
    while hang_up.recv().await.is_some() {
        tracing::info!("SIGHUP: reading the configuration again");
        match reloaded(&control).await {
            Ok(report) => say(&report),
            Err(error) => error.to_string().lines().for_each(|line| tracing::warn!("{line}")),
        }
    }
    future::pending().await
}

/// Reloads, after a reload under way for somebody else: that may have read the file before the signal.
async fn reloaded(control: &Control) -> Result<ReloadReport, ControlError> {
    loop {
        // From before the look, so that no end is missed.
        let mut events = control.events();
        while control.is_reloading() && events.next().await.is_some() {}
        match control.reload().await {
            // Another one has come first.
            Err(ControlError::Reloading(_)) => {}
            outcome => return outcome,
        }
    }
}

fn say(report: &ReloadReport) {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    for failed in &report.failed {
        tracing::warn!("`{}` was not reloaded: {}", failed.extension, failed.reason);
    }
    let keys = report.needs_restart.iter().map(|key| format!("main.{key}"));
    for changed in keys.chain(report.tables_for_restart.iter().cloned()) {
        tracing::warn!("`{changed}` has changed, which needs Main to be started anew");
    }
    tracing::info!("reloaded: {}", report.summary());
}
