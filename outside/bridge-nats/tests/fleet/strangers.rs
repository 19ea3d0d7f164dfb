//! Clients of the server that are no honest bridges: they are refused, and the log says so.

use std::{path::Path, time::Duration};

use async_nats::{Client as Nats, ConnectOptions, HeaderMap};
use bytes::Bytes;
use futures_util::StreamExt;

use super::{
    contracts::LONG,
    node::{Node, Plan},
    process::until,
    server::Server,
};

/// Users as in `examples/fleet/nats.conf`: one to which nothing is given, too, and one without bounds.
const USERS: &str = r#"
authorization {
  users = [
    { user: kitchen, password: "k", permissions: {
        publish: ["weir.test.*.kitchen.>"]
        subscribe: ["weir.test.r.kitchen.>", "weir.test.n.kitchen.>"]
        allow_responses: { max: 16, expires: "1h" } } }
    { user: hall, password: "h", permissions: {
        publish: ["weir.test.*.hall.>"]
        subscribe: ["weir.test.r.hall.>", "weir.test.n.hall.>"]
        allow_responses: { max: 16, expires: "1h" } } }
    { user: cellar, password: "c", permissions: {
        publish: ["weir.test.*.cellar.>"
          "$JS.API.STREAM.INFO.weir_test_work", "$JS.API.STREAM.CREATE.weir_test_work"
          "$JS.API.CONSUMER.INFO.weir_test_work.weir", "$JS.API.CONSUMER.CREATE.weir_test_work.weir"
          "$JS.API.CONSUMER.MSG.NEXT.weir_test_work.weir", "$JS.ACK.weir_test_work.weir.>"]
        subscribe: ["weir.test.r.cellar.>", "weir.test.n.cellar.>", "weir.test.e.kitchen.told.>"
          "weir.test.c.*._.echo_v1.*", "weir.test.c.*.cellar.echo_v1.*", "weir.test.x.*.echo_v1", "$SRV.>"]
        allow_responses: { max: 16, expires: "1h" } } }
    { user: attic, password: "a", permissions: {
        publish: ["weir.test.r.attic.>", "weir.test.n.attic.>"]
        subscribe: ["weir.test.r.attic.>", "weir.test.n.attic.>"] } }
    { user: root, password: "r" }
  ]
}
"#;

/// Gives its echo to the kitchen alone, and takes the kitchen's events and jobs.
fn cellar(directory: &Path, server: &Server) -> Node {
    let plan = Plan {
        name: "cellar".to_owned(),
        main: "[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nfulfills = [\"echo@1\"]\n\
               [[extension]]\nid = \"courier\"\npath = \"courier.wasm\"\nfulfills = [\"courier@1\"]\n\
               publishes = [\"courier.received.>\"]\n[queue.work]\nmessages = 100\n"
            .to_owned(),
        app: "wants = [\"echo@1\"]\nsubscribes = [\">\"]\ntakes = [\"work\"]\n".to_owned(),
        // More than its file lets cross.
        peer: "wants = [\"echo@1\", \"courier@1\"]\npublishes = [\">\"]\nputs = [\"work\"]\n".to_owned(),
        nats: with_user(directory, "cellar", "c"),
        bridge: "[export.contracts.\"echo@1\"]\nto = [\"kitchen/settings\"]\noperations = [\"echo\"]\n\
                 [import.topics.\"told.>\"]\nfrom = [\"kitchen\"]\n[import.queues.work]\nfrom = [\"kitchen\"]\n"
            .to_owned(),
        ..Plan::default()
    };
    Node::new(directory, &plan, server.address())
}

/// Keys of `[nats]` for a user.
fn with_user(directory: &Path, user: &str, password: &str) -> String {
    let file = directory.join(format!("{user}.password"));
    std::fs::write(&file, password).unwrap();
    format!("user = \"{user}\"\npassword-file = \"{}\"\n", file.display())
}

async fn client(server: &Server, user: &str, password: &str) -> Nats {
    client_of(server, user, password, user).await
}

/// A client that says it is this node.
async fn client_of(server: &Server, user: &str, password: &str, node: &str) -> Nats {
    let options = ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned());
    options
        .custom_inbox_prefix(format!("weir.test.r.{node}.test"))
        .connect(server.address().to_string())
        .await
        .unwrap()
}

/// The headers of a call by this extension of a node.
fn of(node: &str, sender: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Weir-Node", node);
    headers.insert("Weir-Sender", sender);
    headers
}

/// As a bridge of the kitchen sends it.
fn sent_by(sender: &str) -> HeaderMap {
    of("kitchen", sender)
}

/// The error that the bridge answers a call with, or the answer itself.
async fn call(nats: &Nats, subject: &str, headers: HeaderMap) -> Result<Bytes, String> {
    let answer = nats.request_with_headers(subject.to_owned(), headers, "hello".into()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    match answer.headers.as_ref().and_then(|headers| headers.get("Weir-Error")) {
        Some(error) => Err(error.to_string()),
        None => Ok(answer.payload),
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn calls_that_are_not_granted_malformed_or_of_another_name_are_refused_and_logged() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), USERS).await;
    let mut cellar = cellar(directory.path(), &server);
    cellar.start();
    cellar.until_bridge_says("ready").await;
    let (kitchen, root) = (client(&server, "kitchen", "k").await, client(&server, "root", "r").await);
    let attic = client_of(&server, "root", "r", "attic").await;
    const ECHO: &str = "weir.test.c.kitchen._.echo_v1.echo";
    let honest = async || call(&kitchen, ECHO, sent_by("settings")).await;
    until("the extension is up", async || honest().await.ok()).await;
    assert_eq!(honest().await.unwrap(), "hello");

    let refused = [
        // Another extension, and none.
        (ECHO, "storage", "permission-denied", "`kitchen/storage` may not call `echo@1`"),
        (ECHO, "", "permission-denied", "`kitchen` may not call `echo@1`"),
        (ECHO, ">", "permission-denied", "`kitchen` may not call `echo@1`"),
        // Another operation.
        (
            "weir.test.c.kitchen._.echo_v1.shout",
            "settings",
            "permission-denied",
            "`kitchen/settings` may not call `echo@1/shout`",
        ),
        // An operation that is a wildcard, and one that is no token.
        ("weir.test.c.kitchen._.echo_v1._x3e", "settings", "permission-denied", "may not call `echo@1/>`"),
        ("weir.test.c.kitchen._.echo_v1._x2", "settings", "invalid", "a malformed subject"),
    ];
    for (subject, sender, case, logged) in refused {
        let error = call(&kitchen, subject, sent_by(sender)).await.unwrap_err();
        assert!(error.contains(case), "{subject} {sender}: {error}");
        cellar.until_bridge_says(logged).await;
    }

    // Another node, to which nothing is given. The server would refuse it, but for users without bounds.
    let error = call(&attic, "weir.test.c.attic._.echo_v1.echo", of("attic", "settings")).await.unwrap_err();
    assert!(error.contains("permission-denied"), "{error}");
    cellar.until_bridge_says("`attic/settings` may not call `echo@1`").await;
    let error = call(&attic, "weir.test.c.attic._.echo_v1.echo", sent_by("settings")).await.unwrap_err();
    assert!(error.contains("permission-denied"), "{error}");
    cellar.until_bridge_says("node `attic` claims to be `kitchen`").await;

    // A contract that the bridge could call, and does not export, has no responder.
    let error =
        call(&root, "weir.test.c.kitchen._.courier_v1.received", sent_by("settings")).await.unwrap_err();
    assert!(error.contains("no responders"), "{error}");

    // The names of the server's own subjects lead nowhere.
    for subject in ["weir.test.c.kitchen._.>", "weir.test.c.>", ">"] {
        let error = call(&root, subject, sent_by("settings")).await;
        assert!(error.is_err(), "{subject}: {error:?}");
    }
    assert_eq!(honest().await.unwrap(), "hello");
    cellar.assert_alive();
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_user_of_the_kitchen_cannot_speak_for_another_node() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), USERS).await;
    let mut cellar = cellar(directory.path(), &server);
    cellar.start();
    cellar.until_bridge_says("ready").await;
    let kitchen = client(&server, "kitchen", "k").await;
    for subject in
        ["weir.test.c.cellar._.echo_v1.echo", "weir.test.e.cellar.told.lie", "$SYS.REQ.SERVER.PING"]
    {
        kitchen.publish(subject, "lie".into()).await.unwrap();
        kitchen.flush().await.unwrap();
        let denied = format!("user:kitchen\" - Publish Violation - Subject \"{subject}\"");
        until(&denied, async || server.said().contains(&denied).then_some(())).await;
    }

    // A bridge with the kitchen's password that says it is the cellar.
    let claimed = Plan {
        name: "cellar".to_owned(),
        nats: with_user(directory.path(), "kitchen", "k"),
        bridge: "[import.contracts.\"echo@1\"]\nfrom = [\"*\"]\noperations = [\"echo\"]\n".to_owned(),
        peer: "fulfills = [\"echo@1\"]\n".to_owned(),
        app: "wants = [\"echo@1\"]\n".to_owned(),
        ..Plan::default()
    };
    let elsewhere = directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut impostor = Node::new(&elsewhere, &claimed, server.address());
    impostor.start();
    let peer = impostor.client().await.peer().await;
    impostor.until_bridge_says("ermissions").await;
    let refused = peer.call_within(Duration::from_secs(2), "echo@1", "echo", "hello").await;
    println!("the impostor's call: {refused:?}\n{}", impostor.bridge_said());
    assert!(refused.is_err(), "{refused:?}");
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn events_and_jobs_that_nobody_granted_do_not_cross() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), USERS).await;
    let mut cellar = cellar(directory.path(), &server);
    cellar.start();
    cellar.until_bridge_says("ready").await;
    let peer = cellar.client().await.peer().await;
    let mut events = peer.subscribe(">").await.unwrap();
    let root = client(&server, "root", "r").await;
    // Of another node, on another topic, and on none.
    let lies = [
        // Without a node, as an answer would come.
        "weir.test.e.kitchen.told.answer",
        "weir.test.e.attic.told.a",
        "weir.test.e.kitchen.other",
        "weir.test.e.kitchen.told.>",
        "weir.test.e.kitchen.told.*",
        "weir.test.e.kitchen",
        "weir.other.e.kitchen.told.a",
    ];
    for subject in lies {
        root.publish(subject, "lie".into()).await.unwrap();
    }
    root.publish_with_headers("weir.test.e.kitchen.told.truth", sent_by("settings"), "truth".into())
        .await
        .unwrap();
    let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await.unwrap().unwrap();
    assert_eq!(
        (&*event.topic, &*event.sender, &event.payload[..]),
        ("told.truth", "node:cellar", &b"truth"[..])
    );

    // A job of a node that the queue is not taken from. No node of this fleet exports the queue, and so makes its stream.
    let config = async_nats::jetstream::stream::Config {
        name: "weir_test_work".to_owned(),
        subjects: vec!["weir.test.q.*.work".to_owned()],
        retention: async_nats::jetstream::stream::RetentionPolicy::WorkQueue,
        discard: async_nats::jetstream::stream::DiscardPolicy::New,
        ..async_nats::jetstream::stream::Config::default()
    };
    async_nats::jetstream::new(root.clone()).create_stream(config).await.unwrap();
    let queue = peer.queue("work").unwrap();
    root.publish_with_headers("weir.test.q.attic.work", of("attic", "main"), "lie".into()).await.unwrap();
    root.publish_with_headers("weir.test.q.kitchen.work", of("kitchen", "main"), "truth".into())
        .await
        .unwrap();
    let job = tokio::time::timeout(Duration::from_secs(10), queue.take()).await.unwrap().unwrap();
    assert_eq!(&job.payload()[..], b"truth");
    job.done();
    let more = tokio::time::timeout(Duration::from_millis(500), queue.take()).await;
    assert!(more.is_err(), "{more:?}");
    println!("{}", cellar.bridge_said());
    cellar.assert_alive();
}

/// A call whose answer is to go where the caller itself may not publish.
#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn nobody_has_a_bridge_speak_in_its_name_by_asking_for_an_answer_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), USERS).await;
    let mut cellar = cellar(directory.path(), &server);
    cellar.start();
    cellar.until_bridge_says("ready").await;
    let (hall, root) = (client(&server, "hall", "h").await, client(&server, "root", "r").await);
    let mut heard = root.subscribe(">").await.unwrap();
    root.flush().await.unwrap();
    const CALL: &str = "weir.test.c.hall._.echo_v1.echo";
    let elsewhere = [
        "weir.test.e.cellar.told.lie",
        "weir.test.q.cellar.work",
        "weir.test.c.cellar.cellar.echo_v1.echo",
        "weir.test.r.kitchen.1.2",
        "weir.test.r.hall",
        "$JS.API.STREAM.DELETE.weir_test_work",
    ];
    for reply in elsewhere {
        let headers = of("hall", "settings");
        hall.publish_with_reply_and_headers(CALL, reply, headers, "lie".into()).await.unwrap();
    }
    hall.flush().await.unwrap();
    // What comes where the caller hears it is answered: after all of these.
    let error = call(&hall, CALL, of("hall", "settings")).await.unwrap_err();
    assert!(error.contains("permission-denied"), "{error}");
    let mut answers = 0;
    while let Ok(message) = tokio::time::timeout(Duration::from_millis(500), heard.next()).await {
        let message = message.unwrap();
        let subject = message.subject.as_str();
        assert!(!elsewhere.contains(&subject), "the cellar has published on `{subject}`: {message:?}");
        answers += usize::from(subject.starts_with("weir.test.r.hall."));
    }
    assert_eq!(answers, 1);
    cellar.assert_alive();
}

/// Answers of others than the node that was asked, before its own.
#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn an_answer_is_that_of_the_node_that_was_asked() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), USERS).await;
    let plan = Plan {
        name: "kitchen".to_owned(),
        app: "wants = [\"far@1\"]\n".to_owned(),
        peer: "fulfills = [\"far@1\"]\n".to_owned(),
        nats: with_user(directory.path(), "kitchen", "k"),
        bridge: "[import.contracts.\"far@1\"]\nfrom = [\"cellar\"]\noperations = [\"ask\"]\n".to_owned(),
        ..Plan::default()
    };
    let mut kitchen = Node::new(directory.path(), &plan, server.address());
    kitchen.start();
    kitchen.until_bridge_says("ready").await;
    // A user without bounds plays the cellar, and a liar before it.
    let root = client(&server, "root", "r").await;
    let mut calls = root.subscribe("weir.test.c.kitchen.cellar.far_v1.ask").await.unwrap();
    root.flush().await.unwrap();
    let provider = async {
        let call = calls.next().await.unwrap();
        let reply = call.reply.unwrap();
        root.publish(reply.clone(), "of nobody".into()).await.unwrap();
        let liar = |node: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("Weir-Node", node);
            headers
        };
        root.publish_with_headers(reply.clone(), liar("attic"), "of another".into()).await.unwrap();
        root.publish_with_headers(reply, liar("cellar"), "of the cellar".into()).await.unwrap();
        root.flush().await.unwrap();
    };
    let peer = kitchen.client().await.peer().await;
    let (answer, ()) = tokio::join!(peer.call("far@1", "ask", "?"), provider);
    assert_eq!(answer.unwrap(), "of the cellar");

    let hall = client(&server, "hall", "h").await;
    hall.publish("weir.test.r.kitchen.1.2", "lie".into()).await.unwrap();
    hall.flush().await.unwrap();
    let denied = "user:hall\" - Publish Violation - Subject \"weir.test.r.kitchen.1.2\"";
    until(denied, async || server.said().contains(denied).then_some(())).await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn what_the_server_does_not_let_a_node_publish_fails_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), USERS).await;
    let plan = Plan {
        name: "attic".to_owned(),
        main: "[queue.work]\nstore = \"store@1\"\n".to_owned(),
        app: "wants = [\"any@1\", \"cellar@1\"]\nputs = [\"work\"]\n".to_owned(),
        peer: "fulfills = [\"any@1\", \"cellar@1\", \"store@1\"]\nputs = [\"work\"]\n".to_owned(),
        bridge_main: "store = \"store@1\"".to_owned(),
        nats: with_user(directory.path(), "attic", "a"),
        bridge: "[export.queues.work]\nsenders = [\"*\"]\n\
                 [import.contracts.\"any@1\"]\nfrom = [\"*\"]\noperations = [\"ask\"]\n\
                 [import.contracts.\"cellar@1\"]\nfrom = [\"cellar\"]\noperations = [\"ask\"]\n"
            .to_owned(),
    };
    let mut attic = Node::new(directory.path(), &plan, server.address());
    attic.start();
    attic.until_bridge_says("connected to NATS").await;
    let peer = attic.client().await.peer().await;
    // Until its bridge has the connection, it says that NATS is away.
    let ask = async || Some(peer.call_within(LONG, "any@1", "ask", "").await.unwrap_err());
    let refused =
        until("the server refuses", async || ask().await.filter(|error| error.code() != "no-provider"));
    let mut errors = vec![refused.await];
    errors.push(peer.call_within(LONG, "cellar@1", "ask", "").await.unwrap_err());
    errors.push(peer.queue("work").unwrap().put_within(LONG, "").await.unwrap_err());
    for error in errors {
        assert_eq!(error.code(), "permission-denied", "{error}");
        assert!(error.to_string().contains("permissions of this node at the server of NATS"), "{error}");
    }
    attic.until_bridge_says("Publish to \"weir.test.c.attic._.any_v1.ask\"").await;
    attic.assert_alive();
}
