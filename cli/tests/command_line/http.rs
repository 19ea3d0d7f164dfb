//! The control interface on the wire.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
};

use super::support::{PUPPET, PUPPETS, Running, let_go, slow, with_own_component};

pub(super) fn get(main: &Running, route: &str) -> (String, String) {
    main.http(&format!("GET {route} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n"))
}

fn post(main: &Running, route: &str, body: &str) -> (String, String) {
    let length = body.len();
    main.http(&format!(
        "POST {route} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
}

#[test]
fn the_version_route_says_who_answers() {
    let main = Running::with("");
    let (head, body) = get(&main, "/v1/version");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(body["pid"], main.pid());
}

#[test]
fn an_answer_says_whether_it_is_json() {
    let main = Running::with(PUPPETS);
    for (payload, kind) in [
        ("echo {\"a\":[1]}", "application/json"),
        ("echo {\"a\":[1]", "application/octet-stream"),
        ("echo ", "application/octet-stream"),
    ] {
        let (head, body) = post(&main, "/v1/call/puppet@1/run", payload);
        assert!(head.contains(&format!("content-type: {kind}\r\n")), "{head}");
        assert_eq!(body, payload.strip_prefix("echo ").unwrap());
    }
}

#[test]
fn a_refusal_is_json_with_a_code_and_a_status_that_fits() {
    let main = Running::with(PUPPETS);
    let mut refusals = String::new();
    let mut refused = |what: &str, (head, body): (String, String)| {
        let status = head.lines().next().unwrap();
        refusals.push_str(&format!("{what}\n  {status}\n  {body}\n"));
    };
    for route in [
        "/",
        "/v1/nothing",
        "/v1/call/a@1/b",
        "/v1/extensions/nobody",
        "/v1/limits/nobody",
        "/v1/events",
        "/v1/events?pattern=a..b",
        "/v1/reload",
        "/v1/queues/nobodys/jobs",
        "/v1/queues/nobodys/jobs?max=many",
        "/v1/queues/nobodys/requeue",
        "/v1/peers/sessions/9/end",
    ] {
        refused(&format!("GET {route}"), get(&main, route));
    }
    for (route, body) in [
        ("/v1/version", ""),
        ("/v1/call/nobody@1/run", ""),
        ("/v1/call/puppet@1/nothing", ""),
        ("/v1/call/puppet@1/run?timout=2s", ""),
        ("/v1/call/puppet@1/run?timeout=soon", ""),
        ("/v1/call/puppet@1/run?timeout=50ms", "forget"),
        ("/v1/call/puppet@1/run", "error no"),
        ("/v1/call/spare@1/run", ""),
        ("/v1/extensions/nobody/start", ""),
        ("/v1/extensions/nobody/restart", ""),
        ("/v1/extensions/nobody/reload", ""),
        ("/v1/publish/a..b", ""),
        ("/v1/publish/a?to=nobody", ""),
        ("/v1/queues/nobodys/jobs", ""),
        ("/v1/queues/nobodys/requeue", ""),
        ("/v1/queues/nobodys/requeue?id=one", ""),
        ("/v1/peers/sessions/9/end", ""),
        ("/v1/peers/sessions/one/end", ""),
        ("/v1/call/puppet@1/run", "trap"),
    ] {
        refused(&format!("POST {route} {body}"), post(&main, route, body));
    }
    insta::with_settings!({ snapshot_path => "../golden", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("http-refusals", refusals);
    });
}

#[test]
fn an_extension_that_was_restarted_or_reloaded_is_answered_with_as_it_is_then() {
    let main = Running::with(PUPPETS);
    for (restarts, verb) in [(1, "restart"), (2, "reload")] {
        let (head, body) = post(&main, &format!("/v1/extensions/puppet/{verb}"), "");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&body["id"], &body["state"]), (&"puppet".into(), &"ready".into()));
        assert_eq!(body["restarts"], restarts);
    }
    let (head, body) = post(&main, "/v1/reload", "");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let report: serde_json::Value = serde_json::from_str(&body).unwrap();
    let none = serde_json::json!([]);
    for list in ["added", "removed", "changed", "failed", "needs-restart", "warnings"] {
        assert_eq!(report[list], none, "{list}: {body}");
    }
}

#[test]
fn a_reload_that_is_refused_says_by_its_code_what_kept_it() {
    let main = Running::start(with_own_component(PUPPET));
    let refused = |route: &str, status: &str, code: &str| {
        let (head, body) = post(&main, route, "");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(body.contains(&format!(r#""code":"{code}""#)), "{body}");
    };
    let file = main.path().join("weir.toml");
    fs::write(&file, "memroy = 1").unwrap();
    refused("/v1/reload", "422", "not-configured");
    refused("/v1/reload?all=true", "422", "not-configured");
    refused("/v1/reload?prove=true", "400", "invalid");
    refused("/v1/reload?al=true", "400", "invalid");
    fs::remove_file(&file).unwrap();
    refused("/v1/reload", "422", "not-configured");

    // The start of the new extension lasts until `let_go`.
    fs::write(&file, PUPPET.to_owned() + &slow("start")).unwrap();
    let mut first = UnixStream::connect(main.socket()).unwrap();
    first.write_all(b"POST /v1/reload HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n").unwrap();
    while !get(&main, "/v1/extensions/slow").1.contains(r#""state":"starting""#) {}
    refused("/v1/reload", "409", "reloading");
    let_go(&main);
    let mut report = String::new();
    first.read_to_string(&mut report).unwrap();
    assert!(report.contains(r#"{"added":["slow"],"#), "{report}");

    fs::write(main.path().join("puppet.wasm"), "not WebAssembly").unwrap();
    refused("/v1/extensions/puppet/reload", "409", "not-reloaded");
    refused("/v1/extensions/puppet/restart", "409", "not-started");
}

#[test]
fn limits_are_of_all_or_of_one_with_the_memory_of_all() {
    let main = Running::with(PUPPETS);
    let limits = |route: &str| -> serde_json::Value {
        let (head, body) = get(&main, route);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        serde_json::from_str(&body).unwrap()
    };
    let (all, one) = (limits("/v1/limits"), limits("/v1/limits/puppet"));
    assert_eq!(all["extensions"].as_array().unwrap().len(), 3);
    assert_eq!(one["extensions"].as_array().unwrap().len(), 1);
    assert_eq!(one["extensions"][0]["id"], "puppet");
    assert_eq!(one["memory-sum"], all["memory-sum"]);
    assert_eq!(one["fuel-per-ms"], all["fuel-per-ms"], "it is measured once");
}

#[test]
fn operations_are_counted_by_provider_with_their_durations() {
    let main = Running::with(PUPPETS);
    main.weir(&["call", "puppet@1", "run", "--raw", "echo here"]).good();
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "no such command"]).code, 7);
    let (head, body) = get(&main, "/v1/operations");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let [operation] = body["operations"].as_array().unwrap().as_slice() else { panic!("{body}") };
    assert_eq!(operation["provider"], "puppet");
    assert_eq!((&operation["contract"], &operation["operation"]), (&"puppet@1".into(), &"run".into()));
    assert_eq!(operation["failed"], serde_json::json!({ "handler": 1 }));
    let (bounds, buckets) =
        (body["bounds"].as_array().unwrap(), operation["durations"]["buckets"].as_array().unwrap());
    assert_eq!((bounds.len(), buckets.len()), (53, 54));
    assert_eq!(buckets.iter().map(|bucket| bucket.as_u64().unwrap()).sum::<u64>(), 2);
    assert!(operation["durations"]["sum"].as_f64().unwrap() > 0.0);
}

#[test]
fn jobs_are_listed_with_payloads_that_are_not_too_long() {
    let main = Running::with("[queue.jobs]\n");
    let ids: Vec<u64> = ["x".repeat(4096), "x".repeat(4097), "{\n}".to_owned()]
        .iter()
        .map(|payload| {
            let (head, body) = post(&main, "/v1/queues/jobs/jobs", payload);
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            serde_json::from_str::<serde_json::Value>(&body).unwrap()["id"].as_u64().unwrap()
        })
        .collect();
    let (_, body) = get(&main, "/v1/queues/jobs/jobs");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let jobs = body["jobs"].as_array().unwrap();
    assert_eq!(jobs.iter().map(|job| job["id"].as_u64().unwrap()).collect::<Vec<_>>(), ids);
    assert_eq!(jobs[0]["payload-text"].as_str().unwrap().len(), 4096);
    assert_eq!((&jobs[1]["bytes"], jobs[1].get("payload-text")), (&4097.into(), None));
    assert_eq!(jobs[2]["payload"], serde_json::json!({}));
    assert!(get(&main, "/v1/queues/jobs/jobs?max=1").1.contains(&format!(r#"{{"jobs":[{{"id":{},"#, ids[0])));
}

#[test]
fn streams_leave_connections_to_all_else() {
    let main = Running::with("");
    let open = || {
        let mut stream = UnixStream::connect(main.socket()).unwrap();
        stream.write_all(b"GET /v1/main-events HTTP/1.1\r\nHost: weir\r\n\r\n").unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        (stream, String::from_utf8(head.to_vec()).unwrap())
    };
    let open: Vec<_> =
        (0..64).map(|_| open()).inspect(|(_, head)| assert_eq!(head, "HTTP/1.1 200")).collect();
    let (head, body) = get(&main, "/v1/logs?follow=true");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(body.contains(r#""code":"too-many-streams""#), "{body}");
    main.weir(&["ps"]).good();
    drop(open);
    // Main notices at its next look at the connections.
    while !get(&main, "/v1/logs?follow=false").0.starts_with("HTTP/1.1 200 ") {}
}

#[test]
fn a_body_over_the_limit_is_refused_unread() {
    let main = Running::with(PUPPETS);
    let (head, body) = main.http(
        "POST /v1/call/puppet@1/run HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Length: 67108865\r\n\r\n",
    );
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert!(body.contains(r#""code":"too-large""#), "{body}");
}

#[test]
fn shutdown_is_accepted_and_answered_before_main_ends() {
    let mut main = Running::with("");
    let (head, _) = post(&main, "/v1/shutdown", "");
    assert!(head.starts_with("HTTP/1.1 202 Accepted"), "{head}");
    assert_eq!(main.wait().0.code(), Some(0));
}

#[test]
fn states_come_as_a_stream_until_the_last_one() {
    let main = Running::with(PUPPETS);
    let mut stream = UnixStream::connect(main.socket()).unwrap();
    stream.write_all(b"GET /v1/main-events HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n").unwrap();
    // The head of the answer means that the stream has begun.
    stream.read_exact(&mut [0; 12]).unwrap();
    main.weir(&["shutdown"]).good();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("content-type: application/x-ndjson\r\n"), "{rest}");
    let last = r#"{"event":"state","extension":"puppet","from":"draining","to":"stopped"}"#;
    assert!(rest.contains(last), "{rest}");
}
