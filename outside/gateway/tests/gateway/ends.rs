//! What the operator changes while apps are there.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    app::{App, code},
    support::{Response, Stage, bearer, becomes, free_port, request, soon, token_of},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use weir_host::{control::PartState, peers::SessionId};

const GATEWAY: &str = "
[gateway.alias]
'device.onNews' = { topic = 'news.now' }
";

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
subscribes = ['news.>', 'other.>']
limits.sessions = 3
";

fn session(stage: &Stage) -> SessionId {
    session_of(stage, "app:polite").unwrap()
}

fn session_of(stage: &Stage, name: &str) -> Option<SessionId> {
    let list = stage.main.peers().list();
    Some(list.iter().find(|peer| peer.name.as_str() == name)?.sessions.first()?.id)
}

/// What the gateway restarted, and whether it serves.
fn restarts(stage: &Stage) -> (u64, PartState) {
    let parts = stage.main.control().parts();
    let gateway = parts.iter().find(|part| part.name == "gateway").unwrap();
    (gateway.restarts, gateway.state)
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_end_with_their_grant_and_others_stay() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut app = stage.app("app:polite").await;
    for pattern in ["news.now", "news.*", "other.a"] {
        app.call("events.subscribe", json!({ "pattern": pattern })).await.unwrap();
    }
    app.call("device.onNews", json!({ "listen": true })).await.unwrap();
    stage.reload(&FILE.replace("'news.>', ", "")).await;
    let mut ended = Vec::new();
    for _ in 0..3 {
        let message = app.next().await;
        assert_eq!(message["method"], "events.ended");
        ended.push(message["params"]["pattern"].as_str().unwrap().to_owned());
    }
    ended.sort_unstable();
    assert_eq!(ended, ["news.*", "news.now", "news.now"]);
    assert_eq!(stage.main.client().publish("news.now", "1").await.unwrap().delivered, 0);
    assert_eq!(stage.main.client().publish("other.a", "1").await.unwrap().delivered, 1);
    assert_eq!(app.next().await["params"]["topic"], "other.a");
    assert_eq!(
        code(&app.call("events.subscribe", json!({ "pattern": "news.now" })).await),
        (-32011, "permission-denied")
    );
    // And again.
    stage.reload(FILE).await;
    app.call("events.subscribe", json!({ "pattern": "news.now" })).await.unwrap();
    stage.main.client().publish("news.now", "2").await.unwrap();
    assert_eq!(app.next().await["params"]["payload"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_no_longer_granted_is_denied_from_then_on() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    app.is_served().await;
    stage.reload(&FILE.replace("wants = ['echo@1']", "wants = ['echo@1/sender']")).await;
    assert_eq!(code(&app.call("echo@1/echo", json!([])).await), (-32601, "permission-denied"));
    assert_eq!(app.call("echo@1/sender", json!([])).await, Ok(json!("app:polite")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_told_why_the_operator_ends_its_session() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    app.ask("echo@1/never", json!([])).await;
    assert!(stage.main.peers().end(session(&stage)));
    assert_eq!(app.closed().await, (4002, "ended".to_owned()));
    for changed in [FILE.replace("'HASH'", ""), String::new()] {
        stage.reload(FILE).await;
        let mut app = stage.app("app:polite").await;
        app.ask("echo@1/never", json!([])).await;
        stage.reload(&changed.replace("tokens = []", "uid = 4294967294")).await;
        assert_eq!(app.closed().await, (4001, "revoked".to_owned()));
        becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    }
    stage.reload(FILE).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_under_way_ends_with_its_session() {
    let stage = Stage::new("", FILE).await;
    let mut stream = stage.connect().await;
    let headers = [bearer("app:polite"), ("Content-Type", "application/json".to_owned())];
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/never", "weir": { "timeout-ms": 60_000 } })
            .to_string();
    let text = request("POST", "/v1/peers/app:polite/rpc", &headers, &body);
    stream.write_all(text.as_bytes()).await.unwrap();
    becomes(|| stage.main.client().waiters() == 1, || "waiters".to_owned()).await;
    assert!(stage.main.peers().end(session(&stage)));
    let answer = tokio::time::timeout(Duration::from_secs(2), Response::read(&mut stream)).await;
    let answer = answer.unwrap().unwrap();
    assert_ne!(answer.status, 204, "{answer:?}");
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_ends_with_its_token() {
    let gateway = "[gateway.origins]\n'app:polite' = ['http://127.0.0.1:8080']";
    let stage = Stage::new(gateway, FILE).await;
    let ticket = stage.ticket("app:polite", "http://127.0.0.1:8080").await;
    stage.reload(&FILE.replace("tokens = ['HASH']", "uid = 4294967294")).await;
    let origin = [("Origin", "http://127.0.0.1:8080".to_owned())];
    let path = format!("/v1/peers/app:polite/rpc?ticket={ticket}");
    match App::open_at(stage.connect().await, &path, &origin).await {
        Ok(mut app) => assert_eq!(app.closed().await.0, 4001),
        Err(status) => assert_eq!(status, 401),
    }
    becomes(|| stage.sessions() == 0, || "sessions".to_owned()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn main_stops_with_a_word_to_each_app_and_without_delay() {
    let stage = Stage::new("[gateway.origins]\n'app:polite' = ['http://127.0.0.1:8080']", FILE).await;
    let (mut app, mut silent) = (stage.app("app:polite").await, stage.connect().await);
    stage.ticket("app:polite", "http://127.0.0.1:8080").await;
    app.ask("echo@1/never", json!([])).await;
    let mut half = stage.connect().await;
    half.write_all(b"POST /v1/peers/app:polite/rpc HTTP/1.1\r\n").await.unwrap();
    let mut kept = stage.connect().await;
    let headers = [bearer("app:polite"), ("Content-Type", "application/json".to_owned())];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/empty" }).to_string();
    kept.write_all(request("POST", "/v1/peers/app:polite/rpc", &headers, &body).as_bytes()).await.unwrap();
    assert_eq!(Response::read(&mut kept).await.unwrap().json()["result"], Value::Null);
    let mut under_way = stage.connect().await;
    let body = body.replace("empty", "never");
    under_way
        .write_all(request("POST", "/v1/peers/app:polite/rpc", &headers, &body).as_bytes())
        .await
        .unwrap();
    becomes(|| stage.main.client().waiters() == 2, || "waiters".to_owned()).await;
    let began = std::time::Instant::now();
    let (stopped, closed) = tokio::join!(soon(stage.main.shutdown()), app.closed());
    stopped.unwrap();
    assert_eq!(closed, (1001, "stopping".to_owned()));
    for stream in [&mut silent, &mut half, &mut kept] {
        assert!(Response::read(stream).await.is_none());
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_main_ends_the_session_of_the_gateway_or_changes_its_grants() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    app.call("events.subscribe", json!({ "pattern": "news.now" })).await.unwrap();
    assert!(!stage.main.peers().end(session_of(&stage, "gateway:events").unwrap()));
    let name = "gateway:events".parse().unwrap();
    let opened = stage.main.peers().open_with(weir_host::peers::PeerConfig::new(name));
    assert_eq!(opened.unwrap_err().to_string(), "`gateway:events` is a part of Main");
    stage.main.client().publish("news.now", "1").await.unwrap();
    assert_eq!(app.next().await["params"]["payload"], 1);
    assert_eq!(restarts(&stage), (0, PartState::Serving));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_ends_starts_again_on_its_addresses_and_it_shows() {
    let stage = Stage::new("", FILE).await;
    let _lost = stage.app("app:polite").await;
    for end in 1..=2 {
        let hub = || session_of(&stage, "gateway:events");
        becomes(|| hub().is_some(), || "no session".to_owned()).await;
        assert!(stage.main.peers().end_any(hub().unwrap()));
        becomes(|| restarts(&stage) == (end, PartState::Serving), || format!("{:?}", restarts(&stage))).await;
    }
    stage.sessions_become(0).await;
    let parts = stage.main.control().parts();
    let gateway = parts.iter().find(|part| part.name == "gateway").unwrap();
    assert_eq!(gateway.reason.as_deref(), Some("its session `gateway:events` has ended"));
    // Connections wait for it.
    let mut app = stage.app("app:polite").await;
    app.call("events.subscribe", json!({ "pattern": "news.now" })).await.unwrap();
    stage.main.client().publish("news.now", "1").await.unwrap();
    assert_eq!(app.next().await["params"]["payload"], 1);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_app_is_told_that_the_gateway_starts_again() {
    let file = FILE.replace("wants", "publishes = ['news.>']\nwants");
    let stage = Stage::new("", &file).await;
    let mut app = stage.app("app:polite").await;
    app.ask("echo@1/never", json!([])).await;
    let mut says =
        stage.stream(&format!("app:polite {} publish news.now lines", token_of("app:polite"))).await;
    assert_eq!(says.line().await.as_deref(), Some("ok"));
    let (mut silent, mut posts) = (stage.connect().await, stage.connect().await);
    let headers = [bearer("app:polite"), ("Content-Type", "application/json".to_owned())];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/never" }).to_string();
    posts.write_all(request("POST", "/v1/peers/app:polite/rpc", &headers, &body).as_bytes()).await.unwrap();
    becomes(|| stage.main.client().waiters() == 2, || "waiters".to_owned()).await;
    assert!(stage.main.peers().end_any(session_of(&stage, "gateway:events").unwrap()));
    assert_eq!(app.closed().await, (1012, "restarting".to_owned()));
    assert_eq!(says.lines().await, ["error restarting the gateway starts again"]);
    assert_eq!(Response::read(&mut posts).await.unwrap().refusal(), (503, "restarting".to_owned()));
    assert!(Response::read(&mut silent).await.is_none());
    becomes(|| restarts(&stage) == (1, PartState::Serving), || format!("{:?}", restarts(&stage))).await;
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_closes_the_connection_as_soon_as_the_app_answers_its_close_frame() {
    let stage = Stage::new("", FILE).await;
    // A busy machine may be late now and then, not always.
    let mut took = Vec::new();
    for _ in 0..5 {
        let mut app = stage.app("app:polite").await;
        assert!(stage.main.peers().end(session(&stage)));
        let began = Instant::now();
        // The client sends its answer, and waits for the server's end as it must.
        assert_eq!(app.closed().await, (4002, "ended".to_owned()));
        assert!(soon(futures_util::StreamExt::next(&mut app.socket)).await.is_none_or(|end| end.is_err()));
        took.push(began.elapsed());
    }
    assert!(took.iter().any(|took| *took < Duration::from_millis(100)), "{took:?}");
}

const STALLS: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
limits.stall-timeout = '1s'
limits.in-flight = 256
";

/// Asks for answers, and reads them after the end of its session and of Main.
async fn stalls<S: AsyncRead + AsyncWrite + Unpin>(stage: Stage, mut app: App<S>) {
    let asking = async {
        for _ in 0..1000 {
            app.ask("echo@1/big", json!([])).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = asking => {}
        () = stage.sessions_become(0) => {}
    }
    soon(stage.main.shutdown()).await.unwrap();
    assert_eq!(app.closed().await, (4003, "stalled".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_read_nothing_for_too_long_finds_the_reason_where_it_reads_again() {
    let on_unix = async {
        let stage = Stage::new("", STALLS).await;
        let app = stage.app("app:polite").await;
        stalls(stage, app).await;
    };
    let on_tcp = async {
        let port = free_port();
        let stage = Stage::new(&format!("# listen 127.0.0.1:{port}"), STALLS).await;
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let app = App::open(stream, "app:polite", &[bearer("app:polite")]).await.unwrap();
        stalls(stage, app).await;
    };
    tokio::join!(on_unix, on_tcp);
}
