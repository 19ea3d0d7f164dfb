//! Contracts that components describe, and requests checked by them.

use std::{fs, net::TcpListener};

use weir_host::{
    Error, ExtensionConfig, Main,
    config::{ComponentSource, Validate},
    control::ExtensionState,
    logs::{Level, Source},
};

use super::support::{PATIENCE, extension, puppet, reached, set, start, taken, tell};

/// A contract with one operation, which takes arguments of this schema.
fn document(contract: &str, operation: &str, argument: &str) -> String {
    format!(
        r#"{{"openrpc":"1.3.2","info":{{"title":"{contract}","version":"1"}},"methods":[{{"name":"{contract}/{operation}","params":[],"x-argument":{argument},"result":{{"name":"answer","schema":{{}}}}}}]}}"#
    )
}

/// The component of a guest, with these sections `weir:contracts` added.
fn describing(guest: &str, sections: &[&str]) -> Vec<u8> {
    let mut component = fs::read(test_guests::path(guest)).unwrap();
    for lines in sections {
        let name = b"weir:contracts";
        let [name_length, length] = [name.len(), 1 + name.len() + lines.len()];
        // LEB128 in two bytes: enough for 16,383.
        component.extend(
            [0, length % 128 + 128, length / 128, name_length].map(|byte| u8::try_from(byte).unwrap()),
        );
        component.extend(name.iter().chain(lines.as_bytes()));
    }
    component
}

/// A puppet that says that its commands are whole numbers.
fn counted() -> ExtensionConfig {
    let document = document("it@1", "run", r#"{"type":"integer"}"#);
    let mut counted = puppet("it");
    counted.component = ComponentSource::Bytes(describing("puppet", &[&document]).into());
    counted.validate = Validate::Requests;
    counted
}

async fn refusal(main: &Main, payload: &'static str) -> String {
    match main.client().call("it@1", "run", payload).await {
        Err(Error::Handler(error)) => format!("{}: {}", error.code, error.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_answered_and_never_reaches_the_guest() {
    for receives in ["", "in-order", "any-order"] {
        let mut counted = counted();
        set(&mut counted, "receive", receives);
        let main = start(vec![counted]).await;
        let answers = [
            refusal(&main, "\"five\"").await,
            refusal(&main, "echo here").await,
            // This one fits: the guest itself does not know it.
            refusal(&main, "5").await,
        ];
        insta::allow_duplicates! { insta::assert_snapshot!(answers.join("\n"), @r"
        invalid-argument: `$` must be an integer, and is a string
        invalid-argument: `$` is not JSON: expected value at line 1 column 1
        refused: unknown command `5`
        "); }
        assert_eq!(main.control().status("it").unwrap().refused, Some(2));
        let large = " ".repeat(64 * 1024) + "5";
        let answer = main.client().call("it@1", "run", large).await;
        assert_eq!(answer, Err(Error::TooLarge { bytes: 65537, allowed: 65536 }));
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn requests_are_checked_beside_jobs_and_only_where_that_is_configured() {
    let mut counted = counted();
    counted.takes = vec!["jobs".parse().unwrap()];
    set(&mut counted, "start", "take jobs one-by-one");
    let mut unchecked = counted.clone();
    unchecked.validate = Validate::Nothing;
    let mut config = super::support::config(vec![counted.clone()]);
    config.queues.insert("jobs".parse().unwrap(), Default::default());
    let main = Main::builder(config.clone()).start().await.unwrap();
    assert!(refusal(&main, "heard").await.starts_with("invalid-argument: "));

    config.extensions = vec![unchecked];
    main.control().reload_with(config).await.unwrap();
    assert_eq!(tell(&main, "it", "echo here").await, Ok("here".to_owned()));
    assert_eq!(main.control().status("it").unwrap().refused, None);
}

#[tokio::test]
async fn a_flood_of_requests_that_do_not_fit_costs_the_guest_no_fuel() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut poller = extension("poller", "poller");
    let document = document("poller@1", "ask", r#"{"type":"integer"}"#);
    poller.component = ComponentSource::Bytes(describing("poller", &[&document]).into());
    poller.fulfills = vec!["poller@1".parse().unwrap()];
    poller.grants.net = vec![address.to_string().parse().unwrap()];
    poller.validate = Validate::Requests;
    (poller.limits.fuel_per_message, poller.limits.message_size) = (1_000_000, 1024);
    set(&mut poller, "address", &address.to_string());
    let main = start(vec![poller]).await;
    let ask = main.client().operation("poller@1", "ask").unwrap();
    // Each look costs the guest at least 1000 units.
    for _ in 0..2000 {
        let refused = ask.call_within(PATIENCE, "x").await;
        assert!(
            matches!(&refused, Err(Error::Handler(error)) if error.code == "invalid-argument"),
            "{refused:?}"
        );
    }
    assert_eq!(ask.call_within(PATIENCE, "5").await, Ok("5".into()));
    let status = main.control().status("poller").unwrap();
    assert_eq!((status.state, status.refused), (ExtensionState::Ready, Some(2000)));
}

#[tokio::test]
async fn a_component_that_describes_nothing_is_told_to_the_operator_if_it_should_be_checked() {
    let mut plain = puppet("it");
    plain.validate = Validate::Requests;
    let main = start(vec![plain]).await;
    assert_eq!(tell(&main, "it", "echo here").await, Ok("here".to_owned()));
    let lines = main.control().logs();
    let line = lines.iter().find(|line| line.source == Source::Main && line.level == Level::Warn).unwrap();
    assert_eq!(line.message, "`validate` checks nothing: it describes none of its contracts");
    taken(&main, "it").await;
}

#[tokio::test]
async fn main_shows_what_its_extensions_describe_and_serve() {
    let own = document("it@1", "run", "{}");
    let others = document("other@1", "run", "{}");
    let called =
        document("called@1", "run", "{}").replace("\"methods\"", "\"x-role\":\"caller\",\"methods\"");
    let mut it = puppet("it");
    it.component = ComponentSource::Bytes(describing("puppet", &[&own, &others, &called]).into());
    it.instances = 2;
    let mut spare = it.clone();
    (spare.id, spare.fulfills, spare.autostart) = ("spare".parse().unwrap(), Vec::new(), false);
    let main = start(vec![it, spare]).await;
    reached(&main, "it", ExtensionState::Ready).await;
    let described = main.control().contracts();
    // Not what it was not granted, not what it calls, and once for all instances.
    let [described] = described.as_slice() else { panic!("{described:?}") };
    assert_eq!((described.contract.as_str(), described.provider.as_str()), ("it@1", "it"));
    assert_eq!(described.document.methods[0].name, "run");
    assert_eq!(described.document, weir_host::openrpc::Document::parse(&own).unwrap());
}
