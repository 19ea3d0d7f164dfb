//! Where requests go, whatever names, servers and guests say.

use std::sync::atomic::Ordering;

use http::{Response, StatusCode, header::LOCATION};
use http_body_util::{BodyExt, Full};

use super::support::*;
use weir_http::HttpError;

#[tokio::test]
async fn a_name_is_dialled_only_at_an_address_that_is_public_or_granted() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let port = server.address.port();
    for (name, addresses) in [
        ("v4.test", "127.0.0.1"),
        ("v6.test", "::1"),
        ("mapped.test", "::ffff:127.0.0.1"),
        ("any.test", "0.0.0.0"),
    ] {
        bench.names.set(name, &[&[addresses]]);
        let url = format!("http://{name}:{port}");
        let guest = bench.guest(&[grant(&url), grant_at(&url, &["private", "link-local", "shared"])]);
        let refused = guest.fetch(&url).await.unwrap_err();
        assert!(matches!(&refused, HttpError::AddressProhibited(why) if why.contains(name)), "{refused:?}");
        assert_eq!(guest.usage.http_refused.load(Ordering::Relaxed), 1);
        assert!(guest.said.lock().unwrap()[0].contains(addresses), "{name}");
    }
    assert_eq!(server.accepted(), 0);
    let url = format!("http://v4.test:{port}");
    let guest = bench.guest(&[grant_at(&url, &["loopback"])]);
    let (_, echoed) = guest.fetch(&url).await.unwrap();
    assert_eq!(echoed, format!("GET / v4.test:{port}\n"));
}

#[tokio::test]
async fn a_name_that_changes_its_answer_is_dialled_where_it_was_judged() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let url = format!("http://turns.test:{}", server.address.port());
    // Nothing answers at the first address, which is granted; the second is the device itself.
    bench.names.set("turns.test", &[&["127.0.0.9"], &["127.0.0.1"]]);
    let guest = bench.guest(&[grant_at(&url, &["127.0.0.9"])]);
    assert_eq!(guest.fetch(&url).await, Err(HttpError::ConnectionRefused));
    assert!(matches!(guest.fetch(&url).await, Err(HttpError::AddressProhibited(_))));
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn of_several_addresses_only_allowed_ones_are_tried_each_in_its_turn() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let url = format!("http://many.test:{}", server.address.port());
    bench.names.set("many.test", &[&["127.0.0.1", "127.0.0.9", "127.0.0.8"]]);
    let guest = bench.guest(&[grant_at(&url, &["127.0.0.8", "127.0.0.9"])]);
    assert_eq!(guest.fetch(&url).await, Err(HttpError::ConnectionRefused));
    assert_eq!(server.accepted(), 0);
    bench.names.set("many.test", &[&["127.0.0.9", "127.0.0.1"]]);
    let guest = bench.guest(&[grant_at(&url, &["loopback"])]);
    assert!(guest.fetch(&url).await.is_ok());
}

#[tokio::test]
async fn a_kept_connection_is_used_only_by_grants_that_allow_its_address() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let url = format!("http://kept.test:{}", server.address.port());
    bench.names.set("kept.test", &[&["127.0.0.1"]]);
    let guest = bench.guest(&[grant_at(&format!("{url}/in"), &["loopback"]), grant(&format!("{url}/out"))]);
    assert!(guest.fetch(&format!("{url}/in")).await.is_ok());
    bench.connections(1, 1).await;
    assert!(matches!(guest.fetch(&format!("{url}/out")).await, Err(HttpError::AddressProhibited(_))));
    assert!(guest.fetch(&format!("{url}/in")).await.is_ok());
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_redirect_is_the_guest_s_to_follow_and_judged_like_any_request() {
    let server = Server::new(|_| async {
        let mut answer = Response::new(Full::default().map_err(|never| match never {}).boxed());
        *answer.status_mut() = StatusCode::FOUND;
        answer.headers_mut().insert(LOCATION, "http://169.254.169.254/latest/meta-data".parse().unwrap());
        answer
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let answer = guest.get(&server.url("/")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::FOUND);
    let target = answer.headers()[LOCATION].to_str().unwrap().to_owned();
    let refused = guest.get(&target).await.unwrap_err();
    assert!(matches!(refused, HttpError::Denied(_)), "{refused:?}");
    insta::assert_snapshot!(guest.said.lock().unwrap().join("\n"), @"an HTTP request was refused: `GET http://169.254.169.254/latest/meta-data`: no entry of `grants.http` covers it (1 so far)");
}

#[tokio::test]
async fn no_guest_forges_the_host_that_a_server_sees() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let guest = bench.guest(&[grant(&server.url(""))]);
    let mut request = get(&server.url("/x"));
    for forged in ["forged.test", "second.test"] {
        request.headers_mut().append("host", forged.parse().unwrap());
    }
    let answer = guest.send(request, weir_http::Timeouts::default()).await.unwrap();
    assert_eq!(whole(answer).await.unwrap(), format!("GET /x {}\n", server.address));
    for authority in ["user@127.0.0.1", "127.0.0.1@evil.test", "2130706433", "127.1", "0x7f.0.0.1"] {
        let url = format!("http://{authority}:{}", server.address.port());
        let refused = guest.get(&url).await.unwrap_err();
        assert!(matches!(refused, HttpError::Uri(_)), "{url}: {refused:?}");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_refusal_is_said_at_the_first_and_at_each_doubling() {
    let bench = Bench::new();
    let guest = bench.guest(&[]);
    for _ in 0..100 {
        assert!(matches!(guest.get("https://a.test").await, Err(HttpError::Denied(_))));
    }
    assert_eq!(guest.usage.http_refused.load(Ordering::Relaxed), 100);
    assert_eq!(guest.said.lock().unwrap().len(), 7);
}

#[tokio::test]
async fn names_that_nobody_knows_and_ports_where_nobody_listens_are_errors() {
    let bench = Bench::new();
    bench.names.set("empty.test", &[&[]]);
    let guest =
        bench.guest(&[grant("http://unknown.test"), grant("http://empty.test"), grant("http://127.0.0.1:1")]);
    assert!(matches!(guest.fetch("http://unknown.test").await, Err(HttpError::Dns(_))));
    assert!(matches!(guest.fetch("http://empty.test").await, Err(HttpError::Dns(_))));
    assert_eq!(guest.fetch("http://127.0.0.1:1").await, Err(HttpError::ConnectionRefused));
    bench.connections(0, 0).await;
}

#[tokio::test]
async fn an_own_address_of_the_device_needs_loopback_whatever_kind_it_is() {
    // Sends nothing, and names the address that packets would come from.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let Ok(own) = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()) else {
        // Without a network there is no such address; the rule itself has a test in `admission.rs`.
        return;
    };
    let kinds = ["private", "link-local", "shared"];
    let listener = tokio::net::TcpListener::bind((own.ip(), 0)).await.unwrap();
    let bench = Bench::new();
    bench.names.set("own.test", &[&[&own.ip().to_string()]]);
    let url = format!("http://own.test:{}", listener.local_addr().unwrap().port());
    let guest = bench.guest(&[grant_at(&url, &kinds)]);
    let refused = guest.fetch(&url).await.unwrap_err();
    assert!(matches!(refused, HttpError::AddressProhibited(_)), "{refused:?}");
    assert_eq!(guest.usage.http_refused.load(Ordering::Relaxed), 1);
}
