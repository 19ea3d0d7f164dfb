//! Payloads between bytes and JSON.

use bytes::Bytes;
use serde_json::{Value, json, value::RawValue};

use crate::rpc::{
    Envelope, Id, payload, payload_value, write_alias_event, write_event, write_request, write_result,
};

use super::{NUMBER, json, nested, written};

const ENVELOPE: Envelope<'_> = Envelope { sender: "a", timeout_ms: 5, trace: None };

/// What a payload becomes in an answer.
fn sent(payload: &[u8]) -> Value {
    let answer = json(&written(|out| write_result(out, &Id::NULL, payload)));
    let members: Vec<_> = answer.as_object().unwrap().keys().collect();
    assert_eq!(members.len(), 3, "{answer}");
    answer["result"].clone()
}

/// What an app's JSON becomes.
fn read(text: &str) -> Result<Bytes, String> {
    payload(Some(serde_json::from_str::<&RawValue>(text).unwrap())).map_err(|error| error.message)
}

#[track_caller]
fn assert_sent_as_bytes(payload: &[u8]) {
    let sent = sent(payload);
    let members = sent.as_object().unwrap_or_else(|| panic!("{sent}"));
    assert_eq!(members.keys().collect::<Vec<_>>(), ["$base64"], "{sent}");
    assert_eq!(read(&sent.to_string()).unwrap(), payload);
}

#[test]
fn json_is_sent_as_it_stands() {
    for text in
        ["null", "0", "\"a\"", "[1,  2]", "{\n\"a\"\r:\t{} }", r#""\ud83d\ude00\u2028""#, "\"\u{2028}😀\""]
    {
        let answer = written(|out| write_result(out, &Id::NULL, text.as_bytes()));
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","result":{text},"id":null}}"#));
    }
    for grammatical in ["1e400", "-0", "123456789012345678901234567890", r#""\ud800""#] {
        let answer = written(|out| write_result(out, &Id::NULL, grammatical.as_bytes()));
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","result":{grammatical},"id":null}}"#));
    }
    assert_eq!(sent(b" \n{\"a\":1}\n"), json!({ "a": 1 }));
}

#[test]
fn no_payload_is_null() {
    assert_eq!(sent(b""), Value::Null);
}

#[test]
fn bytes_that_are_not_exactly_one_json_value_do_not_break_out_of_the_message() {
    let attempts: [&[u8]; 40] = [
        b" ",
        b"\n",
        b"\0",
        b"1,\"x\":2",
        b"1}",
        b"1},{\"a\":1",
        b"{}{}",
        b"{} {}",
        b"[1]]",
        b"[1}",
        b"]",
        b"}",
        b"\"a",
        b"\"a\\",
        b"\"a\"\"",
        b"a\"",
        b"\"a\nb\"",
        b"\"a\0b\"",
        b"\"\\x41\"",
        b"\"\\u12\"",
        b"\\u0022",
        b"'a'",
        b"NaN",
        b"-",
        b"-Infinity",
        b"0x10",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"1e",
        b"tru",
        b"true1",
        b"[1,]",
        b"{\"a\":1,}",
        b"{a:1}",
        b"1 // c",
        b"1 /* c */",
        b"\xef\xbb\xbf1",
        b"null\0",
    ];
    for attempt in attempts {
        assert_sent_as_bytes(attempt);
    }
}

#[test]
fn json_that_is_not_utf_8_does_not_break_out_of_the_message() {
    let attempts: [&[u8]; 8] = [
        b"\"\xff\"",
        b"\"\xc3\"",
        b"\"\xc0\xa2\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf4\x90\x80\x80\"",
        b"{\"\xff\":1}",
        b"1\xff",
        b"\"a\"\xe2\x80",
    ];
    for attempt in attempts {
        assert_sent_as_bytes(attempt);
    }
}

#[test]
fn json_that_an_app_would_take_for_bytes_is_sent_as_bytes() {
    let look_alikes = [
        r#"{"$base64":"AA=="}"#,
        r#" { "$base64" : 5 } "#,
        r#"{"\u0024base64":"AA=="}"#,
        r#"{"$base64":1,"$base64":"AA=="}"#,
        r#"{"$base64":{}}"#,
    ];
    for text in look_alikes {
        assert_sent_as_bytes(text.as_bytes());
    }
    let others = [
        r#"{"$base64":"AA==","a":1}"#,
        r#"{"a":1,"$base64":"AA=="}"#,
        r#"{"$base6":"AA=="}"#,
        r#"["$base64","AA=="]"#,
        r#"[{"$base64":"AA=="}]"#,
        r#"{"$":{"$base64":""}}"#,
    ];
    for text in others {
        assert_eq!(sent(text.as_bytes()), json(text));
        assert_eq!(read(text).unwrap(), text);
    }
}

#[test]
fn json_of_any_depth_can_be_read_by_an_app() {
    for depth in [100, 101, 127, 128, 100_000] {
        let deep = nested(depth);
        assert_eq!(sent(deep.as_bytes()).is_array(), depth <= 100, "{depth}");
        let event = written(|out| write_event(out, "a", "a", 1, false, "b", deep.as_bytes()));
        json(&event);
        json(&written(|out| write_request(out, 1, "c@1", "o", deep.as_bytes(), &ENVELOPE)));
        if depth > 100 {
            assert_sent_as_bytes(deep.as_bytes());
        }
    }
    let unclosed = "[".repeat(100_000);
    assert_sent_as_bytes(unclosed.as_bytes());
    let flat = format!("[{}1]", r#"[],{},"[[\"{",[{}],"#.repeat(1000));
    assert_eq!(sent(flat.as_bytes()), json(&flat));
    let escapes = format!(r#"["\\",{}["\"{{[\\"]]"#, "[],".repeat(200));
    assert_eq!(sent(escapes.as_bytes()), json(&escapes));
}

#[test]
fn an_app_sends_bytes_as_base64() {
    for text in
        [r#"{"$base64":"+/8A"}"#, " { \"$base64\"\t:\n\"+\\/8\\u0041\" } ", r#"{"\u0024base64":"+/8A"}"#]
    {
        assert_eq!(read(text).unwrap(), &b"\xfb\xff\0"[..], "{text}");
    }
    assert_eq!(read(r#"{"$base64":""}"#).unwrap(), "");
    for text in [r#"{"$base64":"AA=="}"#, r#"{"$base64":"AA"}"#] {
        assert_eq!(read(text).unwrap(), &b"\0"[..], "{text}");
    }
}

#[test]
fn what_is_not_base64_is_refused() {
    for text in [
        r#"{"$base64":"A"}"#,
        r#"{"$base64":"A==="}"#,
        r#"{"$base64":"-_8A"}"#,
        r#"{"$base64":"AA==AA=="}"#,
        r#"{"$base64":"A A="}"#,
        r#"{"$base64":"AB=="}"#,
        r#"{"$base64":null}"#,
        r#"{"$base64":5}"#,
        r#"{"$base64":["AA=="]}"#,
        r#"{"$base64":"\ud800"}"#,
    ] {
        assert_eq!(read(text), Err("`$base64` is not base64".into()), "{text}");
    }
    let twice = r#"{"$base64":"AA==","$base64":"AA=="}"#;
    assert_eq!(read(twice), Err("`$base64` is there twice".into()));
}

#[test]
fn any_other_json_is_the_payload() {
    assert_eq!(payload(None).unwrap(), "");
    for text in ["{}", "[]", "null", "5", "\"a\"", "{ \"a\" : \"\\u0041\" }", r#"{"\ud800":1}"#] {
        assert_eq!(read(text).unwrap(), text);
    }
}

#[test]
fn parameters_are_objects_or_arrays() {
    let params = |payload: &'static str| {
        let request =
            json(&written(|out| write_request(out, NUMBER, "c@1", "o", payload.as_bytes(), &ENVELOPE)));
        let event = json(&written(|out| write_alias_event(out, "m", payload.as_bytes())));
        assert_eq!(request.get("params"), event.get("params"));
        request.get("params").cloned()
    };
    assert_eq!(params(""), None);
    assert_eq!(params("[1]"), Some(json!([1])));
    assert_eq!(params("{\"a\":1}"), Some(json!({ "a": 1 })));
    for scalar in ["null", "5", "\"a\"", "a"] {
        assert_eq!(read(&params(scalar).unwrap().to_string()).unwrap(), scalar);
    }
}

#[test]
fn a_payload_is_a_member_of_a_result() {
    assert_eq!(payload_value(b"").get(), "null");
    assert_eq!(payload_value(b"[1,  2]").get(), "[1,  2]");
    assert_eq!(payload_value(b"\xff").get(), r#"{"$base64":"/w=="}"#);
}
