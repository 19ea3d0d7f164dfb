//! The network as granted: by name or address, with the port. Only granted names are looked up.

use std::net::TcpListener;

use weir_host::Main;

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
    }
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
}
