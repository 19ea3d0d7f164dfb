//! Any value of each type, there and back, as text and as it is.

use std::{fs, sync::LazyLock, time::Duration};

use proptest::{
    prelude::*,
    strategy::BoxedStrategy,
    test_runner::{Config as Cases, TestRunner},
};
use serde_json::{Value, json};
use weir_host::{
    CallOptions, ExtensionConfig, HandlerError, Service,
    config::{ComponentSource, Limits},
    openrpc::Unknown,
};

use super::{
    super::support::{builder, start, taken, until},
    call, described, everything, exporter, importer,
};

fn figure() -> BoxedStrategy<Value> {
    let point = (any::<i32>(), any::<i32>()).prop_map(|(x, y)| json!({ "x": x, "y": y }));
    prop_oneof![
        Just(json!("empty")),
        any::<i32>().prop_map(|radius| json!({ "circle": f64::from(radius) / 8.0 })),
        prop::collection::vec(point.clone(), 0..4).prop_map(|points| json!({ "polygon": points })),
        prop::option::of(point).prop_map(|point| json!({ "maybe": point })),
    ]
    .boxed()
}

/// A 64-bit number as JSON has it.
fn long(number: i128) -> Value {
    match i64::try_from(number) {
        Ok(safe) if safe.unsigned_abs() < 1 << 53 => json!(safe),
        _ => json!(number.to_string()),
    }
}

fn any_value() -> BoxedStrategy<Value> {
    let numbers = (any::<i8>(), any::<u8>(), any::<i16>(), any::<u16>(), any::<i32>(), any::<u32>());
    let edges = prop_oneof![
        any::<i64>(),
        -5_i64..5,
        Just((1 << 53) - 1),
        Just(1 << 53),
        Just(-(1 << 53)),
        Just(i64::MIN)
    ];
    let large = prop_oneof![any::<u64>(), 0..5_u64, Just(u64::MAX), Just((1 << 53) - 1), Just(1 << 53)];
    let double = prop_oneof![
        any::<f64>().prop_filter("is finite", |number| number.is_finite()).prop_map(|number| json!(number)),
        Just(json!("NaN")),
        Just(json!("Infinity")),
        Just(json!("-Infinity")),
    ];
    let texts = (any::<String>(), any::<char>(), prop::option::of(any::<String>()));
    let twice =
        prop_oneof![Just(json!(null)), Just(json!([null])), any::<u8>().prop_map(|number| json!([number]))];
    let outcome = prop_oneof![
        any::<u8>().prop_map(|ok| json!({ "ok": ok })),
        any::<String>().prop_map(|error| json!({ "err": error })),
    ];
    let words = (prop_oneof![Just("ok"), Just("err")], prop_oneof![Just("red"), Just("dark-green")]);
    let access = prop::sample::subsequence(vec!["read", "write", "execute"], 0..=3);
    let lists = (prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u32>(), 0..9));
    (any::<bool>(), numbers, edges, large, double, texts, twice, outcome, words, access, (lists, figure()))
        .prop_map(|(truth, numbers, a, b, double, texts, twice, outcome, words, access, ((bytes, list), figure))| {
            use base64::{Engine, prelude::BASE64_STANDARD};
            let (letter, text, perhaps) = (texts.1.to_string(), texts.0, texts.2);
            json!({
                "truth": truth, "a-s8": numbers.0, "a-u8": numbers.1, "a-s16": numbers.2, "a-u16": numbers.3,
                "a-s32": numbers.4, "a-u32": numbers.5, "a-s64": long(a.into()), "a-u64": long(b.into()),
                "single": f32::from(numbers.2) / 4.0, "double": double, "letter": letter, "text": text,
                "bytes": BASE64_STANDARD.encode(&bytes), "numbers": list, "pair": [json!(numbers.1), json!(letter)],
                "perhaps": perhaps, "twice": twice, "outcome": outcome, "bare": words.0, "figure": figure,
                "color": words.1, "access": access,
            })
        })
        .boxed()
}

/// Whether both are equal but for the notation of floating-point numbers.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn any_value_comes_back_as_it_was_through_two_components() {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> =
        LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());
    // Between components of equal types, values go as they are. Main answers the third import by JSON.
    let mut of_main = renamed(importer(), "of-main", "third@1");
    of_main.imports = [(super::VALUES.parse().unwrap(), "json@1".parse().unwrap())].into();
    let extensions = vec![importer(), exporter(), of_main];
    let main = RUNTIME.block_on(async { builder(extensions).serve(echo_json()).start().await.unwrap() });
    let document = described(&main);
    let cases = u32::try_from(test_guests::amount(300, 30_000)).unwrap();
    let mut runner = TestRunner::new(Cases { failure_persistence: None, ..Cases::with_cases(cases) });
    let tried = runner.run(&any_value(), |value| {
        let arguments = json!({ "value": value });
        let text = arguments.to_string();
        document.check_arguments("echo", text.as_bytes(), Unknown::Refused).unwrap();
        for contract in ["values@1", "relay@1", "third@1"] {
            let answer = RUNTIME.block_on(call(&main, contract, "echo", &arguments)).unwrap();
            document.check_result("echo", answer.to_string().as_bytes()).unwrap();
            prop_assert!(is_same(&answer, &value), "{contract}: {answer}\n{value}");
        }
        Ok(())
    });
    tried.unwrap();
    RUNTIME.block_on(main.shutdown()).unwrap();
}

/// The same component under another name, whose first contract has this name.
fn renamed(mut extension: ExtensionConfig, id: &str, contract: &str) -> ExtensionConfig {
    extension.id = id.parse().unwrap();
    let (_, export) = extension.exports.pop_first().unwrap();
    extension.fulfills = vec![contract.parse().unwrap()];
    extension.exports = [(contract.parse().unwrap(), export)].into();
    extension
}

/// Answers with the argument, which it knows as JSON.
fn echo_json() -> Service {
    Service::new("json@1".parse().unwrap()).on("echo".parse().unwrap(), async |request| {
        let arguments: Value = serde_json::from_slice(&request.payload).unwrap();
        let value = arguments.get("value").ok_or_else(|| HandlerError::new("invalid", "no value"))?;
        Ok(value.to_string().into())
    })
}

#[tokio::test]
async fn fields_may_have_other_names_in_json() {
    let mut importer = renamed(importer(), "snake", "snake@1");
    importer.imports = [(super::VALUES.parse().unwrap(), "json@1".parse().unwrap())].into();
    importer.snake_case_imports = vec![super::VALUES.parse().unwrap()];
    let service = Service::new("json@1".parse().unwrap()).on("echo".parse().unwrap(), async |request| {
        let arguments: Value = serde_json::from_slice(&request.payload).unwrap();
        let mut value = arguments["value"].clone();
        assert_eq!((&value["a_s8"], &value["color"]), (&json!(-128), &json!("dark-green")));
        // A newer provider may know more.
        value.as_object_mut().unwrap().insert("added_later".to_owned(), json!([{}]));
        if value["text"] == "faulty" {
            value.as_object_mut().unwrap().remove("a_s8");
        }
        Ok(value.to_string().into())
    });
    let main = builder(vec![importer]).serve(service).start().await.unwrap();
    let mut value = everything();
    assert_eq!(call(&main, "snake@1", "echo", &json!({ "value": value })).await.unwrap(), value);
    value["text"] = json!("faulty");
    assert_eq!(call(&main, "snake@1", "echo", &json!({ "value": value })).await.unwrap_err(), "trapped");
    let failure = main.control().status("snake").unwrap().failures.pop().unwrap();
    assert!(failure.cause.ends_with("invalid-answer: the answer: `$` has no `a_s8`"), "{}", failure.cause);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn between_components_of_equal_types_values_go_without_text() {
    let mut exporter = exporter();
    exporter.limits.message_size = 64 * 1024;
    let mut limits = Limits::max();
    limits.memory = 16 << 20;
    let mut importer = importer();
    importer.limits = limits;
    let main = start(vec![importer, exporter]).await;
    let with = |text: String| {
        let mut value = everything();
        value["text"] = text.into();
        json!({ "value": value })
    };
    // As text, each of these characters takes six bytes.
    let long = with("\u{1}".repeat(20_000));
    assert_eq!(call(&main, "relay@1", "echo", &long).await.unwrap(), long["value"]);
    assert_eq!(call(&main, "values@1", "echo", &long).await.unwrap_err(), "too-large");
    // Values have the size of a message, too.
    let too_long = with("a".repeat(70_000));
    assert_eq!(call(&main, "relay@1", "echo", &too_long).await.unwrap_err(), "trapped");
    let failure = main.control().status("importer").unwrap().failures.pop().unwrap();
    assert!(failure.cause.contains("`echo`: payload of 70"), "{}", failure.cause);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_answer_as_it_is_has_no_more_bytes_than_its_caller_takes() {
    let mut importer = importer();
    importer.limits.message_size = 64 * 1024;
    let main = start(vec![importer, exporter()]).await;
    let numbers = |length: u32| {
        let main = &main;
        async move { call(main, "relay@1", "numbers", &json!({ "length": length })).await }
    };
    // As values, these numbers take more than a message, and as JSON less.
    assert_eq!(numbers(9000).await.unwrap(), json!((0..9000_u32).sum::<u32>()));
    assert_eq!(numbers(20_000).await.unwrap_err(), "trapped");
    let failure = main.control().status("importer").unwrap().failures.pop().unwrap();
    assert!(failure.cause.contains("payload of"), "{}", failure.cause);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn values_that_wait_while_their_receiver_is_replaced_reach_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let component = dir.path().join("exporter.wasm");
    let original = fs::read(test_guests::path("exporter")).unwrap();
    fs::write(&component, &original).unwrap();
    let mut exporter = exporter();
    exporter.component = ComponentSource::Path(component.clone());
    exporter.limits.stop_timeout = Duration::from_millis(100);
    let main = start(vec![importer(), exporter]).await;
    let waits = r#"{"how":"wait"}"#;
    let mut stuck = main.client().begin("values@1", "misbehave", waits, CallOptions::default()).unwrap();
    taken(&main, "exporter").await;
    let arguments = json!({ "a": 2, "b": 3 });
    let waiting = call(&main, "relay@1", "add", &arguments);
    let replaced = async {
        let status = || main.control().status("exporter").unwrap();
        until(|| status().inbox_messages == 1).await;
        // The two numbers have no payload, and count all the same.
        assert!(status().inbox_bytes >= 128 + 3 * 24, "{}", status().inbox_bytes);
        fs::write(&component, [&original[..], b"\0\x05\x04note"].concat()).unwrap();
        main.control().reload_extension("exporter").await.unwrap();
    };
    let (stuck, sum, ()) = tokio::join!(stuck.answer(), waiting, replaced);
    assert_eq!((stuck.unwrap_err().error.case(), sum), ("trapped", Ok(json!(5))));
    main.shutdown().await.unwrap();
}
