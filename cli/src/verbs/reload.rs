//! `weir reload`: replaces extensions while Main runs.

use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use weir_host::{
    config::Effect,
    control::{NotReloaded, ReloadReport},
};

use super::orders::send;
use crate::{
    args::Asked,
    client::{Client, Route, read},
    complete,
    exit::Said,
    output::{self, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
With an ID, Main loads the extension's component again and replaces the running version, as its `reload`
says. Without an ID, Main reads its configuration again and applies the changes: it stops removed
extensions, starts new ones, replaces changed ones and leaves the others alone. If the configuration is
wrong, nothing is applied. If a new version does not come up, the previous version goes on, and the exit
code is not 0.

With --all, Main does the same in stages: an extension changes in a later stage than those that it requires or
wants. It stops at the first stage in which one does not come up; the next `weir reload --all` goes on there.
`weir plan` shows the stages. With --prove, a stage also waits until its versions with `update` are proven. If
you end `weir reload --all`, the stage under way is the last one.

With `update`, a changed version is on probation first, and one that was refused is not run again; `weir
versions ID` shows both. With --now it is run, and proven as soon as it is ready.

Examples:
  weir reload uploader
  weir reload uploader --now
  weir reload
  weir reload --all --prove
  weir reload --json | jq .failed")]
pub(crate) struct Args {
    /// Only this extension, with the configuration that Main has now
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: Option<String>,
    /// Without probation, even a version that was refused
    #[arg(long, requires = "id")]
    now: bool,
    /// In stages, each extension after those that it requires or wants
    #[arg(long, conflicts_with_all = ["id", "now"])]
    all: bool,
    /// Go on to the next stage only once all versions on probation are proven
    #[arg(long, requires = "all")]
    prove: bool,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(Args { id, now, all, prove, asked }: Args) -> anyhow::Result<()> {
    let Some(id) = id else {
        let route = Route::new(&["reload"]);
        let route = route.with("all", all.then_some("true")).with("prove", prove.then_some("true"));
        return apply(&route, asked).await;
    };
    let route = Route::named(&["extensions", &id, "reload"])?.with("now", now.then_some("true"));
    send(&mut Client::connect(&asked.target).await?, &route, asked.json).await
}

async fn apply(route: &Route, Asked { json, target }: Asked) -> anyhow::Result<()> {
    let body = Client::connect(&target).await?.post(route).await?;
    let report: ReloadReport = read(&body)?;
    if json {
        output::json(&serde_json::from_slice::<Value>(&body)?)?;
    } else {
        say(&report)?;
    }
    if report.failed.is_empty() && report.stopped_at.is_none() { Ok(()) } else { Err(Said.into()) }
}

fn say(report: &ReloadReport) -> anyhow::Result<()> {
    let keys = [&report.needs_restart, &report.tables, &report.tables_for_restart];
    let ids = [(&report.removed, "removed"), (&report.added, "added"), (&report.changed, "changed")];
    let mut is_empty = report.failed.is_empty()
        && keys.iter().all(|keys| keys.is_empty())
        && ids.iter().all(|(ids, _)| ids.is_empty());
    for warning in &report.warnings {
        output::complain(&format!("warning: {}", printable(warning)));
    }
    for (ids, done) in ids {
        for id in ids {
            output::line(&format!("`{id}` was {done}"))?;
        }
    }
    for table in &report.tables {
        output::line(&format!("`{}` was changed", printable(table)))?;
    }
    let of_main =
        report.differences.iter().filter(|it| it.table == "main" && it.takes_effect == Effect::AtOnce);
    for difference in of_main.flat_map(|it| &it.keys) {
        is_empty = false;
        output::line(&format!("`main.{}` was changed", printable(&difference.key)))?;
    }
    let keys = report.needs_restart.iter().map(|key| format!("main.{key}"));
    for changed in keys.chain(report.tables_for_restart.iter().cloned()) {
        let changed = printable(&changed);
        output::complain(&format!(
            "warning: `{changed}` has changed, and takes effect when Main is started anew"
        ));
    }
    for NotReloaded { extension, reason, .. } in &report.failed {
        let what = if report.stopped_at.is_some() { "does not hold" } else { "did not come up" };
        output::complain(&format!("error: `{extension}` {what}: {}", printable(reason)));
    }
    if let Some(stage) = report.stopped_at {
        is_empty = false;
        let left: Vec<_> = report.not_reached.iter().map(|id| format!("`{id}`")).collect();
        let left = if left.is_empty() { "all others".to_owned() } else { left.join(", ") };
        output::complain(&format!(
            "error: the reload ended with stage {stage}, and left as they were: {left}"
        ));
    }
    if is_empty { output::line("nothing to add, to remove or to change") } else { Ok(()) }
}
