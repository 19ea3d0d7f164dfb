//! `weir ps`, `status`, `start`, `stop` and `shutdown`.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use crate::{
    args::{IdArgs, PsArgs, ShutdownArgs},
    client::{self, Client, Route, Unreachable},
    locate, model, output, tables,
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

/// Has Main do something to an extension; its deadlines bound how long that takes.
async fn order(args: IdArgs, verb: &str) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.target).await?;
    let route = Route::named(&["extensions", &args.id, verb])?;
    let response = client.send(Method::POST, &route, Bytes::new()).await?;
    let body = client::body(response).await?;
    if args.json {
        return output::json(&serde_json::from_slice::<Value>(&body)?);
    }
    let now: model::Extension =
        serde_json::from_slice(&body).context("cannot read the answer of Main; is it of another version?")?;
    output::line(&format!("`{}` is {}", output::printable(&now.id), output::printable(&now.state)))
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

/// The failures of all extensions, from what Main says of them.
fn failures(all: &Value) -> Vec<&Value> {
    let extensions = all.get("extensions").and_then(Value::as_array).into_iter().flatten();
    extensions.filter_map(|extension| extension.get("failures")?.as_array()).flatten().collect()
}
