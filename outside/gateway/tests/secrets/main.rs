//! Nothing of a token, a ticket or a payload is in a log. In a process of its own, because all of it writes to one log.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

#[path = "../gateway/app.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod app;
#[path = "../gateway/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod support;

use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::json;

use crate::{
    app::App,
    support::{Stage, bearer, token_of, upgrade},
};

const GATEWAY: &str = "[gateway.origins]\n'app:polite' = ['http://127.0.0.1:8080']";

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['>']
";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_of_any_level_has_a_secret() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut app = stage.app("app:polite").await;
    app.call("echo@1/echo", json!(["payload-of-a-person"])).await.unwrap();
    app.send("{\"payload-of-a-person").await;
    app.text().await;
    let ticket = stage.ticket("app:polite", "http://127.0.0.1:8080").await;
    for ticket in [&*ticket, "wrong-ticket"] {
        let path = format!("/v1/peers/app:polite/rpc?ticket={ticket}");
        let origin = [("Origin", "http://127.0.0.1:8080".to_owned())];
        let _opened = App::open_at(stage.connect().await, &path, &origin).await;
    }
    let mut headers = upgrade();
    headers.push(("Authorization", "Bearer wrong-token".to_owned()));
    stage.http("GET", "/v1/peers/app:polite/rpc", &headers, "").await;
    let mut stream = stage.stream("app:polite wrong-token publish a lines").await;
    stream.line().await;
    let mut stream = stage.stream(&format!("app:polite {} publish a lines", token_of("app:polite"))).await;
    stream.send(b"payload-of-a-person\n").await;
    stream.end().await;
    assert_eq!(stream.lines().await, ["ok", "done 1"]);
    app.leave().await;
    stage.works().await;
    stage.main.shutdown().await.unwrap();
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("a session begins"), "{text}");
    let (_, token) = bearer("app:polite");
    let token = token.trim_start_matches("Bearer ");
    for secret in [token, &ticket, "wrong-token", "wrong-ticket", "payload-of-a-person"] {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}
