//! `weir ps`: the extensions and the peers, and parts of Main that have ended.

use std::{cmp::Reverse, time::Duration};

use clap::ValueEnum;
use comfy_table::{Cell, Color, ContentArrangement};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use weir_host::{
    control::{ExtensionState, ExtensionStatus, HandledMessage, PartState, PartStatus},
    peers::PeerStatus,
};

use super::peers::{NOT_CONNECTED, Peers};
use crate::{
    args::Asked,
    client::{Client, Route, unless},
    output::{self, printable},
    tables::{
        COMPILING, NOTHING, finish, limit_hit, mark, moment, percent, restarts, size, state, table, then,
        time,
    },
};

const WATCH_PAUSE: Duration = Duration::from_secs(2);

const CLEAR: &str = "\x1b[2J\x1b[H";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
KIND is `extension`, `http` for a server, or `exports` if its functions are called. CPU is the processor time of the extension, CPU% its share of the last second. MEMORY is used and allowed
memory, INBOX is waiting messages and bytes, SHED is messages that found no room. In STATE, `probation` is a
new version that is not proven yet, and `held back` another version than the configured one; `weir versions
ID` says more. Below are the configured programs outside Main; `weir peers` shows their sessions. --watch
lists everything again every two seconds, until Main ends. For a failure, `weir status ID` and --json also
show the component's hash and the functions that were running.

Examples:
  weir ps
  weir ps --watch --sort cpu
  weir ps --failures
  weir ps --json | jq -r '.extensions[] | select(.state != \"ready\") | .id'")]
pub(crate) struct Args {
    /// List the last failures instead
    #[arg(long, conflicts_with = "sort")]
    failures: bool,
    /// Sort by this, largest first; by default, in the order of the configuration
    #[arg(long, value_name = "WHAT", conflicts_with = "json")]
    sort: Option<Sort>,
    /// List again every two seconds, until Main ends
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    /// Share of processor time in the last second
    Cpu,
    /// Bytes of memory in use
    Memory,
    /// Waiting messages
    Inbox,
    /// Number of restarts
    Restarts,
}

#[derive(Deserialize)]
pub(super) struct Extensions {
    pub(super) extensions: Vec<ExtensionStatus>,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    if args.asked.json {
        let mut client = Client::connect(&args.asked.target).await?;
        let mut all: Value = of_all(&mut client).await?;
        if args.failures {
            return output::json(&json!({ "failures": failures_in(&all) }));
        }
        if let (Some(all), Some(Value::Object(peers))) = (all.as_object_mut(), of_peers(&mut client).await?) {
            all.extend(peers);
        }
        return output::json(&all);
    }
    let before = if args.watch && output::is_terminal() { CLEAR } else { "" };
    loop {
        let mut client = Client::connect(&args.asked.target).await?;
        let Extensions { mut extensions } = of_all(&mut client).await?;
        sort(&mut extensions, args.sort);
        let text = if args.failures {
            failures(&extensions)
        } else {
            let Peers { peers, parts } = of_peers(&mut client).await?.unwrap_or_default();
            listed(&extensions) + &peers_in_short(&peers) + &faulty_parts(&parts)
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

/// Asks for the peers. Returns `None` if Main is older, and has no peers.
async fn of_peers<T: DeserializeOwned>(client: &mut Client) -> anyhow::Result<Option<T>> {
    unless(&["no-such-route"], client.get(&Route::new(&["peers"])).await)
}

fn sort(extensions: &mut [ExtensionStatus], by: Option<Sort>) {
    match by {
        Some(Sort::Cpu) => extensions.sort_by(|one, other| other.cpu_share.total_cmp(&one.cpu_share)),
        Some(Sort::Memory) => extensions.sort_by_key(|extension| Reverse(extension.memory)),
        Some(Sort::Inbox) => extensions.sort_by_key(|extension| Reverse(extension.inbox_messages)),
        Some(Sort::Restarts) => extensions.sort_by_key(|extension| Reverse(extension.restarts)),
        None => {}
    }
}

fn failures_in(all: &Value) -> Vec<&Value> {
    let extensions = all.get("extensions").and_then(Value::as_array).into_iter().flatten();
    extensions.filter_map(|extension| extension.get("failures")?.as_array()).flatten().collect()
}

/// Makes the table of `weir ps`, and below it says why extensions have failed.
fn listed(extensions: &[ExtensionStatus]) -> String {
    let mut table = table(["ID", "KIND", "STATE", "CPU", "CPU%", "MEMORY", "INBOX", "SHED", "RESTARTS"]);
    table.add_rows(extensions.iter().map(|extension| {
        vec![
            Cell::new(&extension.id),
            Cell::new(extension.kind()),
            state(&state_of(extension)),
            Cell::new(time(extension.cpu.as_secs_f64())),
            Cell::new(percent(extension.cpu_share)),
            Cell::new(format!("{} / {}", size(extension.memory), size(extension.memory_limit))),
            Cell::new(format!("{} / {}", extension.inbox_messages, size(extension.inbox_bytes))),
            Cell::new(extension.shed),
            Cell::new(printable(&restarts(extension))),
        ]
    }));
    let failed = extensions.iter().filter(|extension| extension.state == ExtensionState::Failed);
    let reasons: String = failed
        .filter_map(|extension| Some((&extension.id, extension.reason.as_ref()?)))
        .map(|(id, reason)| format!("`{id}`: {}\n", printable(reason)))
        .collect();
    let gap = if reasons.is_empty() { "" } else { "\n" };
    format!("{}{gap}{reasons}", finish(&table))
}

/// The state of an extension, and in brackets what is special about the version that it runs.
fn state_of(extension: &ExtensionStatus) -> String {
    let state = if extension.compiling.is_some() { COMPILING } else { extension.state.as_str() };
    let mark = extension.version.as_ref().and_then(mark);
    mark.map_or(state.to_owned(), |mark| format!("{state} ({mark})"))
}

/// Makes the table of `weir ps --failures`, oldest first.
fn failures(extensions: &[ExtensionStatus]) -> String {
    let mut failures: Vec<_> = extensions.iter().flat_map(|extension| &extension.failures).collect();
    failures.sort_by_key(|failure| failure.time);
    let mut table = table(["TIME", "ID", "HANDLING", "MESSAGE", "SENDER", "LIMIT", "THEN", "CAUSE"]);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.add_rows(failures.into_iter().map(|failure| {
        let [operation, message, sender] = match &failure.handling {
            Some(HandledMessage { operation, message, sequence, sender }) => {
                let number = message.map(|id| id.to_string()).or(sequence.map(|number| format!("#{number}")));
                [printable(operation), number.unwrap_or(NOTHING.to_owned()), printable(sender)]
            }
            None => [NOTHING; 3].map(str::to_owned),
        };
        [
            moment(failure.time),
            failure.extension.to_string(),
            operation,
            message,
            sender,
            failure.limit.as_ref().map_or(NOTHING.to_owned(), |hit| printable(&limit_hit(hit))),
            then(failure),
            printable(&failure.cause),
        ]
    }));
    finish(&table)
}

/// Makes the table of peers below the extensions: empty without peers. Counts are of all sessions since Main started.
fn peers_in_short(peers: &[PeerStatus]) -> String {
    if peers.is_empty() {
        return String::new();
    }
    let mut table = table(["PEER", "STATE", "SESSIONS", "SENT", "RECEIVED", "LOST"]);
    table.add_rows(peers.iter().map(|peer| {
        let state = match peer.sessions.is_empty() {
            true => Cell::new(NOT_CONNECTED).fg(Color::Yellow),
            false => Cell::new("connected").fg(Color::Green),
        };
        vec![
            Cell::new(&peer.name),
            state,
            Cell::new(peer.sessions.len()),
            Cell::new(peer.counts.sent),
            Cell::new(peer.counts.received),
            Cell::new(peer.counts.shed),
        ]
    }));
    format!("\n{}", finish(&table))
}

/// Makes the table of parts of Main that have ended before: empty if none has.
fn faulty_parts(parts: &[PartStatus]) -> String {
    let faulty = parts.iter().filter(|part| part.restarts > 0 || part.state == PartState::BackingOff);
    let mut table = table(["PART OF MAIN", "STATE", "RESTARTS", "ENDED BECAUSE"]);
    table.add_rows(faulty.map(|part| {
        let color = if part.state == PartState::BackingOff { Color::Red } else { Color::Green };
        vec![
            Cell::new(printable(&part.name)),
            Cell::new(part.state).fg(color),
            Cell::new(part.restarts),
            Cell::new(part.reason.as_deref().map_or(NOTHING.to_owned(), printable)),
        ]
    }));
    if table.is_empty() { String::new() } else { format!("\n{}", finish(&table)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        tables::assert_golden,
        verbs::peers::tests::{fixture as peers, part},
    };

    fn fixture() -> Vec<ExtensionStatus> {
        let json = include_str!("../../tests/golden/extensions.json");
        serde_json::from_str::<Extensions>(json).unwrap().extensions
    }

    #[test]
    fn ps_lines_up_what_counts() {
        assert_golden("ps", &listed(&fixture()));
    }

    #[test]
    fn a_version_that_is_not_proven_or_not_the_configured_one_is_marked() {
        let mut fixture = fixture();
        let mut line = |version: &str| {
            fixture[0].version = Some(serde_json::from_str(version).unwrap());
            listed(&fixture).lines().nth(1).unwrap().to_owned()
        };
        let of = |number: u64, standing: &str, is_held_back: bool| {
            json!({ "number": number, "standing": standing, "is-held-back": is_held_back }).to_string()
        };
        assert!(
            line(&of(2, "probation", false)).contains("storage    extension  ready (probation)  12.3 ms")
        );
        assert!(line(&of(1, "proven", true)).contains("storage    extension  ready (held back)  12.3 ms"));
        assert!(!line(&of(2, "proven", false)).contains('('));
    }

    #[test]
    fn failures_of_all_extensions_stand_in_the_order_of_time() {
        assert_golden("ps-failures", &failures(&fixture()));
    }

    #[test]
    fn failures_cannot_play_with_the_terminal() {
        let mut fixture = fixture();
        fixture[1].failures[0].cause = "\x1b]0;title\x07".to_owned();
        let text = failures(&fixture);
        assert!(!text.contains(['\x1b', '\x07']), "{text}");
    }

    #[test]
    fn ps_has_a_line_for_each_peer() {
        assert_golden("ps-peers", &peers_in_short(&peers()));
        assert_eq!(peers_in_short(&[]), "");
    }

    #[test]
    fn a_part_that_has_not_ended_is_not_shown() {
        assert_eq!(faulty_parts(&[part(PartState::Serving, 0, &[])]), "");
    }

    #[test]
    fn a_part_that_has_ended_is_shown_with_the_reason() {
        let parts = [part(PartState::BackingOff, 0, &[]), part(PartState::Serving, 2, &[])];
        let text = faulty_parts(&parts);
        assert!(text.contains("backing-off") && text.contains("serving"), "{text}");
        assert!(text.contains("it has panicked") && !text.contains('\x1b'), "{text}");
    }
}
