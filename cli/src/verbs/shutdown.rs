//! `weir shutdown`: stops all extensions and Main.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;

use crate::{
    args::Target,
    client::{self, Client, Patience, Route},
};

const GONE_PAUSE: Duration = Duration::from_millis(10);

/// How long Main may take to give its socket back after its last event.
const GONE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir shutdown
  weir shutdown --config /etc/weir/weir.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
}

pub(super) async fn run(Args { target }: Args) -> anyhow::Result<()> {
    let socket = target.socket()?;
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
    // Main gives its socket back last of all. A Main that was killed leaves its socket behind, where nobody answers.
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
