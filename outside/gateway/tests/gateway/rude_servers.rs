//! Servers that use `wasi:http` as it is not meant to be used, and those that fail or ask themselves.

use std::{fs, net::TcpListener};

use weir_host::control::{ExtensionState, Standing, VersionsStatus};

use crate::{
    servers::{Asks, nothing_runs},
    support::{Stage, becomes},
};

/// A Main with this guest at `/`, open to anybody. `gateway` is added to the table of the gateway, and `more` to that of the
/// extension.
async fn stage(guest: &str, gateway: &str, more: &str) -> Stage {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(test_guests::path(guest), dir.path().join("server.wasm")).unwrap();
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    let text = format!(
        "# main cache-dir = '{cache}'\n# main state-dir = 'state'\n[[extension]]\nid = 'shop'\npath = 'server.wasm'\n\
         serves-http = {{ path = '/', open = true, at-once = 2 }}\n{more}\n"
    );
    Stage::in_dir(dir, gateway, &text).await
}

/// The cause of the failure with this number, counted from 1, when it is on record.
async fn cause(stage: &Stage, number: usize) -> String {
    let failures = || stage.main.control().status("shop").unwrap().failures;
    becomes(|| failures().len() == number, || format!("{:#?}", failures())).await;
    let failure = failures().pop().unwrap();
    assert_eq!(failure.then, ExtensionState::Ready);
    failure.cause
}

#[tokio::test]
async fn the_second_answer_of_who_answers_twice_is_none() {
    let stage = stage("rude_server", "", "").await;
    for path in ["/twice", "/"] {
        let (status, body) = stage.get(path).await;
        assert_eq!((status, body.as_str()), (200, if path == "/" { "hello" } else { "first" }));
    }
    let status = stage.main.control().status("shop").unwrap();
    assert_eq!((status.state, status.restarts), (ExtensionState::Ready, 0));
}

#[tokio::test]
async fn headers_of_an_answer_are_bounded_and_so_is_what_holds_them() {
    let stage = stage("rude_server", "", "limits.fuel-per-message = 5_000_000_000").await;
    let few = stage.ask("GET", "/headers?100", &[], "").await;
    assert_eq!((few.status, few.header("x-99")), (200, Some("value")));
    for (number, path, reason) in
        [(1, "/headers?100000", "`http.header-size`"), (2, "/fields?100000", "`resources`")]
    {
        assert_eq!(stage.get(path).await.0, 500, "{path}");
        let cause = cause(&stage, number).await;
        assert!(cause.contains(reason), "{path}: {cause}");
    }
    assert_eq!(stage.get("/").await.0, 200);
}

#[tokio::test]
async fn one_that_asks_itself_for_ever_waits_for_its_turn_until_its_time_is_over() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let stage = stage(
        "server",
        &format!("# listen 127.0.0.1:{port}"),
        &format!("grants.http = [{{ to = 'http://127.0.0.1:{port}' }}]\nlimits.request-timeout = '1s'"),
    )
    .await;
    let raw = format!("GET /itself HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    // Either it or the gateway is the first to give up.
    let answer = stage.raw(&raw).await;
    assert!(matches!(answer.status, 502 | 504), "{answer:?}");
    nothing_runs(&stage).await;
    assert_eq!(stage.get("/").await.0, 200);
}

#[tokio::test]
async fn requests_that_fail_count_against_a_version_that_has_to_prove_itself() {
    let update = "update = { prove-for = '1h', min-requests = 1_000_000, max-failures = 2 }";
    let stage = stage("server", "", update).await;
    stage.main.control().accept_version("shop").await.unwrap();
    // Another version is another file.
    let path = stage.dir.path().join("server.wasm");
    let mut component = fs::read(&path).unwrap();
    component.extend_from_slice(&[0, 2, 1, b'x']);
    fs::write(&path, component).unwrap();
    stage.main.control().reload_extension("shop").await.unwrap();
    let versions = || stage.main.control().versions("shop").unwrap();
    let standing =
        |versions: &VersionsStatus| versions.versions.iter().map(|it| it.standing).collect::<Vec<_>>();
    for _ in 0..2 {
        assert_eq!(stage.get("/panic").await.0, 500);
    }
    becomes(|| versions().versions.iter().any(|it| it.failures == 2), || format!("{:#?}", versions())).await;
    assert!(standing(&versions()).contains(&Standing::Probation));
    assert_eq!(stage.get("/panic").await.0, 500);
    becomes(|| standing(&versions()).contains(&Standing::Refused), || format!("{:#?}", versions())).await;
    let refused = versions().versions.into_iter().find(|it| it.standing == Standing::Refused).unwrap();
    assert_eq!(refused.reason.as_deref(), Some("it failed 3 times, and 2 may be"));
    let serves_the_first = || versions().serving == Some(1);
    becomes(serves_the_first, || format!("{:#?}", versions())).await;
    assert_eq!(stage.get("/").await.0, 200);
    // The proven version is not judged.
    for _ in 0..4 {
        assert_eq!(stage.get("/panic").await.0, 500);
    }
    assert_eq!(versions().serving, Some(1));
}
