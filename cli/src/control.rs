//! `weir ps`, `status`, `start`, `stop`, `restart`, `reload` and `shutdown`.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    args::{IdArgs, PsArgs, ReloadArgs, ShutdownArgs, Target},
    client::{self, Client, Route, Unreachable},
    exit::Said,
    locate, model,
    output::{self, printable},
    tables,
};

/// Between two looks whether Main has gone, once it said that it goes.
const GONE_PAUSE: Duration = Duration::from_millis(10);

/// Time for Main to go once it has stopped everything and said so.
const GONE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn ps(args: PsArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.target).await?;
    let route = Route::new(&["extensions"]);
    if args.json && !args.failures {
        return output::json(&client.get::<Value>(&route).await?);
    }
    if args.json {
        let all: Value = client.get(&route).await?;
        return output::json(&json!({ "failures": failures(&all) }));
    }
    let model::Extensions { extensions } = client.get(&route).await?;
    let table = if args.failures { tables::failures(&extensions) } else { tables::extensions(&extensions) };
    output::write(table.as_bytes())
}

pub(crate) async fn status(args: IdArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.target).await?;
    let route = Route::named(&["extensions", &args.id])?;
    if args.json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    output::write(tables::status(&client.get(&route).await?).as_bytes())
}

pub(crate) async fn start(args: IdArgs) -> anyhow::Result<()> {
    order(args, "start").await
}

pub(crate) async fn stop(args: IdArgs) -> anyhow::Result<()> {
    order(args, "stop").await
}

pub(crate) async fn restart(args: IdArgs) -> anyhow::Result<()> {
    order(args, "restart").await
}

pub(crate) async fn reload(ReloadArgs { id, json, target }: ReloadArgs) -> anyhow::Result<()> {
    match id {
        Some(id) => order(IdArgs { id, json, target }, "reload").await,
        None => apply(&target, json).await,
    }
}

/// Has Main apply its configuration as it is now.
async fn apply(target: &Target, json: bool) -> anyhow::Result<()> {
    let mut client = Client::connect(target).await?;
    let response = client.send(Method::POST, &Route::new(&["reload"]), Bytes::new()).await?;
    let body = client::body(response).await?;
    let report: model::Reloaded = read(&body)?;
    if json {
        output::json(&serde_json::from_slice::<Value>(&body)?)?;
    } else {
        say(&report)?;
    }
    if report.failed.is_empty() { Ok(()) } else { Err(Said.into()) }
}

fn say(report: &model::Reloaded) -> anyhow::Result<()> {
    let model::Reloaded { added, removed, changed, failed, needs_restart, warnings } = report;
    for warning in warnings {
        output::complain(&format!("warning: {}", printable(warning)));
    }
    for (ids, done) in [(removed, "removed"), (added, "added"), (changed, "changed")] {
        for id in ids {
            output::line(&format!("`{}` was {done}", printable(id)))?;
        }
    }
    for key in needs_restart {
        let key = printable(key);
        output::complain(&format!(
            "warning: `main.{key}` has changed, and takes effect when Main is started anew"
        ));
    }
    for model::NotReloaded { extension, reason } in failed {
        output::complain(&format!(
            "error: `{}` did not come up: {}",
            printable(extension),
            printable(reason)
        ));
    }
    if report.is_empty() { output::line("nothing to add, to remove or to change") } else { Ok(()) }
}

/// Has Main do something to an extension; its deadlines bound how long that takes.
async fn order(args: IdArgs, verb: &str) -> anyhow::Result<()> {
    let route = Route::named(&["extensions", &args.id, verb])?;
    let mut client = Client::connect(&args.target).await?;
    let response = client.send(Method::POST, &route, Bytes::new()).await?;
    let body = client::body(response).await?;
    if args.json {
        return output::json(&serde_json::from_slice::<Value>(&body)?);
    }
    let now: model::Extension = read(&body)?;
    output::line(&format!("`{}` is {}", printable(&now.id), printable(&now.state)))
}

pub(crate) async fn shutdown(args: ShutdownArgs) -> anyhow::Result<()> {
    let socket = locate::socket(&args.target)?;
    let mut events = Client::connect_to(&socket).await?.stream(&Route::new(&["main-events"])).await?;
    let mut client = Client::connect_to(&socket).await?;
    client.send(Method::POST, &Route::new(&["shutdown"]), Bytes::new()).await?;
    // This stream ends when all extensions have ended, which their deadlines bound.
    while let Ok(Some(_event)) = events.next().await {}
    let gone = async {
        while !matches!(Client::connect_to(&socket).await, Err(error) if error.is::<Unreachable>()) {
            tokio::time::sleep(GONE_PAUSE).await;
        }
    };
    tokio::time::timeout(GONE_TIMEOUT, gone).await.context("Main stopped its extensions and did not end")
}

fn read<T: DeserializeOwned>(body: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(body).context("cannot read the answer of Main; is it of another version?")
}

/// The failures of all extensions, from what Main says of them.
fn failures(all: &Value) -> Vec<&Value> {
    let extensions = all.get("extensions").and_then(Value::as_array).into_iter().flatten();
    extensions.filter_map(|extension| extension.get("failures")?.as_array()).flatten().collect()
}
