//! Calls that cross: values, errors, deadlines, who may, and who answers.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use async_nats::service::{Info, PingResponse, Stats};
use futures_util::StreamExt;
use weir_peer::{Error, HandlerError, Peer};

use super::{
    node::{Node, Plan},
    process::until,
    server::Server,
};

/// What "at once" is on a busy machine.
pub(super) const AT_ONCE: Duration = Duration::from_secs(2);

/// Longer than any test.
pub(super) const LONG: Duration = Duration::from_secs(120);

/// A node whose test serves `t@1`, and exports it.
pub(super) fn provider(name: &str, export: &str) -> Plan {
    Plan {
        name: name.to_owned(),
        app: "fulfills = [\"t@1\"]".to_owned(),
        peer: "wants = [\"t@1\"]".to_owned(),
        bridge: format!("[export]\ncontracts.\"t@1\" = {{ {export} }}"),
        ..Plan::default()
    }
}

/// A node that imports `t@1`.
pub(super) fn caller(name: &str, import: &str) -> Plan {
    Plan {
        name: name.to_owned(),
        app: "wants = [\"t@1\"]".to_owned(),
        peer: "fulfills = [\"t@1\"]".to_owned(),
        bridge: format!(
            "[import]\ncontracts.\"t@1\" = {{ operations = [\"echo\", \"fail\", \"wait\", \"who\"], {import} }}"
        ),
        ..Plan::default()
    }
}

pub(super) fn start(directory: &Path, plan: &Plan, server: &Server) -> Node {
    let mut node = Node::new(directory, plan, server.address());
    node.start();
    node
}

/// Serves `t@1`: `echo`, an error that the payload names, a wait whose end it tells, and its own name.
pub(super) async fn serve(peer: &Peer, name: &'static str) -> tokio::sync::mpsc::Receiver<String> {
    let mut requests = peer.serve("t@1", &["echo", "fail", "wait", "who"]).await.unwrap();
    let (told, tells) = tokio::sync::mpsc::channel(64);
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let told = told.clone();
            tokio::spawn(async move {
                match request.operation() {
                    "fail" => {
                        let code = String::from_utf8(request.payload().to_vec()).unwrap();
                        let error = HandlerError::new(code, "line one\nline two é");
                        request.answer(Err::<&[u8], _>(error)).await;
                    }
                    "wait" => {
                        let remaining = request.remaining();
                        told.send(format!("begun {} {}", request.sender(), remaining.as_millis()))
                            .await
                            .unwrap();
                        request.given_up().await;
                        told.send("given up".to_owned()).await.unwrap();
                    }
                    "who" => request.answer(Ok(name)).await,
                    _ => {
                        let payload = request.payload().clone();
                        request.answer(Ok(payload)).await;
                    }
                }
            });
        }
    });
    tells
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_call_has_the_providers_answer_or_its_error() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &provider("hall", "to = [\"kitchen/app:test\"]"), &server);
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let provider = hall.client().await.peer().await;
    let _tells = serve(&provider, "hall").await;
    let client = kitchen.client().await;
    client.until_answers("t@1", "echo").await;
    let peer = client.peer().await;

    for payload in [vec![], vec![0, 255, 10, 13], vec![b'x'; 200_000]] {
        assert_eq!(peer.call("t@1", "echo", payload.clone()).await.unwrap(), payload);
    }
    let error = peer.call("t@1", "fail", "not-found").await.unwrap_err();
    assert_eq!(error, Error::handler("not-found", "line one\nline two é"));
    // An operation that the bridge does not offer is known here, and another one there.
    let error = peer.call("t@1", "other", "").await.unwrap_err();
    assert_eq!(error.case(), "invalid", "{error}");
    // 256 KiB are the limit of each session.
    let error = peer.call("t@1", "echo", vec![0; 300_000]).await.unwrap_err();
    assert_eq!(error.case(), "too-large", "{error}");
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn the_callers_deadline_and_its_leave_reach_the_provider() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"hall\"]"), &server);
    let provider = hall.client().await.peer().await;
    let mut tells = serve(&provider, "hall").await;
    let client = kitchen.client().await;
    client.until_answers("t@1", "echo").await;
    let peer = client.peer().await;

    // 15 s: more than the ten after which the client of NATS would give up by itself.
    let begun = Instant::now();
    let long = tokio::spawn({
        let peer = peer.clone();
        async move { peer.call_within(Duration::from_secs(15), "t@1", "wait", "").await }
    });
    let told = tells.recv().await.unwrap();
    let (sender, remaining) = told.strip_prefix("begun ").unwrap().split_once(' ').unwrap();
    assert_eq!(sender, "node:hall");
    let remaining: u64 = remaining.parse().unwrap();
    assert!((10_000..15_000).contains(&remaining), "{remaining}");

    let short = peer.call_within(Duration::from_millis(300), "t@1", "wait", "").await;
    assert_eq!(short.unwrap_err(), Error::Timeout);
    assert!(tells.recv().await.unwrap().starts_with("begun"));
    assert_eq!(tells.recv().await.unwrap(), "given up");

    // One that leaves long before its deadline.
    let leaving = peer.call_within(LONG, "t@1", "wait", "");
    let told = tokio::select! {
        _ = leaving => None,
        told = tells.recv() => told,
    };
    assert!(told.unwrap().starts_with("begun"));
    let left = Instant::now();
    assert_eq!(tells.recv().await.unwrap(), "given up");
    assert!(left.elapsed() < AT_ONCE, "{:?}", left.elapsed());

    assert_eq!(long.await.unwrap().unwrap_err(), Error::Timeout);
    assert!(begun.elapsed() >= Duration::from_secs(15));
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn without_a_provider_there_is_an_error_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    kitchen.until_bridge_says(" ready").await;
    let peer = kitchen.client().await.peer().await;
    let ask = async |text: &str| {
        let begun = Instant::now();
        let error = peer.call_within(LONG, "t@1", "echo", "").await.unwrap_err();
        assert_eq!(error.code(), "no-provider", "{error}");
        assert!(error.to_string().contains(text), "{error}");
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    };
    ask("no node serves `t@1`").await;
    // A node exports it, and nothing there serves it.
    let hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    hall.until_bridge_says(" ready").await;
    ask("`app:test`").await;
    server.kill();
    kitchen.until_bridge_says("NATS is away").await;
    ask("NATS is away").await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_caller_that_the_provider_does_not_list_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let lists = "to = [\"attic\", \"kitchen/settings\"], operations = [\"echo\"]";
    let hall = start(directory.path(), &provider("hall", lists), &server);
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"hall\"]"), &server);
    let attic = start(directory.path(), &caller("attic", "from = [\"hall\"]"), &server);
    let provider = hall.client().await.peer().await;
    let _tells = serve(&provider, "hall").await;
    let client = attic.client().await;
    client.until_answers("t@1", "echo").await;
    let error = client.peer().await.call("t@1", "who", "").await.unwrap_err();
    assert_eq!(error.code(), "permission-denied", "{error}");
    kitchen.until_bridge_says(" ready").await;
    let error = kitchen.client().await.peer().await.call("t@1", "echo", "").await.unwrap_err();
    assert_eq!(error.code(), "permission-denied", "{error}");
    assert!(error.to_string().contains("`hall` does not export `t@1` to `kitchen/app:test`"), "{error}");
    hall.until_bridge_says("`kitchen/app:test` may not call `t@1`").await;
    hall.until_bridge_says("`attic/app:test` may not call `t@1/who`").await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn what_is_over_the_limit_of_the_providers_bridge_is_overloaded_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut plan = provider("hall", "to = [\"*\"]");
    plan.bridge.push_str("\n[limits]\nserved = 1");
    let hall = start(directory.path(), &plan, &server);
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"hall\"]"), &server);
    let provider = hall.client().await.peer().await;
    let mut tells = serve(&provider, "hall").await;
    let client = kitchen.client().await;
    client.until_answers("t@1", "echo").await;
    let peer = client.peer().await;
    let waits = tokio::spawn({
        let peer = peer.clone();
        async move { peer.call_within(LONG, "t@1", "wait", "").await }
    });
    assert!(tells.recv().await.unwrap().starts_with("begun"));
    let begun = Instant::now();
    let error = peer.call_within(LONG, "t@1", "echo", "").await.unwrap_err();
    assert_eq!(error.code(), "overloaded", "{error}");
    assert!(begun.elapsed() < AT_ONCE);
    waits.abort();
    assert_eq!(tells.recv().await.unwrap(), "given up");
    client.until_answers("t@1", "echo").await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn the_nearest_provider_answers_and_the_next_one_when_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    let attic = start(directory.path(), &provider("attic", "to = [\"*\"]"), &server);
    // The cellar has one of its own, and prefers it.
    let mut plan = provider("cellar", "to = [\"*\"]");
    plan.app.push_str("\nwants = [\"near@1\"]");
    plan.peer.push_str("\nfulfills = [\"near@1\"]");
    plan.bridge.push_str(
        "\n[import]\ncontracts.\"t@1\" = { from = [\"hall\", \"attic\"], operations = [\"who\"], as = \"near@1\" }",
    );
    let cellar = start(directory.path(), &plan, &server);
    let providers = [hall.client().await.peer().await, attic.client().await.peer().await];
    let _tells = [serve(&providers[0], "hall").await, serve(&providers[1], "attic").await];
    for node in [&hall, &attic, &cellar] {
        node.until_bridge_says(" ready").await;
    }
    let client = cellar.client().await;
    let peer = client.peer().await;
    let who =
        async || peer.call("near@1", "who", "").await.map(|name| String::from_utf8(name.to_vec()).unwrap());
    // Nothing serves here yet.
    assert_eq!(who().await.unwrap(), "hall");
    let own =
        Peer::connect(cellar.socket(), weir_peer::Options::new("app:test".parse().unwrap())).await.unwrap();
    let _own = serve(&own, "cellar").await;
    assert_eq!(who().await.unwrap(), "cellar");
    let _left = own.leave().await;
    until("the cellar's own is gone", async || (who().await.ok()? == "hall").then_some(())).await;
    hall.kill_bridge();
    until("the attic answers", async || (who().await.ok()? == "attic").then_some(())).await;
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn nodes_that_export_a_contract_share_its_calls() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let nodes =
        ["hall", "attic"].map(|name| start(directory.path(), &provider(name, "to = [\"*\"]"), &server));
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let hall = nodes[0].client().await.peer().await;
    let attic = nodes[1].client().await.peer().await;
    let _tells = [serve(&hall, "hall").await, serve(&attic, "attic").await];
    for node in nodes.iter().chain([&kitchen]) {
        node.until_bridge_says(" ready").await;
    }
    let peer = kitchen.client().await.peer().await;
    let mut answers = std::collections::BTreeMap::<_, u32>::new();
    for _ in 0..200 {
        *answers.entry(peer.call("t@1", "who", "").await.unwrap()).or_default() += 1;
    }
    assert!(answers.len() == 2 && answers.values().all(|count| *count > 20), "{answers:?}");
}

/// How many calls to any node a node has answered, as the services API says it.
async fn shared_calls(nats: &async_nats::Client, node: &str) -> usize {
    let mut stats = services(nats, "$SRV.STATS.t_v1").await.into_iter();
    let stats = stats.find_map(|stats| {
        let stats: Stats = serde_json::from_slice(&stats).unwrap();
        let [any, own] = &stats.endpoints[..] else { panic!("{:?}", stats.endpoints) };
        (own.name == node).then_some(any.requests)
    });
    stats.unwrap()
}

/// All answers to a question of the services API.
async fn services(nats: &async_nats::Client, question: &str) -> Vec<bytes::Bytes> {
    let inbox = nats.new_inbox();
    let mut answers = nats.subscribe(inbox.clone()).await.unwrap();
    nats.publish_with_reply(question.to_owned(), inbox, "".into()).await.unwrap();
    let mut all = Vec::new();
    while let Ok(Some(answer)) = tokio::time::timeout(Duration::from_millis(500), answers.next()).await {
        all.push(answer.payload);
    }
    all
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn exported_contracts_are_services_of_nats() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &provider("hall", "to = [\"*\"]"), &server);
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let _tells = serve(&hall.client().await.peer().await, "hall").await;
    for node in [&hall, &kitchen] {
        node.until_bridge_says(" ready").await;
    }
    let peer = kitchen.client().await.peer().await;
    for _ in 0..3 {
        peer.call("t@1", "echo", "").await.unwrap();
    }
    peer.call("t@1", "fail", "own").await.unwrap_err();

    let nats = async_nats::connect(server.address().to_string()).await.unwrap();
    let [ping] = &services(&nats, "$SRV.PING").await[..] else { panic!("not one service") };
    let ping: PingResponse = serde_json::from_slice(ping).unwrap();
    assert_eq!((&*ping.kind, &*ping.name), ("io.nats.micro.v1.ping_response", "t_v1"));
    assert_eq!(ping.metadata["weir-contract"], "t@1");
    let [info] = &services(&nats, "$SRV.INFO.t_v1").await[..] else { panic!("not one service") };
    let info: Info = serde_json::from_slice(info).unwrap();
    assert_eq!((&*info.kind, &*info.version), ("io.nats.micro.v1.info_response", "1.0.0"));
    let endpoints: Vec<_> =
        info.endpoints.iter().map(|endpoint| (&*endpoint.name, &*endpoint.subject)).collect();
    assert_eq!(endpoints, [("any", "weir.test.c.*._.t_v1.*"), ("hall", "weir.test.c.*.hall.t_v1.*")]);
    let question = format!("$SRV.STATS.t_v1.{}", ping.id);
    let [stats] = &services(&nats, &question).await[..] else { panic!("not one service") };
    let stats: Stats = serde_json::from_slice(stats).unwrap();
    let any = &stats.endpoints[0];
    assert_eq!((any.requests, any.errors), (4, 1));
    assert!(any.average_processing_time > Duration::ZERO);
    assert_eq!(any.last_error.as_ref().unwrap().status, "handler");
    for other in ["$SRV.PING.u_v1", "$SRV.INFO.t_v1.1", "$SRV.SCHEMA", "$SRV.PING.t_v1.1.2"] {
        assert_eq!(services(&nats, other).await.len(), 0, "{other}");
    }

    // A user that may ask, and no more, would purge the stream by the answer, where the server is not strict about JSON.
    let config = async_nats::jetstream::stream::Config {
        name: "kept".to_owned(),
        ..async_nats::jetstream::stream::Config::default()
    };
    let context = async_nats::jetstream::new(nats.clone());
    context.create_stream(config).await.unwrap();
    context.publish("kept", "".into()).await.unwrap().await.unwrap();
    nats.publish_with_reply("$SRV.PING", "$JS.API.STREAM.PURGE.kept", "".into()).await.unwrap();
    hall.until_bridge_says("refuses to answer a question for services at `$JS.API.STREAM.PURGE.kept`").await;
    assert_eq!(server.stored().await, 1);
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_node_without_a_provider_leaves_its_share_to_the_others_until_it_has_one() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let [hall, attic] =
        ["hall", "attic"].map(|name| start(directory.path(), &provider(name, "to = [\"*\"]"), &server));
    let kitchen = start(directory.path(), &caller("kitchen", "from = [\"*\"]"), &server);
    let _tells = serve(&hall.client().await.peer().await, "hall").await;
    for node in [&hall, &attic, &kitchen] {
        node.until_bridge_says(" ready").await;
    }
    let nats = async_nats::connect(server.address().to_string()).await.unwrap();
    let peer = kitchen.client().await.peer().await;
    let who = async || peer.call("t@1", "who", "").await.unwrap();
    let all_answer = async || {
        for _ in 0..200 {
            assert_eq!(who().await, "hall");
        }
    };
    all_answer().await;
    // The first one of the attic's share finds nobody there, and is asked of the hall.
    assert_eq!(shared_calls(&nats, "attic").await, 1);
    assert!(attic.bridge_said().contains("other nodes get the calls of `t@1`"));
    let provider = attic.client().await.peer().await;
    let _tells = serve(&provider, "attic").await;
    until("the attic has a share", async || (who().await == "attic").then_some(())).await;
    // Gone again.
    let _left = provider.leave().await;
    let before = shared_calls(&nats, "attic").await;
    all_answer().await;
    assert_eq!(shared_calls(&nats, "attic").await, before + 1);
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn every_error_and_the_trace_of_a_call_cross() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let recorded = |plan: Plan| Plan { main: "trace-one-in = 1".to_owned(), ..plan };
    let hall = start(directory.path(), &recorded(provider("hall", "to = [\"*\"]")), &server);
    let kitchen = start(directory.path(), &recorded(caller("kitchen", "from = [\"hall\"]")), &server);
    let provider = hall.client().await.peer().await;
    let mut requests = provider.serve("t@1", &["echo"]).await.unwrap();
    hall.until_bridge_says(" ready").await;
    kitchen.until_bridge_says(" ready").await;
    let peer = kitchen.client().await.peer().await;

    let span: weir_peer::TraceContext =
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
    let part = peer.part_of(Some(span));
    let (answered, traced) = tokio::join!(part.call("t@1", "echo", ""), async {
        let request = requests.next().await.unwrap();
        let traced = request.trace().expect("the call is recorded");
        request.answer(Ok("")).await;
        traced
    });
    answered.unwrap();
    assert_eq!(traced.trace, span.trace);

    let errors = [
        Error::PermissionDenied("`wants` does not list `a@1`".into()),
        Error::UnknownContract("a@1".into()),
        Error::Overloaded("inbox of `a`".into()),
        Error::PeerGone,
        Error::Trapped,
        Error::LimitExceeded { name: "subscriptions".into(), used: 65, allowed: 64 },
        Error::WouldDeadlock(vec!["a".into(), "app:b".into(), "a".into()]),
        Error::TooLarge { bytes: 3, allowed: 2 },
        Error::Invalid("two\nlines é".into()),
        Error::NotReady("moves its files".into()),
        Error::NoProvider("is away".into()),
        Error::handler("own", "its own"),
    ];
    for error in errors {
        let (answered, ()) = tokio::join!(peer.call("t@1", "echo", ""), async {
            requests.next().await.unwrap().refuse(error.clone()).await;
        });
        assert_eq!(answered.unwrap_err(), error);
    }
}
