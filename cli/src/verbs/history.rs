//! `weir history`: the latest events of one extension.

use clap_complete::engine::ArgValueCompleter;
use comfy_table::{Cell, Color};
use serde::Deserialize;
use weir_host::control::{HistoryEntry, HistoryEvent};

use crate::{
    args::Asked,
    client::Route,
    complete,
    output::printable,
    tables::{NOTHING, SHORT_HASH, finish, moment, state, table},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The last 100 events, oldest first: commands and their senders, states with the version that serves,
failures.

Examples:
  weir history storage
  weir history --json storage | jq '.history[] | select(.event == \"asked\")'")]
pub(crate) struct Args {
    /// The extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Deserialize)]
struct History {
    history: Vec<HistoryEntry>,
}

pub(super) async fn run(Args { id, asked }: Args) -> anyhow::Result<()> {
    let route = Route::named(&["extensions", &id, "history"])?;
    asked.get(&route, |History { history: entries }| history(&entries)).await
}

fn history(entries: &[HistoryEntry]) -> String {
    let mut table = table(["TIME", "EVENT", "WHY", "SHA-256"]);
    table.add_rows(entries.iter().map(|HistoryEntry { time, event, .. }| {
        let (event, why, hash) = match event {
            HistoryEvent::Asked { order, by } => {
                (Cell::new(printable(&format!("{order} asked for"))), Some(format!("by {by}")), None)
            }
            HistoryEvent::State { state: now, hash, reason } => {
                (state(now.as_str()), reason.clone(), hash.as_ref())
            }
            HistoryEvent::Failed { cause, hash } => {
                (Cell::new("failure").fg(Color::Red), Some(cause.clone()), hash.as_ref())
            }
            HistoryEvent::Version { version, standing, serves, reason } => {
                let why = format!("{reason}; version {serves} serves");
                (Cell::new(format!("version {version} is {standing}")), Some(why), None)
            }
            _ => (Cell::new(NOTHING), None, None),
        };
        let text = |text: Option<&str>| Cell::new(printable(text.unwrap_or(NOTHING)));
        let hash = hash.map(|hash| hash.chars().take(SHORT_HASH).collect::<String>());
        vec![Cell::new(moment(*time)), event, text(why.as_deref()), text(hash.as_deref())]
    }));
    finish(&table)
}
