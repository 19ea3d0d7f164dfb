//! Proofs of a name, and what a page may.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;

use crate::{
    app::App,
    support::{Response, Stage, bearer, becomes, free_port, request, token_of, upgrade},
};
use tokio::io::AsyncWriteExt;

const PAGE: &str = "http://127.0.0.1:8080";

const GATEWAY: &str = "
hosts = ['device.local']
[gateway.origins]
'app:polite' = ['http://127.0.0.1:8080', 'https://page.example']
'app:other' = ['http://other.example']
";

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']

[peer.'app:other']
tokens = ['HASH']
wants = ['echo@1']

[peer.'app:one']
tokens = ['HASH']
limits.sessions = 1
";

const RPC: &str = "/v1/peers/app:polite/rpc";

fn own_uid(file: &str) -> String {
    let uid = rustix::process::getuid().as_raw();
    format!(
        "{file}\n[peer.'app:user']\nuid = {uid}\nwants = ['echo@1']\n[peer.'app:stranger']\nuid = {}\n",
        uid + 1
    )
}

fn with(headers: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let mut all = upgrade();
    all.extend_from_slice(headers);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_or_the_user_of_a_unix_socket_proves_a_name() {
    let stage = Stage::new(GATEWAY, &own_uid(FILE)).await;
    stage.app("app:polite").await.is_served().await;
    App::open(stage.connect().await, "app:user", &[]).await.unwrap().is_served().await;
    for scheme in ["bearer", "BEARER"] {
        let header = [("Authorization", format!("{scheme}  {}", token_of("app:polite")))];
        App::open(stage.connect().await, "app:polite", &header).await.unwrap().is_served().await;
    }
    // The name in the path may be encoded.
    App::open(stage.connect().await, "app%3Apolite", &[bearer("app:polite")])
        .await
        .unwrap()
        .is_served()
        .await;
    // A token that is there counts, whoever the user is.
    let wrong = App::open(stage.connect().await, "app:user", &[bearer("app:polite")]).await;
    assert_eq!(wrong.err(), Some(401));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_proofs_are_refused_alike() {
    let stage = Stage::new(GATEWAY, &own_uid(FILE)).await;
    let long = "x".repeat(8000);
    let mut answers = Vec::new();
    for (name, token) in [
        ("app:polite", "Bearer wrong"),
        ("app:polite", "Bearer"),
        ("app:polite", "Bearer "),
        ("app:polite", "Basic eDp5"),
        ("app:polite", ""),
        ("app:polite", &format!("Bearer {}", token_of("app:other"))),
        ("app:nobody", &format!("Bearer {}", token_of("app:polite"))),
        ("app:nobody", "Bearer wrong"),
        ("app:stranger", ""),
        ("app:user", "Bearer wrong"),
        ("gateway:events", ""),
        ("main", "Bearer x"),
        ("x", "Bearer x"),
        ("%00", "Bearer x"),
        ("%0a%1b[31m", "Bearer x"),
        (&*"a".repeat(4000), "Bearer x"),
        ("app:polite", &*long),
    ] {
        let headers = match token {
            "" => upgrade(),
            token => with(&[("Authorization", token.to_owned())]),
        };
        answers.push(stage.http("GET", &format!("/v1/peers/{name}/rpc"), &headers, "").await);
        let ticket = stage
            .http("GET", &format!("/v1/peers/{name}/rpc?ticket=x"), &with(&[("Origin", PAGE.into())]), "")
            .await;
        assert!([401, 403].contains(&ticket.status), "{ticket:?}");
    }
    for answer in &answers {
        assert_eq!(answer.refusal(), (401, "denied".to_owned()));
        assert_eq!(answer.body, answers[0].body);
    }
    assert_eq!(stage.sessions(), 0);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_good_once_for_its_name_and_its_origin() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let open = async |name: &str, ticket: &str, origin: Option<&str>| {
        let headers: Vec<_> = origin.map(|origin| ("Origin", origin.to_owned())).into_iter().collect();
        App::open_at(stage.connect().await, &format!("/v1/peers/{name}/rpc?ticket={ticket}"), &headers).await
    };
    let ticket = stage.ticket("app:polite", PAGE).await;
    assert_eq!(ticket.len(), 64);
    let mut page = open("app:polite", &ticket, Some(PAGE)).await.unwrap();
    page.is_served().await;
    assert_eq!(open("app:polite", &ticket, Some(PAGE)).await.err(), Some(401));
    // Another name, no origin, another origin of the same name: and in no case a session is left over.
    let ticket = stage.ticket("app:polite", PAGE).await;
    assert_eq!(open("app:other", &ticket, Some("http://other.example")).await.err(), Some(401));
    assert_eq!(open("app:polite", &ticket, None).await.err(), Some(401));
    assert_eq!(open("app:polite", &ticket, Some("https://page.example")).await.err(), Some(401));
    assert_eq!(open("app:polite", &ticket, Some(PAGE)).await.err(), Some(401));
    stage.sessions_become(1).await;
    // A ticket does not replace the token elsewhere, nor the token a wrong ticket.
    let ticket = stage.ticket("app:polite", PAGE).await;
    let headers = [("Origin", PAGE.to_owned()), ("Content-Type", "application/json".to_owned())];
    let post = stage.http("POST", &format!("{RPC}?ticket={ticket}"), &headers, "{}").await;
    assert_eq!(post.status, 401);
    let wrong = [("Origin", PAGE.to_owned()), bearer("app:polite")];
    assert_eq!(
        App::open_at(stage.connect().await, &format!("{RPC}?ticket=x"), &wrong).await.err(),
        Some(401)
    );
    open("app:polite", &ticket, Some(PAGE)).await.unwrap().is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_count_among_the_sessions_and_need_a_page_that_may_log_in() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let headers = [bearer("app:polite"), ("Content-Type", "application/json".to_owned())];
    for (body, status, code) in [
        (json!({ "origin": "http://evil.example" }).to_string(), 403, "origin"),
        (json!({ "origin": "http://127.0.0.1:8080/" }).to_string(), 403, "origin"),
        (json!({ "origin": "null" }).to_string(), 403, "origin"),
        (json!({}).to_string(), 400, "invalid"),
        (json!({ "origin": PAGE, "more": 1 }).to_string(), 400, "invalid"),
        ("x".to_owned(), 400, "invalid"),
        (json!([PAGE]).to_string(), 400, "invalid"),
        (json!([{ "origin": PAGE }]).to_string(), 400, "invalid"),
        (json!(PAGE).to_string(), 400, "invalid"),
        (format!("{{\"{}\":1}}", "x".repeat(3000)), 400, "invalid"),
        (format!("{{\"origin\":\"{}\"}}", "x".repeat(5000)), 413, "body"),
    ] {
        let answer = stage.http("POST", "/v1/peers/app:polite/tickets", &headers, &body).await;
        assert_eq!(answer.refusal(), (status, code.to_owned()), "{body:.60}");
        assert!(answer.body.len() < 500, "{answer:?}");
    }
    assert_eq!(stage.sessions(), 0);
    for _ in 0..8 {
        stage.ticket("app:polite", PAGE).await;
    }
    let ninth = stage
        .http("POST", "/v1/peers/app:polite/tickets", &headers, &json!({ "origin": PAGE }).to_string())
        .await;
    assert_eq!(ninth.refusal(), (503, "busy".to_owned()));
    assert_eq!(
        App::open(stage.connect().await, "app:polite", &[bearer("app:polite")]).await.err(),
        Some(503)
    );
    stage.app("app:other").await.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_is_refused_whatever_it_knows() {
    let stage = Stage::new(GATEWAY, FILE).await;
    for origin in [
        "http://evil.example",
        "null",
        "",
        "http://127.0.0.1:8081",
        "http://127.0.0.1",
        "https://127.0.0.1:8080",
        "http://other.example",
        "http://127.0.0.1:8080, http://evil.example",
    ] {
        let headers = with(&[bearer("app:polite"), ("Origin", origin.to_owned())]);
        let answer = stage.http("GET", RPC, &headers, "").await;
        assert_eq!(answer.refusal(), (403, "origin".to_owned()), "{origin}");
        let headers = [
            bearer("app:polite"),
            ("Origin", origin.to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ];
        assert_eq!(stage.http("POST", RPC, &headers, "{}").await.refusal(), (403, "origin".to_owned()));
    }
    // With two headers none may slip through.
    let headers = with(&[
        bearer("app:polite"),
        ("Origin", PAGE.to_owned()),
        ("Origin", "http://evil.example".to_owned()),
    ]);
    let answer = stage.http("GET", RPC, &headers, "").await;
    assert_eq!(answer.refusal(), (403, "origin".to_owned()));
    assert!(!answer.head.contains("access-control"), "{answer:?}");
    let headers = [bearer("app:polite"), ("Origin", PAGE.to_owned())];
    App::open(stage.connect().await, "app:polite", &headers).await.unwrap().is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_resolves_to_this_machine_is_not_the_gateways() {
    let port = free_port();
    let stage = Stage::new(&format!("# listen 127.0.0.1:{port}\n{GATEWAY}"), FILE).await;
    let open = async |hosts: &[&str]| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let hosts: Vec<_> = hosts.iter().map(|host| ("Host", (*host).to_owned())).collect();
        stream.write_all(request("GET", RPC, &with(&hosts), "").as_bytes()).await.unwrap();
        Response::read(&mut stream).await.unwrap()
    };
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.2",
        "localhost.evil.example",
        "0.0.0.0",
        "",
        "[::1]",
        "2130706433",
        "127.1",
        "localhost evil",
    ] {
        let answer = open(&[host]).await;
        assert!(answer.status == 421 || answer.status == 400, "{host} {answer:?}");
    }
    assert_ne!(open(&["localhost", "evil.example"]).await.status, 401);
    let parts = stage.main.control().parts();
    let gateway = parts.iter().find(|part| part.name == "gateway").unwrap();
    assert!(gateway.refused["host"] >= 5, "{gateway:?}");
    for host in [
        "localhost",
        "LocalHost",
        &format!("localhost:{port}"),
        "127.0.0.1",
        &format!("127.0.0.1:{port}"),
        "device.local",
        "DEVICE.local:1",
    ] {
        assert_eq!(open(&[host]).await.refusal(), (401, "denied".to_owned()), "{host}");
    }
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(format!("GET {RPC} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(Response::read(&mut stream).await.unwrap().status, 421);
    // There is no user at the other end of TCP.
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    assert_eq!(App::open(stream, "app:user", &[]).await.err(), Some(401));
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    App::open(stream, "app:polite", &[bearer("app:polite")]).await.unwrap().is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_as_many_sessions_as_it_may() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let first = stage.app("app:one").await;
    let answer = stage.http("GET", "/v1/peers/app:one/rpc", &with(&[bearer("app:one")]), "").await;
    assert_eq!(answer.refusal(), (503, "busy".to_owned()));
    assert!(answer.body.contains("limits.sessions"), "{answer:?}");
    drop(first);
    stage.sessions_become(0).await;
    stage.app("app:one").await.leave().await;
    becomes(|| stage.sessions() == 0, || "sessions".to_owned()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_firebolt_app_gets_its_subprotocol_and_others_none() {
    let stage = Stage::new(GATEWAY, FILE).await;
    for (offered, selected) in
        [(Some("jsonrpc"), true), (Some("other, jsonrpc"), true), (Some("other"), false), (None, false)]
    {
        let mut headers = with(&[bearer("app:polite")]);
        headers.extend(offered.map(|offered| ("Sec-WebSocket-Protocol", offered.to_owned())));
        headers.push(("Sec-WebSocket-Extensions", "permessage-deflate".to_owned()));
        let answer = stage.http("GET", RPC, &headers, "").await;
        assert_eq!(answer.status, 101);
        assert_eq!(answer.head.contains("sec-websocket-protocol: jsonrpc"), selected, "{answer:?}");
        assert!(!answer.head.contains("sec-websocket-extensions"), "{answer:?}");
    }
    stage.sessions_become(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_that_nobody_uses_ends_after_thirty_seconds_and_its_session_with_it() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let (ticket, made) = (stage.ticket("app:polite", PAGE).await, Instant::now());
    assert_eq!(stage.sessions(), 1);
    tokio::time::sleep(Duration::from_secs(29)).await;
    let later = stage.ticket("app:polite", PAGE).await;
    becomes(|| stage.sessions() == 1, || "sessions".to_owned()).await;
    assert!(made.elapsed() >= Duration::from_secs(30));
    let open = async |ticket: &str| {
        let origin = [("Origin", PAGE.to_owned())];
        App::open_at(stage.connect().await, &format!("{RPC}?ticket={ticket}"), &origin).await
    };
    assert_eq!(open(&ticket).await.err(), Some(401));
    open(&later).await.unwrap().is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_a_unix_socket_is_not_lent_to_pages_nor_to_wrong_proofs() {
    let gateway = format!("{GATEWAY}'app:user' = ['{PAGE}']\n");
    let stage = Stage::new(&gateway, &own_uid(FILE)).await;
    for headers in [
        with(&[("Origin", PAGE.to_owned())]),
        with(&[("Authorization", "Bearer wrong".to_owned())]),
        with(&[("Authorization", "Basic eDp5".to_owned())]),
    ] {
        let answer = stage.http("GET", "/v1/peers/app:user/rpc", &headers, "").await;
        assert_eq!(answer.refusal(), (401, "denied".to_owned()));
    }
    // A page of another origin uses up the ticket that it has.
    let ticket = stage.ticket("app:polite", PAGE).await;
    for (origin, status) in [("http://evil.example", 403), (PAGE, 401)] {
        let headers = with(&[("Origin", origin.to_owned())]);
        let answer = stage.http("GET", &format!("{RPC}?ticket={ticket}"), &headers, "").await;
        assert_eq!(answer.status, status);
    }
    stage.sessions_become(0).await;
}
