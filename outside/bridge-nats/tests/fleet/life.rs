//! How a bridge begins, goes on without one of its sides, and ends.

use std::{fs, process::Command, time::Duration};

use tokio::{io::AsyncWriteExt, sync::watch, task::JoinSet};

use super::{
    contracts::{LONG, caller, provider, serve, start},
    node::bridge_command,
    process::until,
    server::Server,
};

/// Calls that are under way as a bridge ends.
const UNDER_WAY: usize = 64;

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn each_side_may_die_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let mut hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    let mut kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let provider = hall.client().await;
    let _tells = serve(&provider.peer().await, "hall").await;
    let client = kitchen.client().await;
    client.until_answers("t@1", "echo").await;

    server.kill();
    kitchen.until_bridge_says("NATS is away").await;
    server.start_again().await;
    client.until_answers("t@1", "echo").await;

    kitchen.kill_main();
    kitchen.start_main();
    client.until_answers("t@1", "echo").await;

    let before = provider.peer().await;
    hall.kill_main();
    let _ended = before.closed().await;
    hall.start_main();
    let _tells = serve(&provider.peer().await, "hall").await;
    client.until_answers("t@1", "echo").await;

    kitchen.kill_bridge();
    hall.kill_bridge();
    kitchen.start_bridge();
    hall.start_bridge();
    client.until_answers("t@1", "echo").await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_second_bridge_of_the_same_name_is_refused_until_the_first_one_ends() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut first = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    first.until_bridge_says(" ready").await;
    let other = directory.path().join("other");
    fs::create_dir(&other).unwrap();
    let second = start(&other, &provider("hall", "to = [\"*\"]"), &server);
    second.until_bridge_says("another bridge calls itself `hall`").await;
    first.until_bridge_says("another bridge calls itself `hall`: it is refused").await;
    assert!(!second.bridge_said().contains(" ready"));
    first.kill_bridge();
    second.until_bridge_says(" ready").await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn sigterm_at_either_side_waits_for_the_calls_under_way_and_each_has_one_answer() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    let mut kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let provider = hall.client().await.peer().await;
    let mut requests = provider.serve("t@1", &["echo"]).await.unwrap();
    for node in [&hall, &kitchen] {
        node.until_bridge_says(" ready").await;
    }
    let peer = kitchen.client().await.peer().await;
    for node in [&mut hall, &mut kitchen] {
        let mut calls = JoinSet::new();
        for call in 0..UNDER_WAY {
            let (peer, payload) = (peer.clone(), call.to_string());
            calls.spawn(async move {
                assert_eq!(peer.call_within(LONG, "t@1", "echo", payload.clone()).await.unwrap(), payload);
            });
        }
        let mut in_hand = Vec::new();
        while in_hand.len() < UNDER_WAY {
            in_hand.push(requests.next().await.unwrap());
        }
        let ended = node.end_bridge();
        let answered = async {
            // Long enough for a bridge that does not wait.
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(calls.len(), UNDER_WAY);
            for request in in_hand {
                let payload = request.payload().clone();
                request.answer(Ok(payload)).await;
            }
            while let Some(call) = calls.join_next().await {
                call.unwrap();
            }
        };
        let (code, ()) = tokio::join!(ended, answered);
        assert_eq!(code, Some(0));
        node.start_bridge();
        until("the bridge is back", async || {
            (node.bridge_said().matches(" ready").count() == 2).then_some(())
        })
        .await;
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn calls_that_outlast_the_drain_timeout_are_answered_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut plan = provider("hall", "to = [\"*\"]");
    plan.bridge.push_str("\n[limits]\ndrain-timeout = \"500ms\"\n");
    let mut hall = start(directory.path(), &plan, &server);
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let mut tells = serve(&hall.client().await.peer().await, "hall").await;
    let client = kitchen.client().await;
    client.until_answers("t@1", "echo").await;
    let peer = client.peer().await;
    let mut calls = JoinSet::new();
    for _ in 0..UNDER_WAY {
        let peer = peer.clone();
        calls.spawn(async move { peer.call_within(LONG, "t@1", "wait", "").await });
    }
    for _ in 0..UNDER_WAY {
        assert!(tells.recv().await.unwrap().starts_with("begun"));
    }
    assert_eq!(hall.end_bridge().await, Some(0));
    for call in calls.join_all().await {
        assert_eq!(call.unwrap_err().code(), "peer-gone");
    }
    // Their provider hears it, too.
    for _ in 0..UNDER_WAY {
        assert_eq!(tells.recv().await.unwrap(), "given up");
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn no_call_is_lost_while_bridges_of_a_queue_group_end_and_begin() {
    const ENDS: usize = 6;
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let [mut hall, mut attic] =
        ["hall", "attic"].map(|name| start(directory.path(), &provider(name, "to = [\"*\"]"), &server));
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let [near, far] = [hall.client().await.peer().await, attic.client().await.peer().await];
    let _tells = [serve(&near, "hall").await, serve(&far, "attic").await];
    for node in [&hall, &attic, &kitchen] {
        node.until_bridge_says(" ready").await;
    }
    let (over, is_over) = watch::channel(false);
    let (mut callers, peer) = (JoinSet::new(), kitchen.client().await.peer().await);
    for caller in 0..UNDER_WAY {
        let (peer, is_over) = (peer.clone(), is_over.clone());
        callers.spawn(async move {
            let mut calls = 0_u64;
            while !*is_over.borrow() {
                calls += 1;
                let payload = format!("{caller} {calls}");
                let answer = peer.call_within(Duration::from_secs(20), "t@1", "echo", payload.clone()).await;
                assert_eq!(answer.unwrap(), payload);
            }
            calls
        });
    }
    for ends in 0..ENDS {
        for node in [&mut hall, &mut attic] {
            assert_eq!(node.end_bridge().await, Some(0));
            node.start_bridge();
            let ready = async || (node.bridge_said().matches(" ready").count() == ends + 2).then_some(());
            until("the bridge is back", ready).await;
        }
    }
    over.send_replace(true);
    let calls: u64 = callers.join_all().await.into_iter().sum();
    println!("{calls} calls, each with its answer, while {} bridges ended", 2 * ENDS);
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_call_in_the_hand_of_a_main_that_dies_is_answered_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let mut tells = serve(&hall.client().await.peer().await, "hall").await;
    let client = kitchen.client().await;
    client.until_answers("t@1", "echo").await;
    let peer = client.peer().await;
    let call =
        tokio::spawn(async move { peer.call_within(Duration::from_secs(600), "t@1", "wait", "").await });
    assert!(tells.recv().await.unwrap().starts_with("begun"));
    hall.kill_main();
    let error = tokio::time::timeout(Duration::from_secs(20), call).await.expect("it is answered");
    assert_eq!(error.unwrap().unwrap_err().code(), "peer-gone");
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn headers_that_are_none_cost_a_connection_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    let mut kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let _tells = serve(&hall.client().await.peer().await, "hall").await;
    let client = kitchen.client().await;
    client.until_answers("t@1", "echo").await;
    let peer = client.peer().await;
    let mut stranger = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    stranger.write_all(b"CONNECT {\"verbose\":false,\"headers\":true}\r\n").await.unwrap();
    let headers: [&[u8]; 5] =
        [b"Weir-Node: a\rb", b"Weir-Node", b"\xff\xfe: x", b": x", b"Weir-Remaining: -1"];
    for header in headers {
        let mut message = b"NATS/1.0\r\n".to_vec();
        message.extend_from_slice(header);
        message.extend_from_slice(b"\r\n\r\n");
        let length = message.len();
        let line =
            format!("HPUB weir.test.c.evil._.t_v1.echo weir.test.r.evil.1 {length} {}\r\n", length + 1);
        stranger.write_all(line.as_bytes()).await.unwrap();
        stranger.write_all(&message).await.unwrap();
        stranger.write_all(b"x\r\n").await.unwrap();
        stranger.flush().await.unwrap();
        // A call that reaches the connection as it ends has no answer but its deadline.
        until("a call is answered", async || {
            peer.call_within(Duration::from_millis(500), "t@1", "echo", "").await.ok()
        })
        .await;
    }
    kitchen.assert_alive();
}

#[test]
fn a_file_with_faults_is_no_bridge() {
    let directory = tempfile::tempdir().unwrap();
    let run = |name: &str, text: Option<&str>, verb: &str| {
        let file = directory.path().join(name);
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let mut command = Command::new(bridge_command());
        let output = command.args([verb, name]).current_dir(directory.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let good =
        "node = \"hall\"\nfleet = \"home\"\nmain.socket = \"s\"\nnats.servers = [\"nats://127.0.0.1\"]\n";
    assert_eq!(run("good.toml", Some(good), "check"), (Some(0), String::new()));
    let (code, said) = run("bad.toml", Some("node = 1\n"), "run");
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: bad.toml:1:8: "), "{said}");
    let (code, said) = run("none.toml", None, "check");
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: cannot read `none.toml`: "), "{said}");
    let with_token = format!("{good}main.token-file = \"none\"\n");
    let (code, said) = run("token.toml", Some(&with_token), "check");
    assert_eq!(code, Some(1));
    assert!(said.contains("none`"), "{said}");
    let (code, _) = run("good.toml", None, "fly");
    assert_eq!(code, Some(2));
}
