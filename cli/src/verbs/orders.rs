//! `weir start`, `stop` and `restart`: orders to extensions, one after another.

use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use weir_host::control::{ExtensionState, ExtensionStatus};

use super::ps::Extensions;
use crate::{
    args::Target,
    client::{Client, Refused, Route, read},
    complete, exit, output,
    tables::mark,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The extensions
    #[arg(value_name = "ID", required_unless_present = "all")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    ids: Vec<String>,
    /// All configured extensions
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

/// Sends the order to each extension. A refusal does not stop the others.
pub(super) async fn run(Args { ids, all, json, target }: Args, verb: &str) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let ids = if all { configured(&mut client).await? } else { ids };
    // Extensions are stopped in reverse order, since most come after those that they require.
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
    let Extensions { extensions } = client.get(&Route::new(&["extensions"])).await?;
    Ok(extensions.into_iter().map(|extension| extension.id.to_string()).collect())
}

async fn order(client: &mut Client, id: &str, verb: &str, json: bool) -> anyhow::Result<()> {
    send(client, &Route::named(&["extensions", id, verb])?, json).await
}

/// Sends an order to one extension. Main's deadlines bound the time that it takes.
pub(super) async fn send(client: &mut Client, route: &Route, json: bool) -> anyhow::Result<()> {
    let body = client.post(route).await?;
    if json {
        return output::json(&serde_json::from_slice::<Value>(&body)?);
    }
    output::line(&became(&read(&body)?))
}

/// Says how an extension is after an order, and which version it runs if its versions are kept.
fn became(ExtensionStatus { id, state, version, .. }: &ExtensionStatus) -> String {
    let is_up = matches!(state, ExtensionState::Ready | ExtensionState::Interrupted);
    let version = version.filter(|_| is_up).map(|version| {
        let what = mark(&version).unwrap_or(version.standing.as_str());
        format!(", and runs version {} ({what})", version.number)
    });
    format!("`{id}` is {state}{}", version.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_answered_with_the_version_that_runs() {
        let json = include_str!("../../tests/golden/extensions.json");
        let Extensions { mut extensions } = serde_json::from_str(json).unwrap();
        let extension = &mut extensions[0];
        assert_eq!(became(extension), "`storage` is ready");
        let version = r#"{"number":3,"standing":"proven","is-held-back":false}"#;
        extension.version = Some(serde_json::from_str(version).unwrap());
        assert_eq!(became(extension), "`storage` is ready, and runs version 3 (proven)");
        extension.state = ExtensionState::Stopped;
        assert_eq!(became(extension), "`storage` is stopped");
    }
}
