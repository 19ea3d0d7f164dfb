//! The examples of the specification of JSON-RPC 2.0, in its section 7.

use serde_json::{Value, json};

use crate::rpc::{
    Incoming, Message, Refusal, Request, RpcError, params, parse, write_error, write_refusal, write_value,
};

use super::json;

/// Answers as the server of the examples does. `None`: nothing is sent.
fn answer(text: &str) -> Option<String> {
    match parse(text, 8) {
        Err(refusal) => answer_one(Err(refusal)),
        Ok(Incoming::Single(message)) => answer_one(message),
        Ok(Incoming::Batch(messages)) => {
            let answers: Vec<_> = messages.into_iter().filter_map(answer_one).collect();
            (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
        }
    }
}

fn answer_one(message: Result<Message<'_>, Refusal>) -> Option<String> {
    let mut out = String::new();
    match message {
        Ok(Message::Request(request)) => {
            let outcome = carry_out(&request);
            match (outcome, request.id?) {
                (Ok(result), id) => write_value(&mut out, &id, &result),
                (Err(error), id) => write_error(&mut out, &id, &error),
            }
        }
        Ok(Message::Response(_) | Message::Stray) => return None,
        Err(refusal) => write_refusal(&mut out, &refusal),
    }
    Some(out)
}

fn carry_out(request: &Request<'_>) -> Result<Value, RpcError> {
    let positional = || -> Vec<i64> { serde_json::from_str(request.params.unwrap().get()).unwrap() };
    match &*request.method {
        "subtract" if request.params.is_some_and(|params| params.get().starts_with('{')) => {
            let Subtract { minuend, subtrahend } = params(request.params)?;
            Ok((minuend - subtrahend).into())
        }
        "subtract" => Ok(positional().into_iter().reduce(|a, b| a - b).into()),
        "sum" => Ok(positional().into_iter().sum::<i64>().into()),
        "get_data" => Ok(json!(["hello", 5])),
        "update" | "notify_hello" | "notify_sum" => Ok(Value::Null),
        method => Err(RpcError::no_method(method, "app:page")),
    }
}

#[derive(serde::Deserialize)]
struct Subtract {
    minuend: i64,
    subtrahend: i64,
}

/// Compares all but the words of errors, and what Weir adds to them.
fn assert_answer(text: &str, expected: &str) {
    let mut answer = json(&answer(text).unwrap_or_else(|| panic!("no answer to {text}")));
    let answers = match &mut answer {
        Value::Array(answers) => answers.iter_mut().collect(),
        one => vec![one],
    };
    for error in answers.into_iter().filter_map(|answer| answer.get_mut("error")) {
        let error = error.as_object_mut().unwrap();
        assert!(error["message"].is_string());
        error.retain(|name, _| name == "code");
    }
    assert_eq!(answer, json(expected), "{text}");
}

#[test]
fn a_call_with_positional_parameters() {
    assert_answer(
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#,
        r#"{"jsonrpc": "2.0", "result": 19, "id": 1}"#,
    );
    assert_answer(
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}"#,
        r#"{"jsonrpc": "2.0", "result": -19, "id": 2}"#,
    );
}

#[test]
fn a_call_with_named_parameters() {
    assert_answer(
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}"#,
        r#"{"jsonrpc": "2.0", "result": 19, "id": 3}"#,
    );
    assert_answer(
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}"#,
        r#"{"jsonrpc": "2.0", "result": 19, "id": 4}"#,
    );
}

#[test]
fn a_notification_has_no_answer() {
    assert_eq!(answer(r#"{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}"#), None);
    assert_eq!(answer(r#"{"jsonrpc": "2.0", "method": "foobar"}"#), None);
}

#[test]
fn a_call_of_a_method_that_does_not_exist() {
    assert_answer(
        r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32601}, "id": "1"}"#,
    );
}

#[test]
fn a_call_with_invalid_json() {
    assert_answer(
        r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32700}, "id": null}"#,
    );
}

#[test]
fn a_call_with_an_invalid_request() {
    assert_answer(
        r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32600}, "id": null}"#,
    );
}

#[test]
fn a_batch_with_invalid_json() {
    assert_answer(
        r#"[
            {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
            {"jsonrpc": "2.0", "method"
        ]"#,
        r#"{"jsonrpc": "2.0", "error": {"code": -32700}, "id": null}"#,
    );
}

#[test]
fn an_empty_array() {
    assert_answer("[]", r#"{"jsonrpc": "2.0", "error": {"code": -32600}, "id": null}"#);
}

#[test]
fn an_invalid_batch_that_is_not_empty() {
    assert_answer("[1]", r#"[{"jsonrpc": "2.0", "error": {"code": -32600}, "id": null}]"#);
}

#[test]
fn an_invalid_batch() {
    assert_answer(
        "[1,2,3]",
        r#"[
            {"jsonrpc": "2.0", "error": {"code": -32600}, "id": null},
            {"jsonrpc": "2.0", "error": {"code": -32600}, "id": null},
            {"jsonrpc": "2.0", "error": {"code": -32600}, "id": null}
        ]"#,
    );
}

#[test]
fn a_batch() {
    assert_answer(
        r#"[
            {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
            {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
            {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
            {"foo": "boo"},
            {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
            {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
        ]"#,
        r#"[
            {"jsonrpc": "2.0", "result": 7, "id": "1"},
            {"jsonrpc": "2.0", "result": 19, "id": "2"},
            {"jsonrpc": "2.0", "error": {"code": -32600}, "id": null},
            {"jsonrpc": "2.0", "error": {"code": -32601}, "id": "5"},
            {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}
        ]"#,
    );
}

#[test]
fn a_batch_of_notifications_has_no_answer() {
    let text = r#"[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
    ]"#;
    assert_eq!(answer(text), None);
}
