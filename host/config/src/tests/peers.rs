//! Peers and stores of queues: defaults, order, memory, warnings, and what Rust code may get wrong.

use std::fs;

use super::*;
use crate::{MainConfig, PeerConfig, QueueConfig, SubscribeGrant, TokenHash};
use weir_names::{QueuePolicy, TopicPattern};

fn peer(name: &str) -> PeerConfig {
    PeerConfig::new(name.parse().unwrap())
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = parse("[peer.'app:player']").unwrap();
    assert_eq!(config.peers, [peer("app:player")]);
    let written = "when-full = 'reject'\n[peer.'app:player'.limits]\nsessions = 8\nin-flight = 64\n\
                   message-size = '256 KiB'\nmessage-rate = 1000\nsubscriptions = 64\nstall-timeout = '30s'\n\
                   inbox = { messages = 256, bytes = '256 KiB' }";
    assert_eq!(parse(&format!("[peer.'app:player']\n{written}")).unwrap(), config);
    assert_eq!((config.main.peer_socket, parse("").unwrap().peers), (None, Vec::new()));
}

#[test]
fn the_example_of_peers_is_fine() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/peers/weir.toml");
    let config = load(&file).unwrap();
    config.check().unwrap();
    assert_eq!(config.warnings(), [""; 0]);
}

#[test]
fn peers_stay_in_the_order_of_the_files_and_each_has_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let included = |text: &str| {
        fs::write(dir.path().join("more.toml"), text).unwrap();
        parse_in("include = ['more.toml']\n[peer.'app:z']\n[peer.'app:b']\n[peer.'app:c']", dir.path())
    };
    let config = included("[peer.'app:y']\n[peer.'app:a']").unwrap();
    let names: Vec<_> = config.peers.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names, ["app:z", "app:b", "app:c", "app:y", "app:a"]);

    let errors = included("[peer.'app:b']").unwrap_err().to_string();
    assert!(errors.contains("more.toml:1:7: `peer.\"app:b\"` is defined in two files"), "{errors}");
    assert!(errors.contains("weir.toml:3:7: first defined here"), "{errors}");
}

#[test]
fn an_extension_may_require_what_a_peer_fulfills() {
    let text = "[[extension]]\nid = 'a'\npath = 'a.wasm'\nrequires = ['thermal@1']\nwants = ['fan@1']\n\
                [peer.'sidecar:thermal']\nfulfills = ['thermal@1', 'fan@1']";
    assert_eq!(parse(text).unwrap().warnings(), [""; 0]);
}

#[test]
fn a_want_that_nobody_meets_is_a_warning() {
    let text =
        "main.serves = ['settings@1']\n[peer.'app:player']\nwants = ['settings@1/get', 'thermal@1/read']";
    assert_eq!(
        parse(text).unwrap().warnings(),
        [
            "`app:player` wants `thermal@1`, but no extension or peer fulfills it and `main.serves` does not list it"
        ]
    );
}

#[test]
fn a_peer_that_no_program_can_connect_as_is_a_warning() {
    let socket = "main.peer-socket = 'peers.sock'\n[peer.'app:player']\n";
    let warnings = |text: &str| parse(text).unwrap().warnings();
    assert_eq!(
        warnings(socket),
        ["`app:player` has neither `uid` nor `tokens`, so no program can connect as it"]
    );
    let token = format!("tokens = ['{}']", TokenHash::of("token"));
    for proof in ["uid = 0", &token] {
        assert_eq!(warnings(&format!("{socket}{proof}")), [""; 0]);
        assert_eq!(
            warnings(&format!("[peer.'app:player']\n{proof}")),
            ["`app:player` has a `uid` or `tokens`, but there is no `main.peer-socket` to connect to"]
        );
    }
    assert_eq!(warnings("[peer.'app:player']"), [""; 0]);
}

#[test]
fn a_job_that_only_a_peer_is_too_small_for_is_warned_of() {
    let with = |put: &str, taken: &str| {
        let text = format!(
            "queue.q.bytes = '8 MiB'\n\
             [peer.'app:a']\nputs = ['q']\nlimits.message-size = '{put}'\n\
             [peer.'app:b']\ntakes = ['q']\nlimits.message-size = '{taken}'\n"
        );
        parse(&text).unwrap().warnings()
    };
    assert_eq!(with("128 KiB", "128 KiB"), [""; 0]);
    let warning =
        "`app:a` can put larger jobs into `q` than the `message-size` of any reader: those are refused";
    assert_eq!(with("256 KiB", "128 KiB"), [warning]);
}

#[test]
fn every_session_counts_against_the_budget() {
    let text = "main.memory-budget = '10 MiB'\n[peer.'app:player']\nlimits = { sessions = 20 }";
    let config = parse(text).unwrap();
    assert_eq!((config.peers[0].memory_sum(), config.memory_beside_extensions()), (10 << 20, 10 << 20));
    assert_eq!(config.beside_extensions().memory_beside_extensions(), 10 << 20);
    parse(&text.replace("'10 MiB'", "10485759")).unwrap_err();
    assert_eq!(peer("app:player").memory_sum(), 4 << 20);

    let mut endless = peer("app:player");
    endless.limits.inbox_bytes = u64::MAX;
    assert_eq!(endless.memory_sum(), u64::MAX);
}

#[test]
fn every_value_out_of_its_range_is_refused() {
    let mut wrong = peer("app:wrong");
    wrong.uid = Some(u32::MAX);
    wrong.tokens = ["a", "b", "c"].map(TokenHash::of).into();
    wrong.limits.sessions = 0;
    wrong.limits.in_flight = 65_537;
    wrong.limits.message_size = 1;
    wrong.limits.message_rate = 0;
    wrong.limits.subscriptions = 4097;
    wrong.limits.inbox_messages = 0;
    wrong.limits.inbox_bytes = 0;
    wrong.limits.request_timeout = Some(Default::default());
    wrong.limits.stall_timeout = Default::default();
    let topic: TopicPattern = "t".parse().unwrap();
    wrong.subscribes = vec![SubscribeGrant { messages: Some(0), ..topic.into() }];
    let mut large = peer("app:large");
    large.limits.message_size = 2 << 20;
    let config = Config { peers: vec![wrong, large], ..Config::default() };
    assert_golden("rust-peers-out-of-range", &config.check().unwrap_err().to_string());
}

#[test]
fn parts_that_contradict_each_other_are_refused_as_in_a_file() {
    let socket = PathBuf::from("/run/weir.sock");
    let main =
        MainConfig { peer_socket: Some(socket.clone()), control_socket: socket, ..MainConfig::default() };
    let mut a = peer("app:a");
    a.tokens = vec![TokenHash::of("a")];
    a.fulfills = vec!["a@1".parse().unwrap()];
    let mut b = a.clone();
    b.puts = vec!["no-queue".parse().unwrap()];
    let mut c = peer("app:c");
    c.tokens = a.tokens.clone();
    let mut config = Config { main, peers: vec![a, b, c], ..Config::default() };
    let store = Some("b@1".parse().unwrap());
    let queue = QueueConfig { store, when_full: QueuePolicy::DropOldest, ..QueueConfig::default() };
    config.queues.insert("q".parse().unwrap(), queue);
    assert_golden("rust-peers-contradictions", &config.check().unwrap_err().to_string());
}

#[test]
fn a_peer_is_checked_alone_as_among_others_but_for_what_only_others_can_fulfill() {
    let mut fine = peer("app:fine");
    fine.fulfills = vec!["a@1".parse().unwrap()];
    fine.puts = vec!["queue-of-another-table".parse().unwrap()];
    fine.check().unwrap();

    let mut wrong = peer("app:wrong");
    wrong.limits.sessions = 0;
    wrong.tokens = ["a", "b", "c"].map(TokenHash::of).into();
    wrong.takes = vec!["q".parse().unwrap(); 2];
    let mut contradicting = peer("app:contradicting");
    contradicting.limits.inbox_bytes = 64 << 10;
    let mut subscribing = peer("app:subscribing");
    let topic: TopicPattern = "t".parse().unwrap();
    subscribing.subscribes = vec![SubscribeGrant { messages: Some(257), ..topic.into() }];
    let errors = [wrong, contradicting, subscribing].map(|peer| peer.check().unwrap_err().to_string());
    assert_golden("rust-peers-alone", &errors.join("\n"));
}
