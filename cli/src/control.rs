//! `weir ps`, `status`, `history`, `start`, `stop`, `restart`, `reload` and `shutdown`.

use std::{cmp::Reverse, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weir_host::{
    config::Effect,
    control::{ExtensionStatus, NotReloaded, ReloadReport},
};

use crate::{
    args::{Asked, IdArgs, OrderArgs, PsArgs, PsSort, ReloadArgs, ShutdownArgs},
    client::{self, Client, Patience, Refused, Route, unless},
    exit::{self, Said},
    locate, model,
    output::{self, printable},
    plan, tables,
};

const GONE_PAUSE: Duration = Duration::from_millis(10);

/// From Main's last event to the end of its process.
const GONE_TIMEOUT: Duration = Duration::from_secs(5);

const WATCH_PAUSE: Duration = Duration::from_secs(2);

const CLEAR: &str = "\x1b[2J\x1b[H";

pub(crate) async fn ps(args: PsArgs) -> anyhow::Result<()> {
    if args.asked.json {
        let mut client = Client::connect(&args.asked.target).await?;
        let mut all: Value = of_all(&mut client).await?;
        if args.failures {
            return output::json(&json!({ "failures": failures(&all) }));
        }
        if let (Some(all), Some(Value::Object(peers))) = (all.as_object_mut(), of_peers(&mut client).await?) {
            all.extend(peers);
        }
        return output::json(&all);
    }
    let before = if args.watch && output::is_terminal() { CLEAR } else { "" };
    loop {
        let mut client = Client::connect(&args.asked.target).await?;
        let model::Extensions { mut extensions } = of_all(&mut client).await?;
        sort(&mut extensions, args.sort);
        let text = if args.failures {
            tables::failures(&extensions)
        } else {
            let model::Peers { peers, parts } = of_peers(&mut client).await?.unwrap_or_default();
            tables::extensions(&extensions) + &tables::peers_in_short(&peers) + &tables::faulty_parts(&parts)
        };
        output::write(format!("{before}{text}").as_bytes())?;
        if !args.watch {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(WATCH_PAUSE) => {}
            closed = output::reader_left() => return Err(closed.into()),
        }
    }
}

async fn of_all<T: DeserializeOwned>(client: &mut Client) -> anyhow::Result<T> {
    client.get(&Route::new(&["extensions"])).await
}

/// `None`: Main is older, and has no peers.
async fn of_peers<T: DeserializeOwned>(client: &mut Client) -> anyhow::Result<Option<T>> {
    unless(&["no-such-route"], client.get(&Route::new(&["peers"])).await)
}

fn sort(extensions: &mut [ExtensionStatus], by: Option<PsSort>) {
    match by {
        Some(PsSort::Cpu) => extensions.sort_by(|one, other| other.cpu_share.total_cmp(&one.cpu_share)),
        Some(PsSort::Memory) => extensions.sort_by_key(|extension| Reverse(extension.memory)),
        Some(PsSort::Inbox) => extensions.sort_by_key(|extension| Reverse(extension.inbox_messages)),
        Some(PsSort::Restarts) => extensions.sort_by_key(|extension| Reverse(extension.restarts)),
        None => {}
    }
}

pub(crate) async fn status(args: IdArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.asked.target).await?;
    let route = Route::named(&["extensions", &args.id])?;
    if args.asked.json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    let extension = client.get(&route).await?;
    let compared = plan::compared(&mut client, &args.id).await;
    output::write(tables::status(&extension, compared).as_bytes())
}

pub(crate) async fn history(args: IdArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.asked.target).await?;
    let route = Route::named(&["extensions", &args.id, "history"])?;
    if args.asked.json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    let model::History { history } = client.get(&route).await?;
    output::write(tables::history(&history).as_bytes())
}

pub(crate) async fn start(args: OrderArgs) -> anyhow::Result<()> {
    orders(args, "start").await
}

pub(crate) async fn stop(args: OrderArgs) -> anyhow::Result<()> {
    orders(args, "stop").await
}

pub(crate) async fn restart(args: OrderArgs) -> anyhow::Result<()> {
    orders(args, "restart").await
}

pub(crate) async fn reload(ReloadArgs { id, asked }: ReloadArgs) -> anyhow::Result<()> {
    match id {
        Some(id) => order(&mut Client::connect(&asked.target).await?, &id, "reload", asked.json).await,
        None => apply(asked).await,
    }
}

async fn apply(Asked { json, target }: Asked) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let route = Route::new(&["reload"]);
    let body = client.ask(Method::POST, &route, Bytes::new(), Patience::WhileMainAnswers).await?;
    let report: ReloadReport = read(&body)?;
    if json {
        output::json(&serde_json::from_slice::<Value>(&body)?)?;
    } else {
        say(&report)?;
    }
    if report.failed.is_empty() { Ok(()) } else { Err(Said.into()) }
}

fn say(report: &ReloadReport) -> anyhow::Result<()> {
    let ReloadReport {
        added,
        removed,
        changed,
        failed,
        needs_restart,
        tables,
        tables_for_restart,
        warnings,
        ..
    } = report;
    let mut is_empty = [needs_restart, tables, tables_for_restart].iter().all(|keys| keys.is_empty())
        && [added, removed, changed].iter().all(|ids| ids.is_empty())
        && failed.is_empty();
    for warning in warnings {
        output::complain(&format!("warning: {}", printable(warning)));
    }
    for (ids, done) in [(removed, "removed"), (added, "added"), (changed, "changed")] {
        for id in ids {
            output::line(&format!("`{id}` was {done}"))?;
        }
    }
    for table in tables {
        output::line(&format!("`{}` was changed", printable(table)))?;
    }
    let of_main =
        report.differences.iter().filter(|it| it.table == "main" && it.takes_effect == Effect::AtOnce);
    for difference in of_main.flat_map(|it| &it.keys) {
        is_empty = false;
        output::line(&format!("`main.{}` was changed", printable(&difference.key)))?;
    }
    let keys = needs_restart.iter().map(|key| format!("main.{key}"));
    for changed in keys.chain(tables_for_restart.iter().cloned()) {
        let changed = printable(&changed);
        output::complain(&format!(
            "warning: `{changed}` has changed, and takes effect when Main is started anew"
        ));
    }
    for NotReloaded { extension, reason, .. } in failed {
        output::complain(&format!("error: `{extension}` did not come up: {}", printable(reason)));
    }
    if is_empty { output::line("nothing to add, to remove or to change") } else { Ok(()) }
}

/// Sends the order to each extension. A refusal does not stop the others.
async fn orders(OrderArgs { ids, all, json, target }: OrderArgs, verb: &str) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let ids = if all { configured(&mut client).await? } else { ids };
    // In reverse: most extensions come after those that they require.
    let ids: Vec<String> = if all && verb == "stop" { ids.into_iter().rev().collect() } else { ids };
    let mut refused = None;
    for id in ids {
        match order(&mut client, &id, verb, json).await {
            Err(error) if error.is::<Refused>() => {
                if let Some(before) = refused.replace(error) {
                    exit::say(&before);
                }
            }
            other => other?,
        }
    }
    refused.map_or(Ok(()), Err)
}

async fn configured(client: &mut Client) -> anyhow::Result<Vec<String>> {
    let model::Extensions { extensions } = client.get(&Route::new(&["extensions"])).await?;
    Ok(extensions.into_iter().map(|extension| extension.id.to_string()).collect())
}

/// Sends an order to one extension. Main's deadlines bound the time that it takes.
async fn order(client: &mut Client, id: &str, verb: &str, json: bool) -> anyhow::Result<()> {
    let route = Route::named(&["extensions", id, verb])?;
    let body = client.ask(Method::POST, &route, Bytes::new(), Patience::WhileMainAnswers).await?;
    if json {
        return output::json(&serde_json::from_slice::<Value>(&body)?);
    }
    let ExtensionStatus { id, state, .. } = read(&body)?;
    output::line(&format!("`{id}` is {state}"))
}

pub(crate) async fn shutdown(args: ShutdownArgs) -> anyhow::Result<()> {
    let socket = locate::socket(&args.target)?;
    let events = Client::connect_to(&socket).await?.stream(&Route::new(&["main-events"])).await;
    let mut events = events.map_err(client::of_command)?;
    let mut client = Client::connect_to(&socket).await?;
    client.ask(Method::POST, &Route::new(&["shutdown"]), Bytes::new(), Patience::Query).await?;
    // The stream ends when all extensions have ended.
    let ended = async {
        while let Ok(Some(_event)) = events.next().await {}
        Ok(())
    };
    client::while_main_answers(&socket, ended).await?;
    // Main gives its socket back last of all. One that was killed leaves it behind, where nobody answers.
    let gone = async {
        while !weir_control::is_released(&socket) && !client::is_abandoned(&socket).await {
            tokio::time::sleep(GONE_PAUSE).await;
        }
    };
    tokio::time::timeout(GONE_TIMEOUT, gone).await.with_context(|| {
        let seconds = GONE_TIMEOUT.as_secs();
        format!(
            "Main stopped its extensions, and did not end within {seconds} s; its log says what it waits for"
        )
    })
}

pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(body).context("cannot read the answer of Main; is it of another version?")
}

fn failures(all: &Value) -> Vec<&Value> {
    let extensions = all.get("extensions").and_then(Value::as_array).into_iter().flatten();
    extensions.filter_map(|extension| extension.get("failures")?.as_array()).flatten().collect()
}
