//! Components whose exported functions are operations, and whose imports contracts answer.

mod values;

use std::time::Duration;

use serde_json::{Value, json};
use weir_host::{
    CallOptions, Contract, Error, ExtensionConfig, Main, Operation, Service,
    config::RestartPolicy,
    control::ExtensionState,
    openrpc::{Document, Unknown},
};

use super::support::{PATIENCE, builder, extension, reached, start};

const VALUES: &str = "test:exports/values@1.2.0";
const RELAY: &str = "test:exports/relay@1.2.0";

const ADD: Operation<Terms, i32> = Contract::new("values@1").operation("add");

#[derive(serde::Serialize)]
struct Terms {
    a: i32,
    b: Option<i32>,
}

/// Owns `values@1`, and `alone@1` for the function without an interface.
fn exporter() -> ExtensionConfig {
    let mut exporter = extension("exporter", "exporter");
    for (contract, export) in [("values@1", VALUES), ("alone@1", "*")] {
        exporter.fulfills.push(contract.parse().unwrap());
        exporter.exports.insert(contract.parse().unwrap(), export.parse().unwrap());
    }
    exporter
}

/// Owns `relay@1`, and calls `values@1` for its import.
fn importer() -> ExtensionConfig {
    let mut importer = extension("importer", "importer");
    importer.fulfills.push("relay@1".parse().unwrap());
    importer.exports.insert("relay@1".parse().unwrap(), RELAY.parse().unwrap());
    importer.imports.insert(VALUES.parse().unwrap(), "values@1".parse().unwrap());
    importer
}

async fn call(main: &Main, contract: &str, operation: &str, arguments: &Value) -> Result<Value, String> {
    let answer = main.client().call(contract, operation, arguments.to_string()).await;
    answer.map(|answer| serde_json::from_slice(&answer).unwrap()).map_err(|error| match error {
        Error::Handler(error) => error.to_string(),
        error => error.case().to_owned(),
    })
}

/// A value of each type.
fn everything() -> Value {
    json!({
        "truth": true, "a-s8": -128, "a-u8": 255, "a-s16": -32768, "a-u16": 65535, "a-s32": -1, "a-u32": 4294967295_u32,
        "a-s64": "-9223372036854775808", "a-u64": 9007199254740991_u64, "single": 1.5, "double": "NaN", "letter": "ß",
        "text": "a\"\u{0}\u{1f600}", "bytes": "AAEC", "numbers": [1, 2], "pair": [3, "c"], "perhaps": null,
        "twice": [null], "outcome": { "err": "e" }, "bare": "ok", "figure": { "polygon": [{ "x": 1, "y": -2 }] },
        "color": "dark-green", "access": ["read", "execute"],
    })
}

#[tokio::test]
async fn each_exported_function_is_an_operation() {
    let main = start(vec![exporter()]).await;
    let call = |operation, arguments: Value| {
        let main = &main;
        async move { call(main, "values@1", operation, &arguments).await }
    };
    assert_eq!(call("echo", json!({ "value": everything() })).await.unwrap(), everything());
    assert_eq!(call("add", json!({ "a": 2, "b": 3 })).await.unwrap(), json!(5));
    assert_eq!(call("add", json!({ "a": 2 })).await.unwrap(), json!(3));
    assert_eq!(call("nothing", json!(null)).await.unwrap(), json!(null));
    let client = main.client();
    assert_eq!(client.call_typed(ADD, &Terms { a: 2, b: Some(5) }).await.unwrap(), 7);
    assert_eq!(client.call("values@1", "count", "").await.unwrap(), "1");
    // One instance is kept, and has its state.
    assert_eq!(client.call("values@1", "count", "{}").await.unwrap(), "2");
    assert_eq!(client.call("values@1", "reverse", "abc").await.unwrap(), "cba");
    assert_eq!(client.call("alone@1", "twice", r#"{"number":4294967295}"#).await.unwrap(), "8589934590");

    assert_eq!(call("fail", json!({ "how": "dark-green" })).await.unwrap_err(), "not-found: not-found");
    assert_eq!(call("fail", json!({ "how": "red" })).await.unwrap_err(), r#"odd: {"x":1,"y":-1}"#);
    assert_eq!(call("fail-in-words", json!({ "words": "so" })).await.unwrap_err(), "failed: so");
    assert_eq!(call("fail-in-words", json!({ "words": "" })).await.unwrap(), json!(null));
    assert_eq!(call("fail-by-color", json!({ "color": "red" })).await.unwrap_err(), "red: red");

    let status = main.control().status("exporter").unwrap();
    assert_eq!((status.kind(), status.state), ("exports", ExtensionState::Ready));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_at_their_place_before_the_function_is_called() {
    let main = start(vec![exporter()]).await;
    let with = |name: &str, value: Value| {
        let mut all = everything();
        all.as_object_mut().unwrap().insert(name.to_owned(), value);
        all
    };
    let without = || {
        let mut all = everything();
        all.as_object_mut().unwrap().remove("text");
        all
    };
    let faults = [
        (with("truth", json!(1)), "`$.value.truth` must be a boolean, and is `1`"),
        (with("a-u8", json!(256)), "`$.value.a-u8` must be a whole number of 8 bits, and is `256`"),
        (with("a-s8", json!(1.5)), "`$.value.a-s8` must be a whole number of 8 bits, and is `1.5`"),
        (with("a-u64", json!("-1")), "`$.value.a-u64` must be a whole number of 64 bits, and is `\"-1\"`"),
        (with("single", json!(1e300)), "`$.value.single` must be a number of 32 bits, and is `1e+300`"),
        (with("double", json!("nan")), "`$.value.double` must be a number, and is `\"nan\"`"),
        (with("letter", json!("ab")), "`$.value.letter` must be a string of one character, and is `\"ab\"`"),
        (with("text", json!(null)), "`$.value.text` must be a string, and is null"),
        (with("bytes", json!("?")), "`$.value.bytes` must be bytes in base64"),
        (
            with("numbers", json!([1, -1])),
            "`$.value.numbers[1]` must be a whole number of 32 bits, and is `-1`",
        ),
        (with("pair", json!([1])), "`$.value.pair` must be an array of 2, and is an array of 1"),
        (with("twice", json!(1)), "`$.value.twice` must be null or an array of 1, and is `1`"),
        (
            with("outcome", json!("ok")),
            "`$.value.outcome` must be an object with one field: a case, and is `\"ok\"`",
        ),
        (
            with("figure", json!({ "circel": 1 })),
            "`$.value.figure` must be an object with one of `circle`, `polygon`, `maybe`, and is `\"circel\"`: did you mean `circle`?",
        ),
        (with("figure", json!({ "polygon": [{ "x": 1 }] })), "`$.value.figure.polygon[0]` has no `y`"),
        (
            with("figure", json!({ "circle": 1, "empty": 2 })),
            "`$.value.figure` must be a string, or an object with one field: a case, and is an object",
        ),
        (
            with("color", json!("darkgreen")),
            "`$.value.color` must be one of `red`, `dark-green`, and is `\"darkgreen\"`: did you mean `dark-green`?",
        ),
        (with("access", json!(["read", "read"])), "`$.value.access[1]` is there twice"),
        (with("access", json!([5])), "`$.value.access[0]` must be a string, and is `5`"),
        (with("a-s64", json!("+5")), "`$.value.a-s64` must be a whole number of 64 bits, and is `\"+5\"`"),
        (with("textt", json!("")), "`$.value.textt` is unknown: did you mean `text`?"),
        (without(), "`$.value` has no `text`"),
    ];
    for (value, fault) in faults {
        let refused = call(&main, "values@1", "echo", &json!({ "value": value })).await.unwrap_err();
        assert_eq!(refused, format!("invalid-argument: {fault}"));
    }
    let deep = "[".repeat(100_000);
    let texts = [
        ("", "`$` has no `value`"),
        ("5", "`$` must be an object, and is `5`"),
        (r#"{"value":1}"#, "`$.value` must be an object, and is `1`"),
        (r#"{"value":{"truth":true,"truth":1}}"#, "`$.value.truth` is given twice"),
        (r#"{"value":NaN}"#, "`$` is not JSON: expected value at line 1 column 10"),
        (r#"{"value":"\ud800"}"#, "`$` is not JSON: unexpected end of hex escape at line 1 column 17"),
        ("\u{fffd}", "`$` is not JSON: expected value at line 1 column 1"),
        (&deep, "`$` must be an object, and is an array"),
    ];
    for (text, fault) in texts {
        let refused = main.client().call("values@1", "echo", text.to_owned()).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("invalid-argument: {fault}"));
    }
    // No call reached the instance, and none ended it.
    assert_eq!(call(&main, "values@1", "count", &json!({})).await.unwrap(), json!(1));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn more_values_than_have_room_are_refused_and_as_answers_end_the_instance() {
    let mut exporter = exporter();
    exporter.restart.policy = RestartPolicy::OnFailure;
    exporter.restart.backoff = Duration::from_millis(1);
    let size = exporter.limits.message_size;
    let main = start(vec![exporter]).await;
    let many = json!({ "value": { "numbers": vec![0; usize::try_from(size / 4).unwrap()] } });
    let refused = call(&main, "values@1", "echo", &many).await.unwrap_err();
    assert_eq!(refused, "too-large: the values of the arguments take more than 8388608 bytes in the host");
    // Bytes alone are not values.
    let most = vec![1; usize::try_from(size).unwrap()];
    assert_eq!(main.client().call("values@1", "reverse", most.clone()).await.unwrap(), most);
    let long = call(&main, "values@1", "numbers", &json!({ "length": 100_000 })).await.unwrap();
    assert_eq!(long.as_array().unwrap().len(), 100_000);
    assert_eq!(
        call(&main, "values@1", "numbers", &json!({ "length": 1_000_000 })).await.unwrap_err(),
        "trapped"
    );
    reached(&main, "exporter", ExtensionState::Ready).await;
    let too_large = call(&main, "values@1", "numbers", &json!({ "length": size / 5 })).await.unwrap_err();
    assert!(too_large.starts_with("too-large"), "{too_large}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_function_that_fails_costs_its_call_and_the_kept_instance() {
    for (deed, cause, limit) in [
        ("trap", "trapped", None),
        ("spin", "used up", Some("fuel-per-message")),
        ("wait", "`handler-timeout`", Some("handler-timeout")),
        ("take-memory", "trapped", Some("memory")),
        ("exit", "in a call", None),
    ] {
        let mut exporter = exporter();
        exporter.restart.policy = RestartPolicy::Always;
        exporter.restart.backoff = Duration::from_millis(1);
        exporter.limits.handler_timeout = Duration::from_millis(200);
        exporter.limits.fuel_per_message = 20_000_000;
        let main = start(vec![exporter]).await;
        assert_eq!(call(&main, "values@1", "count", &json!({})).await.unwrap(), json!(1));
        let refused = call(&main, "values@1", "misbehave", &json!({ "how": deed })).await.unwrap_err();
        assert_eq!(refused, if deed == "exit" { "peer-gone" } else { "trapped" }, "{deed}");
        // The next instance has none of the state.
        reached(&main, "exporter", ExtensionState::Ready).await;
        assert_eq!(call(&main, "values@1", "count", &json!({})).await.unwrap(), json!(1), "{deed}");
        let failures = main.control().status("exporter").unwrap().failures;
        {
            let failure = failures.last().unwrap();
            assert!(failure.cause.contains(cause), "{deed}: {}", failure.cause);
            assert_eq!(failure.handling.as_ref().unwrap().operation, "values@1 misbehave");
            assert_eq!(
                failure.limit.as_ref().map(|limit| limit.name.to_string()).as_deref(),
                limit,
                "{deed}"
            );
        }
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn each_call_may_have_an_instance_of_its_own_and_a_failure_ends_that_alone() {
    let mut exporter = exporter();
    exporter.per_call = true;
    exporter.limits.fuel_per_message = 20_000_000;
    let main = start(vec![exporter]).await;
    for _ in 0..3 {
        assert_eq!(call(&main, "values@1", "count", &json!({})).await.unwrap(), json!(1));
        assert_eq!(
            call(&main, "values@1", "misbehave", &json!({ "how": "trap" })).await.unwrap_err(),
            "trapped"
        );
        assert_eq!(
            call(&main, "values@1", "misbehave", &json!({ "how": "exit" })).await.unwrap_err(),
            "trapped"
        );
        assert_eq!(
            call(&main, "values@1", "misbehave", &json!({ "how": "spin" })).await.unwrap_err(),
            "trapped"
        );
    }
    let status = main.control().status("exporter").unwrap();
    assert_eq!((status.state, status.restarts, status.failures.len()), (ExtensionState::Ready, 0, 9));
    assert_eq!(status.failures[0].handling.as_ref().unwrap().operation, "values@1 misbehave");
    assert_eq!(status.failures[2].limit.as_ref().unwrap().name.to_string(), "fuel-per-message");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_burst_of_calls_and_of_refusals_ends_nobody_and_lets_others_run() {
    for per_call in [false, true] {
        let mut exporter = exporter();
        exporter.per_call = per_call;
        exporter.limits.inbox_messages = 4000;
        let main = start(vec![exporter]).await;
        let refused = (0..3000).map(|_| async {
            let misfit = main.client().call("values@1", "add", r#"{"b":"x"}"#).await.unwrap_err();
            assert_eq!(misfit.code(), "invalid-argument");
        });
        futures_util::future::join_all(refused).await;
        let called = (0..3000).map(|_| async {
            assert_eq!(main.client().call("values@1", "add", r#"{"a":1}"#).await.unwrap(), "2");
        });
        futures_util::future::join_all(called).await;
        let status = main.control().status("exporter").unwrap();
        assert_eq!((status.restarts, status.failures.len()), (0, 0), "{per_call}");
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn with_instances_of_their_own_calls_have_a_time_limit_of_their_own() {
    let mut exporter = exporter();
    exporter.per_call = true;
    exporter.limits.handler_timeout = Duration::from_millis(100);
    let main = start(vec![exporter]).await;
    assert_eq!(call(&main, "values@1", "misbehave", &json!({ "how": "wait" })).await.unwrap_err(), "trapped");
    assert_eq!(call(&main, "values@1", "count", &json!({})).await.unwrap(), json!(1));
    let status = main.control().status("exporter").unwrap();
    assert_eq!(status.failures[0].limit.as_ref().unwrap().name.to_string(), "handler-timeout");
    assert_eq!(status.restarts, 0);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_caller_that_gives_up_ends_its_wait_and_the_next_one_waits_for_the_instance() {
    let mut exporter = exporter();
    exporter.limits.stop_timeout = Duration::from_millis(100);
    let main = start(vec![exporter]).await;
    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_millis(50));
    let waited = main.client().call_with("values@1", "misbehave", r#"{"how":"wait"}"#, options.clone()).await;
    assert_eq!(waited.unwrap_err().case(), "timeout");
    // The next call waits in the inbox, to its own deadline.
    let waited = main.client().call_with("values@1", "count", "", options).await;
    assert_eq!(waited.unwrap_err().case(), "timeout");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn contracts_answer_what_a_component_imports() {
    let main = start(vec![importer(), exporter()]).await;
    let call = |operation, arguments: Value| {
        let main = &main;
        async move { call(main, "relay@1", operation, &arguments).await }
    };
    assert_eq!(call("echo", json!({ "value": everything() })).await.unwrap(), everything());
    assert_eq!(call("add", json!({ "a": 2 })).await.unwrap(), json!(3));
    assert_eq!(main.client().call("relay@1", "reverse", "abc").await.unwrap(), "cba");
    assert_eq!(call("numbers", json!({ "length": 4 })).await.unwrap(), json!(6));
    // Errors arrive as the values that they were.
    assert_eq!(call("fail", json!({ "how": "dark-green" })).await.unwrap_err(), "not-found: not-found");
    assert_eq!(call("fail", json!({ "how": "red" })).await.unwrap_err(), r#"odd: {"x":1,"y":-1}"#);
    assert_eq!(call("fail-in-words", json!({ "words": "so" })).await.unwrap_err(), "failed: so");
    assert_eq!(
        call("fail-by-color", json!({ "color": "dark-green" })).await.unwrap_err(),
        "dark-green: dark-green"
    );
    // A function that has no error for it ends its caller.
    assert_eq!(call("trap", json!({})).await.unwrap_err(), "trapped");
    let failure = main.control().status("importer").unwrap().failures.pop().unwrap();
    assert_eq!(
        failure.cause,
        "trapped: `test:exports/values@1.2.0` `misbehave`: the receiver trapped with the request in hand"
    );
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_error_of_the_provider_reaches_a_function_that_can_say_so() {
    let main = start(vec![importer()]).await;
    let refused = call(&main, "relay@1", "fail-in-words", &json!({ "words": "" })).await.unwrap_err();
    assert_eq!(refused, "failed: unknown contract `values@1`");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_speaks_against_exports_and_imports_is_said_at_the_start() {
    let refused = |change: fn(&mut ExtensionConfig)| async move {
        let mut changed = importer();
        change(&mut changed);
        let main = builder(vec![changed]).start().await.unwrap();
        let reason = reached(&main, "importer", ExtensionState::Failed).await;
        main.shutdown().await.unwrap();
        reason.unwrap_or_default()
    };
    let missing = refused(|it| {
        it.exports.insert("relay@1".parse().unwrap(), "test:exports/relay@2.0.0".parse().unwrap());
    })
    .await;
    assert!(
        missing.contains("it exports no `test:exports/relay@2.0.0`: it has `test:exports/relay@1.2.0`"),
        "{missing}"
    );
    let unanswered = refused(|it| it.imports.clear()).await;
    assert!(
        unanswered.contains("it imports `test:exports/values@1.2.0`, which Weir does not offer: name the contract that answers it in `imports`"),
        "{unanswered}"
    );
}

/// The description of `values@1` in a running Main.
fn described(main: &Main) -> Document {
    let contracts = main.control().contracts();
    contracts.into_iter().find(|it| it.contract.as_str() == "values@1").unwrap().document
}

#[tokio::test]
async fn the_description_comes_from_the_types_of_the_component() {
    let main = start(vec![exporter()]).await;
    let document = described(&main);
    assert_eq!(document.export.as_deref(), Some(VALUES));
    let names: Vec<_> = document.methods.iter().map(|method| method.name.as_str()).collect();
    assert!(names.contains(&"fail-in-words") && names.len() == 11, "{names:?}");
    let echo = json!({ "value": everything() }).to_string();
    document.check_arguments("echo", echo.as_bytes(), Unknown::Refused).unwrap();
    document.check_result("echo", everything().to_string().as_bytes()).unwrap();
    let codes: Vec<_> =
        document.method("fail").unwrap().errors.iter().map(|error| error.code.clone()).collect();
    assert_eq!(codes, ["not-found", "too-long", "odd", "said"]);
    // What one side exports, the other imports.
    let found = weir_host::component::inspect(&test_guests::path("importer")).unwrap();
    let expected = found.expected_by(&importer()).next().unwrap();
    assert_eq!(weir_host::openrpc::needs(&expected, &document), []);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn calls_wait_in_the_inbox_and_instances_share_them() {
    let mut exporter = exporter();
    exporter.instances = 3;
    exporter.limits.ready_timeout = PATIENCE;
    let main = start(vec![exporter]).await;
    let calls = (0..100).map(|_| async { main.client().call("values@1", "count", "").await.unwrap() });
    let counts = futures_util::future::join_all(calls).await;
    let first = counts.iter().filter(|count| **count == "1").count();
    assert!((1..=3).contains(&first), "{first} instances");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_contract_of_the_program_may_be_described_as_a_component_describes_it() {
    let found = weir_host::component::inspect(&test_guests::path("exporter")).unwrap();
    let document = found.contracts.iter().find(|it| it.export.as_deref() == Some(VALUES)).unwrap().clone();
    let served = |operations: &[&str]| {
        let service = Service::new("own@1".parse().unwrap());
        operations.iter().fold(service, |service, operation| {
            service.on(operation.parse().unwrap(), async |_| Ok("1".into()))
        })
    };
    let names: Vec<_> = document.methods.iter().map(|method| &*method.name).collect();
    let main = builder(vec![]).serve(served(&names).described(document.clone())).start().await.unwrap();
    let [contract] = <[_; 1]>::try_from(main.control().contracts()).unwrap();
    assert_eq!((contract.contract.as_str(), &*contract.provider), ("own@1", "main"));
    assert_eq!((&contract.document.methods, &contract.document.export), (&document.methods, &None));
    let known = main.control().descriptions("own@1", None).unwrap();
    assert!(known.of_provider("own@1").unwrap().check_arguments("add", b"{}", Unknown::Refused).is_err());
    main.shutdown().await.unwrap();

    let more = [&names[..], &["more"]].concat();
    for (names, fault) in [(&names[1..], "`echo` is not served"), (&more[..], "`more` is not in it")] {
        let service = served(names).described(document.clone());
        let refused = builder(vec![]).serve(service).start().await.unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert_eq!(why, format!("invalid: the description of `own@1`: {fault}"));
    }
}

#[tokio::test]
async fn names_that_differ_in_case_alone_are_refused() {
    let text = r#"(component
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (export "get-x" (func $f)) (export "get-X" (func $f)))"#;
    let mut twins = ExtensionConfig::from_bytes("twins".parse().unwrap(), wat::parse_str(text).unwrap());
    twins.fulfills.push("twins@1".parse().unwrap());
    twins.exports.insert("twins@1".parse().unwrap(), "*".parse().unwrap());
    let main = builder(vec![twins]).start().await.unwrap();
    let reason = main.control().status("twins").unwrap().reason.unwrap();
    assert!(reason.contains("`get-X` conflicts with previous name `get-x`"), "{reason}");
    main.shutdown().await.unwrap();
}

/// Breaks the rules of the component model at run time.
const LIAR: &str = r#"(component
    (core module $m
        (memory (export "memory") 1)
        (data (i32.const 16) "\20\00\00\00\02\00\00\00")
        (data (i32.const 24) "\00\00\00\00\ff\ff\ff\3f")
        (data (i32.const 32) "\ff\fe")
        (func (export "text") (result i32) (i32.const 16))
        (func (export "long") (result i32) (i32.const 24))
        (func (export "outside") (result i32) (i32.const -4))
        (func (export "char") (result i32) (i32.const 0xd800))
        (func (export "take") (param i32 i32) (result i32) (i32.const 1))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (loop $l (br $l)) unreachable))
    (core instance $i (instantiate $m))
    (func (export "text") (result string) (canon lift (core func $i "text") (memory (core memory $i "memory"))))
    (func (export "long") (result (list u8)) (canon lift (core func $i "long") (memory (core memory $i "memory"))))
    (func (export "outside") (result string) (canon lift (core func $i "outside") (memory (core memory $i "memory"))))
    (func (export "char") (result char) (canon lift (core func $i "char")))
    (func (export "take") (param "text" string) (result u32)
        (canon lift (core func $i "take") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#;

#[tokio::test]
async fn a_component_that_breaks_the_rules_ends_and_its_callers_hear_so() {
    let mut liar = ExtensionConfig::from_bytes("liar".parse().unwrap(), wat::parse_str(LIAR).unwrap());
    liar.fulfills.push("liar@1".parse().unwrap());
    liar.exports.insert("liar@1".parse().unwrap(), "*".parse().unwrap());
    liar.per_call = true;
    liar.limits.fuel_per_message = 10_000_000;
    let main = start(vec![liar]).await;
    for (operation, arguments, cause) in [
        ("text", json!({}), "utf-8"),
        ("long", json!({}), "out of bounds"),
        ("outside", json!({}), "out of bounds"),
        ("char", json!({}), "char"),
        ("take", json!({ "text": "a" }), "used up"),
    ] {
        assert_eq!(call(&main, "liar@1", operation, &arguments).await.unwrap_err(), "trapped", "{operation}");
        let failure = main.control().status("liar").unwrap().failures.pop().unwrap();
        assert!(failure.cause.contains(cause), "{operation}: {}", failure.cause);
    }
    assert_eq!(main.control().status("liar").unwrap().state, ExtensionState::Ready);
    main.shutdown().await.unwrap();
}
