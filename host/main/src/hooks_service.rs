//! The contract `hooks@1`: extensions run the hooks granted to them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Deserialize;
use tokio::sync::Semaphore;
use weir_bus::HandlerError;
use weir_config::HOOKS_CONTRACT;
use weir_hooks::{HookCall, HookError, HookReport, HookRun, Hooks};
use weir_names::{HookDirName, MAIN, NameError, chain};
use weir_supervisor::Roster;

use crate::service::{Answer, ServedRequest, Service, asked, json};

/// Requests of `run` served at once: more than hooks can run at once, and fewer than a contract has handlers, so that
/// `list` finds room.
const REQUESTS: usize = 128;

/// Time before the caller's deadline that is kept for the report to reach the caller.
const MARGIN: Duration = Duration::from_millis(20);

/// Arguments of `run`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RunRequest {
    hooks: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    stdin: String,
    timeout_ms: Option<u64>,
}

/// Serves `hooks@1`: `run` runs a directory and answers with the report, `list` names the directories that the sender
/// may run.
pub(crate) fn service(hooks: &Hooks, roster: &Arc<Roster>) -> Result<Service, NameError> {
    let (to_run, to_list) = ((hooks.clone(), roster.clone()), (hooks.clone(), roster.clone()));
    let requests = Arc::new(Semaphore::new(REQUESTS));
    Ok(Service::new(HOOKS_CONTRACT.parse()?)
        .on("run".parse()?, move |request| {
            let (hooks, roster) = to_run.clone();
            let permit = requests.clone().try_acquire_owned();
            async move {
                let _permit = permit.map_err(|_| {
                    let message =
                        format!("{REQUESTS} requests to run hooks are being served: try again later");
                    HandlerError::new("busy", message)
                })?;
                run(&hooks, &roster, request).await
            }
        })
        .on("list".parse()?, move |request| {
            let (hooks, roster) = &to_list;
            let mut names = hooks.names();
            names.retain(|name| may_run(roster, &request.sender, name.as_str()));
            std::future::ready(json(&names))
        }))
}

async fn run(hooks: &Hooks, roster: &Roster, request: ServedRequest) -> Answer {
    // The margin leaves time for the report to reach the caller.
    let remaining = request.remaining().saturating_sub(MARGIN);
    let asked: RunRequest = asked("run", &request)?;
    if !may_run(roster, &request.sender, &asked.hooks) {
        let message = format!(
            "`{}` may not run the hooks `{}`: its `runs` does not list them",
            request.sender, asked.hooks
        );
        return Err(HandlerError::new("permission-denied", message));
    }
    let timeout = asked.timeout_ms.map_or(remaining, |ms| remaining.min(Duration::from_millis(ms)));
    let dir = hooks.get(&asked.hooks).map_err(refused)?;
    let RunRequest { params, env, args, stdin, .. } = asked;
    let of_operator = |name: &&String| request.sender != MAIN && dir.config().grants.env.contains_key(*name);
    if let Some(name) = params.keys().chain(env.keys()).find(of_operator) {
        let message = format!("`{name}` is set by the operator of the hooks, and cannot be passed");
        return Err(HandlerError::new("permission-denied", message));
    }
    let mut call = HookCall::new().stdin(stdin).timeout(timeout);
    (call.params, call.env, call.args) = (params, env, args);
    let report = dir.run(call).await.map_err(refused)?;
    if !report.is_success() {
        request.note_failed(report.outcome().word());
    }
    let limits = roster.find(&request.sender).map(|unit| unit.version().config.limits.message_size);
    answer(report, limits.unwrap_or(u64::MAX))
}

/// The report, with the hooks' output cut to fit into a message of `allowed` bytes. An error if it does not fit without
/// any output.
fn answer(mut report: HookReport, allowed: u64) -> Answer {
    let longest = |run: &HookRun| run.stdout.len().max(run.stderr.len());
    let mut kept = report.runs.iter().map(longest).max().unwrap_or_default();
    loop {
        let answer = json(&report)?;
        if answer.len() as u64 <= allowed {
            return Ok(answer);
        }
        if kept == 0 {
            let message = format!(
                "the report has {} bytes: the hooks ended with `{}`",
                answer.len(),
                report.outcome().word()
            );
            return Err(HandlerError::new("too-large", message));
        }
        kept /= 2;
        report.cut_output(kept);
    }
}

/// Main may run all hooks, an extension those granted to it, and a peer none.
fn may_run(roster: &Roster, sender: &str, hooks: &str) -> bool {
    let is_granted = |runs: &[HookDirName]| runs.iter().any(|name| name.as_str() == hooks);
    sender == MAIN || roster.find(sender).is_some_and(|unit| is_granted(&unit.version().config.runs))
}

fn refused(error: HookError) -> HandlerError {
    HandlerError::new(error.code(), chain(&error))
}
