//! Peers and their sessions as text for people.

use std::time::SystemTime;

use comfy_table::{Cell, Color};

use weir_host::{
    names::PeerName,
    peers::{PeerStatus, SessionStatus},
};

use super::{NOTHING, age, finish, list, size, table};
use crate::output::{counted, printable};

const NOT_CONNECTED: &str = "not connected";

/// The proof of a session that belongs to a part of Main.
const OF_MAIN: &str = "main";

/// All of `weir peers`: a line for each session, and for each name without one.
pub(crate) fn peers(peers: &[PeerStatus], now: SystemTime) -> String {
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

/// The part of `weir ps` below the extensions; empty without peers. Counts are of all sessions since Main started.
pub(crate) fn peers_in_short(peers: &[PeerStatus]) -> String {
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

#[cfg(test)]
mod tests {
    use super::{super::tests::assert_golden, *};
    use crate::model::Peers;

    fn fixture() -> Vec<PeerStatus> {
        serde_json::from_str::<Peers>(include_str!("../../tests/golden/peers.json")).unwrap().peers
    }

    fn now() -> SystemTime {
        humantime::parse_rfc3339("2026-11-20T13:29:43.000Z").unwrap()
    }

    #[test]
    fn sessions_line_up_with_the_names_that_have_none() {
        assert_golden("peers", &peers(&fixture(), now()));
    }

    #[test]
    fn ps_has_a_line_for_each_peer() {
        assert_golden("ps-peers", &peers_in_short(&fixture()));
    }

    #[test]
    fn without_peers_there_is_no_table() {
        assert_eq!(peers(&[], now()), "no peers are configured\n");
        assert_eq!(peers_in_short(&[]), "");
    }

    #[test]
    fn the_proof_of_a_peer_cannot_play_with_the_terminal() {
        let mut all = fixture();
        all[0].sessions[0].proof = "a\x1b[2J\nb\u{9b}2J\u{202e}".into();
        let text = peers(&all, now());
        assert!(!text.contains(['\x1b', '\u{9b}', '\u{202e}']), "{text}");
    }
}
