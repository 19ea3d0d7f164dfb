//! Peers and their sessions as text for people.

use std::time::SystemTime;

use comfy_table::{Cell, Color};

use super::{NOTHING, age, finish, size, table};
use crate::{
    model::{Peer, PeerSession},
    output::{counted, printable},
};

const NOT_CONNECTED: &str = "not connected";

/// The proof of a session that belongs to a part of Main.
const OF_MAIN: &str = "main";

/// All of `weir peers`: a line for each session, and for each name without one.
pub(crate) fn peers(peers: &[Peer], now: SystemTime) -> String {
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
            let name = [Cell::new(printable(&peer.name)), Cell::new(NOT_CONNECTED).fg(Color::Yellow)];
            table.add_row(name.into_iter().chain(nothing));
        }
    }
    let denied: String = peers
        .iter()
        .filter(|peer| peer.denied > 0)
        .map(|peer| {
            let attempts = counted(peer.denied, "attempt");
            format!("{attempts} to connect as `{}` with a wrong proof\n", printable(&peer.name))
        })
        .collect();
    let gap = if denied.is_empty() { "" } else { "\n" };
    format!("{}{gap}{denied}", finish(&table))
}

fn session(name: &str, session: &PeerSession, now: SystemTime) -> Vec<Cell> {
    let serves =
        if session.serves.is_empty() { NOTHING.to_owned() } else { printable(&session.serves.join(" ")) };
    vec![
        Cell::new(printable(name)),
        // Nobody can end the session of a part of Main by a number.
        if session.proof == OF_MAIN { Cell::new(NOTHING) } else { Cell::new(session.id) },
        Cell::new(age(&session.since, now)),
        Cell::new(printable(&session.proof)),
        Cell::new(session.in_flight),
        Cell::new(format!("{} / {}", session.waiting, size(session.waiting_bytes))),
        Cell::new(session.sent),
        Cell::new(session.received),
        Cell::new(session.shed),
        Cell::new(session.late),
        Cell::new(serves),
    ]
}

/// The part of `weir ps` below the extensions; empty without peers. Counts are of all sessions since Main started.
pub(crate) fn peers_in_short(peers: &[Peer]) -> String {
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
            Cell::new(printable(&peer.name)),
            state,
            Cell::new(peer.sessions.len()),
            Cell::new(peer.sent),
            Cell::new(peer.received),
            Cell::new(peer.shed),
        ]
    }));
    format!("\n{}", finish(&table))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::assert_golden, *};
    use crate::model::Peers;

    fn fixture() -> Vec<Peer> {
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
    fn names_of_peers_cannot_play_with_the_terminal() {
        let mut all = fixture();
        all[0].name = "a\x1b[2J\nb".to_owned();
        all[0].sessions[0].serves = vec!["\u{9b}2J\u{202e}".to_owned()];
        for text in [peers(&all, now()), peers_in_short(&all)] {
            assert!(!text.contains(['\x1b', '\u{9b}', '\u{202e}']), "{text}");
        }
    }
}
