//! Messages that are sent unasked, and errors.

use serde_json::json;
use weir_host::Error;

use crate::rpc::{
    Envelope, Id, RpcError, write_alias_event, write_cancel, write_ended, write_error, write_event,
    write_lost, write_request, write_value,
};

use super::{NUMBER, json, request, written};

#[test]
fn messages_have_the_form_of_the_documentation() {
    assert_eq!(
        written(|out| write_event(out, "a.*", "a.b", 3, true, "app:b", &br#"{"c": 1}"#[..])),
        r#"{"jsonrpc":"2.0","method":"events.event","params":{"pattern":"a.*","topic":"a.b","sequence":3,"retained":true,"sender":"app:b","payload":{"c": 1}}}"#
    );
    assert_eq!(
        written(|out| write_alias_event(out, "device.onNameChanged", &b"[1]"[..])),
        r#"{"jsonrpc":"2.0","method":"device.onNameChanged","params":[1]}"#
    );
    assert_eq!(
        written(|out| write_lost(out, "a.*", u64::MAX)),
        r#"{"jsonrpc":"2.0","method":"events.lost","params":{"pattern":"a.*","lost":18446744073709551615}}"#
    );
    assert_eq!(
        written(|out| write_ended(out, "a.*")),
        r#"{"jsonrpc":"2.0","method":"events.ended","params":{"pattern":"a.*"}}"#
    );
    let envelope = Envelope { sender: "music", timeout_ms: 4990, trace: None };
    assert_eq!(
        written(|out| write_request(out, NUMBER, "c@1", "get", &b"{}"[..], &envelope)),
        r#"{"jsonrpc":"2.0","id":7,"method":"c@1/get","params":{},"weir":{"sender":"music","timeout-ms":4990}}"#
    );
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
    let recorded = Envelope { trace: Some(trace), ..envelope };
    let recorded = written(|out| write_request(out, NUMBER, "c@1", "get", &b"{}"[..], &recorded));
    assert_eq!(json(&recorded)["weir"]["traceparent"], trace.to_string());
    assert_eq!(
        written(|out| write_cancel(out, NUMBER)),
        r#"{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":7}}"#
    );
    assert_eq!(
        written(|out| write_value(out, &Id::NULL, &json!({ "a": ["\"", 1] }))),
        r#"{"jsonrpc":"2.0","result":{"a":["\"",1]},"id":null}"#
    );
}

#[test]
fn texts_are_escaped() {
    let text = "a\"b\\c\n\0\u{7f}\u{2028}é😀";
    let event = json(&written(|out| write_event(out, text, text, 1, false, text, &b""[..])));
    for name in ["pattern", "topic", "sender"] {
        assert_eq!(event["params"][name], text);
    }
    assert_eq!(json(&written(|out| write_alias_event(out, text, &b""[..])))["method"], text);
    assert_eq!(json(&written(|out| write_lost(out, text, 1)))["params"]["pattern"], text);
    assert_eq!(json(&written(|out| write_ended(out, text)))["params"]["pattern"], text);
    let envelope = Envelope { sender: text, timeout_ms: 1, trace: None };
    let request = json(&written(|out| write_request(out, 1, text, text, &b""[..], &envelope)));
    assert_eq!(request["method"], format!("{text}/{text}"));
    assert_eq!(request["weir"]["sender"], text);
    let error = json(&written(|out| write_error(out, &Id::NULL, &Error::handler(text, text).into())));
    assert_eq!((&error["error"]["message"], &error["error"]["data"]["code"]), (&json!(text), &json!(text)));
}

#[test]
fn a_message_is_added_to_the_text_that_is_there() {
    let mut out = "[".to_owned();
    write_cancel(&mut out, 1);
    out.push(',');
    write_value(&mut out, &Id::NULL, &5);
    out.push(']');
    assert_eq!(json(&out).as_array().unwrap().len(), 2);
}

#[test]
fn a_value_that_cannot_be_written_is_an_internal_error() {
    let mut out = "[".to_owned();
    write_value(&mut out, &Id::NULL, &std::collections::BTreeMap::from([((1, 2), 3)]));
    out.push(']');
    assert_eq!(json(&out)[0]["error"]["code"], -32603);
}

#[test]
fn each_error_of_weir_has_its_code() {
    let names = ["a", "b", "a"].map(str::to_owned).to_vec();
    let cases = [
        (Error::Timeout, -32001, "timeout"),
        (Error::NoProvider("p".into()), -32002, "no-provider"),
        (Error::NotReady("p".into()), -32003, "not-ready"),
        (Error::Overloaded("p".into()), -32004, "overloaded"),
        (Error::PeerGone, -32005, "peer-gone"),
        (Error::Trapped, -32006, "trapped"),
        (Error::LimitExceeded { name: "n".into(), used: 2, allowed: 1 }, -32007, "limit-exceeded"),
        (Error::WouldDeadlock(names), -32008, "would-deadlock"),
        (Error::TooLarge { bytes: 2, allowed: 1 }, -32009, "too-large"),
        (Error::PermissionDenied("p".into()), -32011, "permission-denied"),
        (Error::UnknownContract("a@1".into()), -32601, "unknown-contract"),
        (Error::Invalid("p".into()), -32602, "invalid"),
    ];
    for (error, code, word) in cases {
        let expected = json!({
            "jsonrpc": "2.0",
            "error": { "code": code, "message": error.to_string(), "data": { "code": word } },
            "id": null,
        });
        assert_eq!(json(&written(|out| write_error(out, &Id::NULL, &error.into()))), expected);
    }
}

#[test]
fn a_providers_own_error_says_so() {
    let error = Error::handler("timeout", "the lamp does not answer");
    assert_eq!(
        written(|out| write_error(out, &Id::NULL, &error.into())),
        r#"{"jsonrpc":"2.0","error":{"code":-32010,"message":"the lamp does not answer","data":{"code":"timeout","provider":true}},"id":null}"#
    );
}

#[test]
fn a_method_that_is_not_there_looks_like_one_that_is_not_granted() {
    let error = RpcError::no_method("a@1/b", "app:page");
    assert_eq!(
        written(|out| write_error(out, &Id::NULL, &error)),
        r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no method `a@1/b` is granted to `app:page`","data":{"code":"permission-denied"}},"id":null}"#
    );
    let text = format!(r#"{{"jsonrpc":"2.0","method":"{}\u0000"}}"#, "\u{202e}".repeat(100_000));
    let long = RpcError::no_method(&request(&text).method, "app:page").message;
    assert!(long.len() < 400 && !long.contains('\u{202e}'), "{long}");
}

#[test]
fn a_method_that_needs_a_socket_says_so() {
    let error = json(&written(|out| write_error(out, &Id::NULL, &RpcError::needs_connection())));
    assert_eq!(error["error"]["code"], -32600);
    assert!(error["error"]["message"].as_str().unwrap().contains("WebSocket"));
}
