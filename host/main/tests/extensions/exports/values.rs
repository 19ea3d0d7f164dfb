//! Any value of each type, there and back.

use std::sync::LazyLock;

use proptest::{
    prelude::*,
    strategy::BoxedStrategy,
    test_runner::{Config as Cases, TestRunner},
};
use serde_json::{Value, json};
use weir_host::openrpc::Unknown;

use super::{super::support::start, call, described, exporter, importer};

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
    let main = RUNTIME.block_on(start(vec![importer(), exporter()]));
    let document = described(&main);
    let cases = u32::try_from(test_guests::amount(300, 30_000)).unwrap();
    let mut runner = TestRunner::new(Cases { failure_persistence: None, ..Cases::with_cases(cases) });
    let tried = runner.run(&any_value(), |value| {
        let arguments = json!({ "value": value });
        let text = arguments.to_string();
        document.check_arguments("echo", text.as_bytes(), Unknown::Refused).unwrap();
        for contract in ["values@1", "relay@1"] {
            let answer = RUNTIME.block_on(call(&main, contract, "echo", &arguments)).unwrap();
            document.check_result("echo", answer.to_string().as_bytes()).unwrap();
            prop_assert!(is_same(&answer, &value), "{contract}: {answer}\n{value}");
        }
        Ok(())
    });
    tried.unwrap();
    RUNTIME.block_on(main.shutdown()).unwrap();
}
