//! The network as granted: by name or address, with the port. Only granted names are looked up.

use std::{net::TcpListener, sync::Arc};

use weir_host::{
    Main,
    logs::{Level, LogLine, Source},
};

use super::support::{puppet_with, start, tell};

async fn with_grant(grant: String) -> Main {
    start(vec![puppet_with("a", |a| a.grants.net = vec![grant.parse().unwrap()])]).await
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn a_granted_name_is_looked_up_and_connected_to() {
    let (_listener, port) = listener();
    let main = with_grant(format!("localhost:{port}")).await;
    assert_eq!(tell(&main, "a", &format!("connect localhost:{port}")).await.unwrap(), "connected");
    assert_eq!(tell(&main, "a", &format!("connect LocalHost:{port}")).await.unwrap(), "connected");
}

#[tokio::test]
async fn a_name_that_was_not_granted_is_not_looked_up() {
    let (_listener, port) = listener();
    for grant in [format!("127.0.0.1:{port}"), format!("elsewhere.invalid:{port}")] {
        let main = with_grant(grant.clone()).await;
        let refused = tell(&main, "a", &format!("connect localhost:{port}")).await.unwrap_err();
        assert_eq!(refused, "PermissionDenied", "{grant}");
        said(&main, "looking up `localhost` was refused: no entry of `grants.net` has this name (1 so far)");
    }
}

/// Whether the log says so, as a warning to the operator.
#[track_caller]
fn said(main: &Main, text: &str) {
    let logs = main.control().logs();
    let is_said = |line: &&Arc<LogLine>| line.source == Source::Main && line.level == Level::Warn;
    let said: Vec<_> = logs.iter().filter(is_said).map(|line| &*line.message).collect();
    assert!(said.contains(&text), "{text}: {said:?}");
}

#[tokio::test]
async fn only_the_granted_address_and_port_are_connected_to() {
    let (_listener, port) = listener();
    let (_other, other_port) = listener();
    let main = with_grant(format!("127.0.0.1:{port}")).await;
    assert_eq!(tell(&main, "a", &format!("connect 127.0.0.1:{port}")).await.unwrap(), "connected");
    for address in [format!("127.0.0.1:{other_port}"), format!("127.0.0.2:{port}")] {
        let refused = tell(&main, "a", &format!("connect {address}")).await.unwrap_err();
        assert_eq!(refused, "PermissionDenied", "{address}");
    }
    // Ever more rarely: the first, the second, the fourth.
    let no_entry = "was refused: no entry of `grants.net` is for it";
    said(&main, &format!("TCP to `127.0.0.1:{other_port}` {no_entry} (1 so far)"));
    said(&main, &format!("TCP to `127.0.0.2:{port}` {no_entry} (2 so far)"));
    for _ in 0..3 {
        tell(&main, "a", &format!("connect 127.0.0.3:{port}")).await.unwrap_err();
    }
    said(&main, &format!("TCP to `127.0.0.3:{port}` {no_entry} (4 so far)"));
    let count = main.control().logs().iter().filter(|line| line.message.contains(no_entry)).count();
    assert_eq!(count, 3, "each refusal is a line");
}

#[tokio::test]
async fn without_a_grant_the_log_says_which_key_there_is() {
    let main = start(vec![puppet_with("a", |_| {})]).await;
    tell(&main, "a", "connect 127.0.0.1:9").await.unwrap_err();
    said(&main, "TCP was refused: `grants.net` has no entry for TCP (1 so far)");
}
