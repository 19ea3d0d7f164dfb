//! `weir peers`: sessions of programs outside Main, their end, and tokens for them.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use bytes::Bytes;
use clap::{Subcommand, ValueHint};
use comfy_table::{Cell, Color};
use hyper::Method;
use serde::Deserialize;
use serde_json::json;
use weir_host::{
    config::{PeerConfig, TokenHash},
    control::PartStatus,
    names::PeerName,
    peers::{PeerStatus, SessionStatus},
};

use crate::{
    args::Asked,
    client::{Patience, Route, block_on, random},
    features,
    output::{self, counted, printable},
    tables::{NOTHING, age, finish, list, size, table},
};

/// The beginning of each token, which also tells programs that search files for secrets.
const PREFIX: &str = "weir_";

/// The random bytes of a token: too many to guess.
const RANDOM_BYTES: usize = 32;

pub(super) const NOT_CONNECTED: &str = "not connected";

/// How a session of a part of Main has proved its name.
const OF_MAIN: &str = "main";

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Peers are programs outside Main: apps and sidecars. A line is a session, one connection of a program. PROOF is
how it proved its name: by its user (uid), by a token, or through the program that embeds Main. IN FLIGHT is
its own calls and jobs under way. WAITING is messages and bytes that wait for it. LOST is messages to it that
found no room, LATE its answers after the deadline. SERVES is the contracts that it serves now.

Examples:
  weir peers
  weir peers end 7
  weir peers token app:player --config /etc/weir/weir.toml
  weir peers --json | jq -r '.peers[] | select(.sessions == []) | .name'"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// End a session
    End(EndArgs),
    /// Make a token, with which a program proves its name
    Token(TokenArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program is told `ended`, and may connect again. To keep it out, take its proof or its table out of the
configuration, and reload.

Examples:
  weir peers end 7
  weir peers --json | jq '.peers[].sessions[].id' | xargs -n 1 weir peers end")]
pub(crate) struct EndArgs {
    /// The number of the session, from `weir peers`
    #[arg(value_name = "SESSION")]
    session: u64,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The token goes to stdout, alone on its line, and is kept nowhere. What to do with it goes to stderr: the line
for the configuration, with the token's hash. With --config, the line keeps the newest hash that the file has
for this peer, so that the token before still works. No file is changed, and no Main is needed.

Examples:
  weir peers token app:player --config weir.toml
  (umask 077 && weir peers token app:player > player.token)
  weir peers token app:player --json | jq -r .hash")]
pub(crate) struct TokenArgs {
    /// The peer, as in `app:player`
    #[arg(value_name = "NAME")]
    name: PeerName,
    /// The configuration that has the peer
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print the token and its hash as JSON, and no explanation
    #[arg(long)]
    json: bool,
}

#[derive(Default, Deserialize)]
pub(super) struct Peers {
    pub(super) peers: Vec<PeerStatus>,
    /// The parts of Main. An older Main does not list them.
    #[serde(default)]
    pub(super) parts: Vec<PartStatus>,
}

#[derive(Deserialize)]
struct EndedSession {
    id: u64,
    name: String,
}

pub(super) fn run(Args { command, asked }: Args) -> anyhow::Result<()> {
    match command {
        None => block_on(asked.get(&Route::new(&["peers"]), shown)),
        Some(Command::End(args)) => block_on(end(args)),
        Some(Command::Token(args)) => token(&args),
    }
}

async fn end(EndArgs { session, asked }: EndArgs) -> anyhow::Result<()> {
    let route = Route::new(&["peers", "sessions", &session.to_string(), "end"]);
    let text = |EndedSession { id, name }| format!("session {id} of `{}` was ended\n", printable(&name));
    asked.send(Method::POST, &route, Bytes::new(), Patience::Query, text).await
}

fn token(TokenArgs { name, config, json }: &TokenArgs) -> anyhow::Result<()> {
    let file = config.as_deref();
    let config = file.map(features::load).transpose()?;
    let peer = config.as_ref().map(|config| config.peers.iter().find(|peer| peer.name == *name));
    let token = generate()?;
    let plan = Plan { name, file, peer, hash: TokenHash::of(&token) };
    let warning = plan.warning();
    if !warning.is_empty() {
        output::complain(&warning);
    }
    if *json {
        let hashes: Vec<_> = plan.hashes().iter().map(ToString::to_string).collect();
        let hash = plan.hash.to_string();
        return output::json(
            &json!({ "name": name.as_str(), "token": token, "hash": hash, "tokens": hashes }),
        );
    }
    output::line(&token)?;
    let gap = if output::is_terminal() { "\n" } else { "" };
    output::complain(&format!("{gap}{}", plan.explanation()));
    Ok(())
}

/// Makes a new random token.
pub(crate) fn generate() -> anyhow::Result<String> {
    Ok(PREFIX.to_owned() + &hex::encode(random::<RANDOM_BYTES>()?))
}

/// What the operator does once the program uses the new token.
const REPLACE: &str = "When the program has connected with the new token,\ntake the second hash out \
                       and reload: sessions that still use the token before end.";

/// The change to the peer's table that the operator has to make.
struct Plan<'a> {
    name: &'a PeerName,
    file: Option<&'a Path>,
    /// The peer in the file. The outer `None` means that no file was given; the inner, that the file has no such peer.
    peer: Option<Option<&'a PeerConfig>>,
    hash: TokenHash,
}

impl Plan<'_> {
    /// Returns the hashes for the table: the new one, and the newest before it.
    fn hashes(&self) -> Vec<TokenHash> {
        [self.hash].into_iter().chain(self.present().first().copied()).collect()
    }

    /// Returns the hashes that the file has, newest first.
    fn present(&self) -> &[TokenHash] {
        self.peer.flatten().map_or(&[], |peer| &peer.tokens)
    }

    /// Says where the table is, for people.
    fn place(&self) -> String {
        self.file.map_or("the configuration".to_owned(), |file| {
            format!("`{}`", printable(&file.display().to_string()))
        })
    }

    /// Warns if the file has no such peer. Otherwise the text is empty.
    fn warning(&self) -> String {
        match self.peer {
            Some(None) => {
                format!("warning: {} has no peer `{}`: is the name right?", self.place(), self.name)
            }
            _ => String::new(),
        }
    }

    fn explanation(&self) -> String {
        let Self { name, peer, .. } = self;
        let hashes: Vec<_> = self.hashes().iter().map(|hash| format!("\"{hash}\"")).collect();
        let line = match &hashes[..] {
            [only] => format!("tokens = [{only}]"),
            several => format!("tokens = [\n    {},\n]", several.join(",\n    ")),
        };
        let (file, table) = (self.place(), format!("[peer.\"{name}\"]"));
        let (place, line) = match peer {
            Some(None) => (file, format!("{table}\n{line}")),
            _ => (format!("`{table}` of {file}"), line),
        };
        let next = match self.present() {
            [] => "To take the token back, take its hash out and reload.".to_owned(),
            [_] => format!("Both tokens work then. {REPLACE}"),
            [_, oldest, ..] => format!(
                "This leaves out `{oldest}`, since a peer has\nat most two: sessions that use its token end. {REPLACE}"
            ),
        };
        format!(
            "This is a token for `{name}`, shown only this once: give it to the program.\n\
             Put its hash into {place}, and run `weir reload`:\n\n{line}\n\n{next}"
        )
    }
}

/// Shows the sessions, and below them what was refused.
fn shown(Peers { peers, parts }: Peers) -> String {
    listed(&peers, SystemTime::now()) + &refusals(&parts)
}

/// Makes a table with a line for each session, and for each peer without one.
fn listed(peers: &[PeerStatus], now: SystemTime) -> String {
    if peers.is_empty() {
        return "no peers are configured\n".to_owned();
    }
    let header = [
        "NAME",
        "SESSION",
        "AGE",
        "PROOF",
        "IN FLIGHT",
        "WAITING",
        "SENT",
        "RECEIVED",
        "LOST",
        "LATE",
        "SERVES",
    ];
    let mut table = table(header);
    for peer in peers {
        table.add_rows(peer.sessions.iter().map(|one| session(&peer.name, one, now)));
        if peer.sessions.is_empty() {
            let nothing = header.iter().skip(2).map(|_| Cell::new(NOTHING));
            let name = [Cell::new(&peer.name), Cell::new(NOT_CONNECTED).fg(Color::Yellow)];
            table.add_row(name.into_iter().chain(nothing));
        }
    }
    let denied: String = peers
        .iter()
        .filter(|peer| peer.denied > 0)
        .map(|peer| {
            let attempts = counted(peer.denied, "attempt");
            format!("{attempts} to connect as `{}` with a wrong proof\n", peer.name)
        })
        .collect();
    let gap = if denied.is_empty() { "" } else { "\n" };
    format!("{}{gap}{denied}", finish(&table))
}

fn session(name: &PeerName, session: &SessionStatus, now: SystemTime) -> Vec<Cell> {
    vec![
        Cell::new(name),
        // Nobody can end the session of a part of Main by a number.
        if session.proof == OF_MAIN { Cell::new(NOTHING) } else { Cell::new(session.id) },
        Cell::new(age(session.since, now)),
        Cell::new(printable(&session.proof)),
        Cell::new(session.in_flight),
        Cell::new(format!("{} / {}", session.waiting, size(session.waiting_bytes))),
        Cell::new(session.counts.sent),
        Cell::new(session.counts.received),
        Cell::new(session.counts.shed),
        Cell::new(session.counts.late),
        Cell::new(list(&session.serves)),
    ]
}

/// Shows what parts of Main have refused. The text is empty if nothing was refused.
fn refusals(parts: &[PartStatus]) -> String {
    let lines: String = parts
        .iter()
        .filter(|part| !part.refused.is_empty())
        .map(|part| {
            let refused = part.refused.iter();
            let reasons: Vec<_> =
                refused.map(|(reason, count)| format!("{count} {}", printable(reason))).collect();
            format!("`{}` refused so far: {}\n", printable(&part.name), reasons.join(", "))
        })
        .collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use weir_host::control::PartState;

    use super::*;
    use crate::tables::assert_golden;

    pub(in super::super) fn fixture() -> Vec<PeerStatus> {
        serde_json::from_str::<Peers>(include_str!("../../tests/golden/peers.json")).unwrap().peers
    }

    fn now() -> SystemTime {
        humantime::parse_rfc3339("2026-11-20T13:29:43.000Z").unwrap()
    }

    pub(in super::super) fn part(state: PartState, restarts: u64, refused: &[(&str, u64)]) -> PartStatus {
        serde_json::from_value(serde_json::json!({
            "name": "gateway",
            "state": state,
            "restarts": restarts,
            "reason": "it has panicked: \x1b[2J",
            "refused": refused.iter().copied().collect::<BTreeMap<_, _>>(),
        }))
        .unwrap()
    }

    #[test]
    fn sessions_line_up_with_the_names_that_have_none() {
        assert_golden("peers", &listed(&fixture(), now()));
    }

    #[test]
    fn without_peers_there_is_no_table() {
        assert_eq!(listed(&[], now()), "no peers are configured\n");
    }

    #[test]
    fn the_proof_of_a_peer_cannot_play_with_the_terminal() {
        let mut all = fixture();
        all[0].sessions[0].proof = "a\x1b[2J\nb\u{9b}2J\u{202e}".into();
        let text = listed(&all, now());
        assert!(!text.contains(['\x1b', '\u{9b}', '\u{202e}']), "{text}");
    }

    #[test]
    fn what_a_part_refused_is_shown_with_the_number() {
        assert_eq!(refusals(&[part(PartState::Serving, 0, &[])]), "");
        let parts = [part(PartState::BackingOff, 0, &[("host", 1), ("origin", 3)])];
        assert_eq!(refusals(&parts), "\n`gateway` refused so far: 1 host, 3 origin\n");
    }
}
