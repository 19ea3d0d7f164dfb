//! `weir plan`, and its summary in `weir status`.

use bytes::Bytes;
use hyper::Method;
use serde_json::Value;

use crate::{
    args::{Asked, PlanArgs},
    client::{Client, Patience, Route},
    control::read,
    exit::Said,
    model::{Difference, Plan, PlannedChange},
    output::{self, printable},
};

/// Digits of a hash that identify a version.
const SHORT_HASH: usize = 12;

const AT_RESTART: &str = "when Main is started anew";

pub(crate) async fn plan(PlanArgs { id, asked: Asked { json, target } }: PlanArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let body = ask(&mut client, id.as_deref(), Patience::WhileMainAnswers).await?;
    let plan: Plan = read(&body)?;
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

/// Compares the running extension with the file, in words. `None` if that is impossible.
pub(crate) async fn compared(client: &mut Client, id: &str) -> Option<&'static str> {
    let body = ask(client, Some(id), Patience::Query).await.ok()?;
    let plan: Plan = read(&body).ok()?;
    Some(match (plan.refused, plan.removed.is_empty(), plan.changed.is_empty()) {
        (Some(_), ..) => "cannot be compared with the file, which is wrong: `weir plan` says where",
        (None, false, _) => "is no longer in the file",
        (None, true, false) => "differs from the file: `weir plan` shows how",
        (None, true, true) => "as the file has it",
    })
}

async fn ask(client: &mut Client, id: Option<&str>, patience: Patience) -> anyhow::Result<Bytes> {
    let route = match id {
        None => Route::new(&["plan"]),
        Some(id) => Route::named(&["plan", id])?,
    };
    client.ask(Method::GET, &route, Bytes::new(), patience).await
}

fn text(plan: &Plan) -> String {
    let Plan {
        refused: _,
        added,
        removed,
        changed,
        main,
        needs_restart,
        tables,
        tables_for_restart,
        warnings: _,
    } = plan;
    let mut text = String::new();
    for (ids, what) in [(removed, "stopped and removed"), (added, "added")] {
        text.extend(ids.iter().map(|id| format!("`{}` would be {what}\n", printable(id))));
    }
    text.extend(changed.iter().map(change));
    for Difference { key, before, after } in main {
        let when = if needs_restart.contains(key) { AT_RESTART } else { "at once" };
        text.push_str(&format!("`main.{}` would be changed, {when}\n", printable(key)));
        text.push_str(&difference(&format!("main.{key}"), before.as_deref(), after.as_deref()));
    }
    text.extend(tables.iter().map(|table| format!("`{}` would be changed\n", printable(table))));
    for table in tables_for_restart {
        text.push_str(&format!("`{}` would be changed, {AT_RESTART}\n", printable(table)));
    }
    if text.is_empty() { "nothing to add, to remove or to change\n".to_owned() } else { text }
}

fn change(change: &PlannedChange) -> String {
    let PlannedChange { extension, keys, component, fault, takes_effect } = change;
    let how = match takes_effect.as_str() {
        "at-once" => "changed at once",
        "stop-first" => "stopped, and started again",
        "overlap" => "replaced while it serves",
        "next-start" => "changed from its next start on",
        other => other,
    };
    let mut text = format!("`{}` would be {}\n", printable(extension), printable(how));
    for Difference { key, before, after } in keys {
        text.push_str(&difference(key, before.as_deref(), after.as_deref()));
    }
    if let Some(hash) = component {
        let hash: String = hash.chars().take(SHORT_HASH).collect();
        text.push_str(&format!("  its component has changed: SHA-256 {}\n", printable(&hash)));
    }
    if let Some(fault) = fault {
        text.push_str(&format!("  it would not come up: {}\n", printable(fault)));
    }
    text
}

fn difference(key: &str, before: Option<&str>, after: Option<&str>) -> String {
    let line = |sign: char, value: &str| format!("  {sign} {} = {}\n", printable(key), printable(value));
    let (before, after) = (before.map(|value| line('-', value)), after.map(|value| line('+', value)));
    before.unwrap_or_default() + &after.unwrap_or_default()
}
