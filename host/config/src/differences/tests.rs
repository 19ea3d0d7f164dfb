//! Differences as people see them.

use std::path::Path;

use super::*;
use crate::tests::parse_in;

fn only(text: &str) -> ExtensionConfig {
    let text = format!("[[extension]]\nid = \"a\"\npath = \"a.wasm\"\n{text}");
    parse_in(&text, Path::new("/etc/weir")).unwrap().extensions.remove(0)
}

fn shown(differences: &[Difference]) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    differences.iter().map(|it| format!("{}: {} -> {}", it.key, text(&it.before), text(&it.after))).collect()
}

#[test]
fn each_key_that_differs_is_shown_as_a_file_has_it() {
    let before =
        only("limits.memory = \"2 MiB\"\nwants = [\"b@1\"]\ngrants.env = { KEY = \"old\", OLD = \"1\" }");
    let after = only(
        r#"
        wants = ["b@1", "c@1"]
        subscribes = [{ topic = "x.>", messages = 3, bytes = "1 KiB" }]
        grants.env = { KEY = "new" }
        grants.dirs = [{ host = "/srv", guest = "/data", mode = "rw" }]
        config.color = "red"
        config.key = { from-credential = "key" }
        config.token = { from-file = "token" }
        restart = { policy = "never" }
        "#,
    );
    assert_eq!(
        shown(&before.differences(&after)),
        [
            "config.color:  -> \"red\"",
            "config.key:  -> { from-credential = \"key\" }",
            "config.token:  -> { from-file = \"/etc/weir/token\" }",
            "grants.dirs:  -> [{ host = \"/srv\", guest = \"/data\", mode = \"rw\" }]",
            "grants.env.KEY: … -> …",
            "grants.env.OLD: … -> ",
            "limits.memory: 2 MiB -> 16896 KiB",
            "restart.policy: \"on-failure\" -> \"never\"",
            "subscribes:  -> [{ topic = \"x.>\", policy = \"drop-oldest\", messages = 3, bytes = \"1 KiB\" }]",
            "wants: [\"b@1\"] -> [\"b@1\", \"c@1\"]",
        ]
    );
    assert!(before.differences(&before).is_empty());
}

#[test]
fn each_key_of_a_peer_that_differs_is_shown_as_a_file_has_it() {
    let [before, after] =
        ["uid = 5\nwants = ['b@1/get']\nlimits.request-timeout = '2s'", "limits.sessions = 1"]
            .map(|text| parse_in(&format!("[peer.'app:a']\n{text}"), Path::new("/etc/weir")).unwrap());
    assert_eq!(
        shown(&before.peers[0].differences(&after.peers[0])),
        [
            "limits.request-timeout: 2s -> ",
            "limits.sessions: 8 -> 1",
            "uid: 5 -> ",
            "wants: [\"b@1/get\"] -> "
        ]
    );
    assert!(before.peers[0].differences(&before.peers[0]).is_empty());
}

#[test]
fn tables_beside_extensions_that_differ_are_named() {
    let [before, after] = [
        "[queue.a]\nmessages = 1\n[queue.b]\n[topic.\"x.y\"]\nretain = true\n\
         [peer.'app:a']\nuid = 1\n[peer.'app:b']\n[peer.'app:c']",
        "[queue.a]\nmessages = 2\n[queue.b]\n[queue.c]\n[peer.'app:b']\n[peer.'app:a']\nuid = 2",
    ]
    .map(|text| parse_in(text, Path::new("/etc/weir")).unwrap());
    let differences = before.beside_extensions().table_differences(&after);
    assert!(differences.iter().all(|it| it.takes_effect == Effect::AtOnce));
    let changes: Vec<_> = differences.iter().map(|it| (it.change, it.to_string())).collect();
    let named = |change, text: &str| (change, text.to_owned());
    assert_eq!(
        changes,
        [
            named(TableChange::Changed, "`peer.\"app:a\"` (uid)"),
            named(TableChange::Removed, "`peer.\"app:c\"`"),
            named(TableChange::Changed, "`queue.a` (messages)"),
            named(TableChange::Added, "`queue.c`"),
            named(TableChange::Removed, "`topic.\"x.y\"`"),
        ]
    );
    assert!(before.beside_extensions().table_differences(&before).is_empty());
}

#[test]
fn of_tokens_and_variables_only_the_change_is_told() {
    let [one, two] = ["a", "b"].map(|token| crate::TokenHash::of(token).to_string());
    let peer = |tokens: &str| {
        parse_in(&format!("[peer.'app:a']\n{tokens}"), Path::new("/etc/weir")).unwrap().peers.remove(0)
    };
    let (none, old, both) =
        (peer(""), peer(&format!("tokens = ['{one}']")), peer(&format!("tokens = ['{one}', '{two}']")));
    let other = peer(&format!("tokens = ['{two}']"));
    for (before, after, note) in [
        (&old, &none, "1 removed"),
        (&none, &both, "2 added"),
        (&both, &old, "1 removed"),
        (&old, &other, "1 added, 1 removed"),
    ] {
        let differences = before.differences(after);
        let [difference] = &differences[..] else { panic!("{note}") };
        assert_eq!((&*difference.key, difference.note.as_deref()), ("tokens", Some(note)));
        let shown = serde_json::to_string(difference).unwrap();
        assert!(!shown.contains("sha256"), "{shown}");
    }
    let table = TableDifference {
        table: "peer.\"app:a\"".to_owned(),
        change: TableChange::Changed,
        takes_effect: Effect::AtOnce,
        keys: old.differences(&other),
    };
    assert_eq!(table.to_string(), "`peer.\"app:a\"` (tokens: 1 added, 1 removed)");
}

#[test]
fn keys_of_main_that_a_running_main_keeps_need_a_new_start() {
    let [before, after] = ["", "[main]\ndata-dir = 'data'\nmemory-budget = '9 MiB'\ntrace-spans = 7\n"]
        .map(|text| parse_in(text, Path::new("/etc/weir")).unwrap().main);
    let named: Vec<_> = before.table_differences(&after);
    let named: Vec<_> = named.iter().map(|it| (it.takes_effect, it.to_string())).collect();
    assert_eq!(
        named,
        [
            (Effect::AtOnce, "`main` (memory-budget, trace-spans)".to_owned()),
            (Effect::Restart, "`main` (data-dir)".to_owned()),
        ]
    );
}
