//! `weir plan`, and its summary in `weir status`.

use bytes::Bytes;
use clap_complete::engine::ArgValueCompleter;
use hyper::Method;
use serde_json::Value;
use weir_host::{
    config::{Difference, TableChange},
    control::{PlannedChange, PlannedFault, PlannedInstead, PlannedStage, ReloadPlan, TakesEffect},
};

use crate::{
    args::Asked,
    client::{Client, Patience, Route, read},
    complete,
    exit::Said,
    output::{self, printable},
    tables::SHORT_HASH,
};

const AT_RESTART: &str = "when Main is started anew";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Main reads its configuration and components again and changes nothing. Lines with - show what runs, lines
with + what a reload would run. Values of grants.env are not shown. Exit code 1: the configuration is
wrong, and a reload would be refused. The components are not compiled; `weir check` compiles them. The stages
are those of `weir reload --all`.

Examples:
  weir plan
  weir plan uploader
  weir plan --json | jq '.changed[].keys'")]
pub(crate) struct Args {
    /// Only this extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(Args { id, asked: Asked { json, target } }: Args) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let body = ask(&mut client, id.as_deref(), Patience::WhileMainAnswers).await?;
    let plan: ReloadPlan = read(&body)?;
    if json {
        output::json(&serde_json::from_slice::<Value>(&body)?)?;
    } else {
        for warning in &plan.warnings {
            output::complain(&format!("warning: {}", printable(warning)));
        }
    }
    if let Some(reason) = &plan.refused {
        let reason: Vec<_> = reason.lines().map(printable).collect();
        output::complain(&format!("error: a reload would be refused: {}", reason.join("\n")));
        return Err(Said.into());
    }
    if json { Ok(()) } else { output::write(text(&plan).as_bytes()) }
}

/// Compares the running extension with the file, in words. Returns `None` if Main does not answer with a plan.
pub(super) async fn compared(client: &mut Client, id: &str) -> Option<&'static str> {
    let body = ask(client, Some(id), Patience::Query).await.ok()?;
    let plan: ReloadPlan = read(&body).ok()?;
    let is_held_back = !plan.held_back.is_empty();
    Some(match (plan.refused, plan.removed.is_empty(), plan.changed.is_empty()) {
        (None, true, true) if is_held_back => "has a version that was refused: `weir plan` says why",
        (Some(_), ..) => "cannot be compared with the file, which is wrong: `weir plan` says where",
        (None, false, _) => "is no longer in the file",
        (None, true, false) => "differs from the file: `weir plan` shows how",
        (None, true, true) => "as the file has it",
    })
}

async fn ask(client: &mut Client, id: Option<&str>, patience: Patience) -> anyhow::Result<Bytes> {
    client.ask(Method::GET, &Route::all_or_one("plan", id)?, Bytes::new(), patience).await
}

fn text(plan: &ReloadPlan) -> String {
    let mut text = String::new();
    for (ids, what) in [(&plan.removed, "stopped and removed"), (&plan.added, "added")] {
        for id in ids {
            text.push_str(&format!("`{id}` would be {what}\n"));
            let fault = plan.faults.iter().find(|fault| fault.extension == *id);
            text.extend(fault.map(|PlannedFault { fault, .. }| would_not_come_up(fault)));
        }
    }
    text.extend(plan.changed.iter().map(change));
    for PlannedInstead { extension, version, reason, .. } in &plan.held_back {
        text.push_str(&format!("`{extension}` is held back, and runs version {version}\n"));
        text.push_str(&format!("  {}\n", printable(reason)));
    }
    for key in &plan.main {
        let when = if plan.needs_restart.contains(&key.key) { AT_RESTART } else { "at once" };
        text.push_str(&format!("`main.{}` would be changed, {when}\n", printable(&key.key)));
        text.push_str(&difference("main.", key));
    }
    for (tables, when) in [(&plan.tables, ""), (&plan.tables_for_restart, AT_RESTART)] {
        for table in tables {
            let found = plan.table_differences.iter().find(|it| it.table == *table);
            let what = match found.map(|it| it.change) {
                Some(TableChange::Added) => "added",
                Some(TableChange::Removed) => "removed",
                _ => "changed",
            };
            let when = if when.is_empty() { String::new() } else { format!(", {when}") };
            text.push_str(&format!("`{}` would be {what}{when}\n", printable(table)));
            text.extend(found.into_iter().flat_map(|it| &it.keys).map(|key| difference("", key)));
        }
    }
    // Of one stage there is no order to show.
    if plan.stages.len() > 1 {
        text.push_str("in stages, by `weir reload --all`:\n");
        for PlannedStage { stage, extensions, .. } in &plan.stages {
            let ids: Vec<_> = extensions.iter().map(|id| format!("`{id}`")).collect();
            text.push_str(&format!("  {stage}: {}\n", ids.join(", ")));
        }
    }
    if text.is_empty() { "nothing to add, to remove or to change\n".to_owned() } else { text }
}

fn change(change: &PlannedChange) -> String {
    let PlannedChange { extension, keys, component, fault, takes_effect, .. } = change;
    let how = match takes_effect {
        TakesEffect::AtOnce => "changed at once",
        TakesEffect::StopFirst => "stopped, and started again",
        TakesEffect::Overlap => "replaced while it serves",
        TakesEffect::NextStart => "changed from its next start on",
        _ => "changed",
    };
    let mut text = format!("`{extension}` would be {how}\n");
    text.extend(keys.iter().map(|key| difference("", key)));
    if let Some(hash) = component {
        let hash: String = hash.chars().take(SHORT_HASH).collect();
        text.push_str(&format!("  its component has changed: SHA-256 {}\n", printable(&hash)));
    }
    if let Some(fault) = fault {
        text.push_str(&would_not_come_up(fault));
    }
    text
}

fn would_not_come_up(fault: &str) -> String {
    format!("  it would not come up: {}\n", printable(fault))
}

fn difference(table: &str, Difference { key, before, after, note, .. }: &Difference) -> String {
    let key = printable(&format!("{table}{key}"));
    if let Some(note) = note {
        return format!("  {key}: {}\n", printable(note));
    }
    let line = |sign: char, value: &String| format!("  {sign} {key} = {}\n", printable(value));
    let (before, after) = (before.as_ref().map(|it| line('-', it)), after.as_ref().map(|it| line('+', it)));
    before.unwrap_or_default() + &after.unwrap_or_default()
}
