//! What apps send, right and wrong.

use std::time::Duration;

use crate::rpc::{Id, Incoming, Message, cancelled, params, parse, write_refusal};

use super::{json, nested, refusal, request, response, single, written};

/// A call of `m` with the members `more`.
fn call(more: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"m",{more}}}"#)
}

fn refused(text: &str) -> (i32, String, String) {
    let refusal = refusal(text);
    let answer = json(&written(|out| write_refusal(out, &refusal)));
    assert_eq!(answer["error"]["code"], refusal.code);
    (refusal.code, refusal.message.into_owned(), refusal.id.json().into())
}

/// Asserts the code of the refusal, that its message has these words, and its id.
#[track_caller]
fn assert_refused(text: &str, code: i32, words: &str, id: &str) {
    let (found, message, found_id) = refused(text);
    assert_eq!((found, &*found_id), (code, id), "{message}: {text}");
    assert!(message.contains(words), "{message}: {text}");
}

#[test]
fn a_request_has_everything_that_the_app_gave() {
    let text = r#" {"weir":{"provider":"music","timeout-ms":500}, "params" : {"a": 1 } ,
        "id":"a","method":"device.info@1/name","jsonrpc":"2.0","later":{"more":[]}} "#;
    let request = request(text);
    assert_eq!(request.id.unwrap().json(), "\"a\"");
    assert_eq!(request.method, "device.info@1/name");
    assert_eq!(request.params.unwrap().get(), r#"{"a": 1 }"#);
    assert_eq!((request.timeout, request.provider), (Some(Duration::from_millis(500)), Some("music".into())));
}

#[test]
fn a_notification_needs_only_a_method() {
    let request = request(r#"{"jsonrpc":"2.0","method":""}"#);
    assert_eq!((request.id, &*request.method), (None, ""));
    assert!(request.params.is_none() && request.timeout.is_none() && request.provider.is_none());
}

#[test]
fn ids_are_given_back_byte_for_byte() {
    let long = format!("\"{}\"", "é".repeat(127));
    let digits = "9".repeat(256);
    let ids = [
        "null",
        "0",
        "-0",
        "1",
        "-1",
        "1.5",
        "1.0",
        "1e400",
        "-1E-400",
        "1.000000000000000000001",
        &digits,
        "\"\"",
        r#""1""#,
        r#""\u0041""#,
        r#""\ud800""#,
        r#""\"}""#,
        r#""\/\n""#,
        "\"\u{2028}\u{feff}\"",
        "\"\u{7f}\"",
        &long,
    ];
    for id in ids {
        let text = call(&format!(r#""id": {id} "#));
        assert_eq!(request(&text).id.unwrap().json(), id);
    }
}

#[test]
fn values_that_can_be_no_id_are_refused() {
    let long = "1".repeat(257);
    for id in ["true", "false", "{}", "[]", "[1]", r#"{"a":1}"#, &long, &nested(100_000)] {
        assert_refused(&call(&format!(r#""id":{id}"#)), -32600, "`id` is not", "null");
    }
}

#[test]
fn text_that_is_not_json_is_a_parse_error() {
    let texts = [
        "",
        " ",
        "\0",
        "{",
        "[",
        "{]",
        "nul",
        "nulls",
        "{}{}",
        "{} x",
        "[1] 2",
        "[1,]",
        "\u{feff}{}",
        "'a'",
        "{\"jsonrpc\":\"2.0\",\"method\":\"a\nb\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\",}",
        "\u{c}{}",
        r#"{"jsonrpc":"2.0","method":"m","id":01}"#,
        r#"{"jsonrpc":"2.0","method":"m","id":+1}"#,
        r#"{"jsonrpc":"2.0","method":"m","id":1.}"#,
        r#"{"jsonrpc":"2.0","method":"m","id":NaN}"#,
        r#"{"jsonrpc":"2.0","method":"\x41"}"#,
        r#"{"jsonrpc":"2.0","method":"\u12"}"#,
        "{/**/}",
    ];
    for text in texts {
        assert_refused(text, -32700, "parse error: ", "null");
    }
    assert_refused("[1,2,3,4,5,6,7,8,9,", -32700, "", "null");
    assert_refused(&"[".repeat(100_000), -32700, "", "null");
    assert_refused(&r#"{"a":"#.repeat(100_000), -32700, "", "null");
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    for text in ["null", "true", "1", "\"a\"", "1e400"] {
        assert_refused(text, -32600, "a message is an object", "null");
    }
    assert_refused("{}", -32600, "`jsonrpc`", "null");
    assert_refused(r#"{"id":5}"#, -32600, "`jsonrpc`", "5");
    assert_refused(r#"{"jsonrpc":"2.0","id":5}"#, -32600, "no `method`", "5");
    assert_refused(r#"{"method":"m","id":5}"#, -32600, "`jsonrpc`", "5");
    for version in ["2", "2.0", "\"2\"", "\"1.0\"", "\"2.0 \"", "null", "[\"2.0\"]"] {
        let text = format!(r#"{{"jsonrpc":{version},"method":"m","id":"x"}}"#);
        assert_refused(&text, -32600, "`jsonrpc` is not \"2.0\"", "\"x\"");
    }
    for method in ["1", "null", "[\"m\"]", "{}", r#""\ud800""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":{method},"id":5}}"#);
        assert_refused(&text, -32600, "`method` is not a string", "5");
    }
    for params in ["null", "1", "\"a\"", "true"] {
        assert_refused(&call(&format!(r#""id":5,"params":{params}"#)), -32600, "`params` is neither", "5");
    }
    for more in [r#""result":null"#, r#""error":{}"#] {
        assert_refused(&call(&format!(r#""id":5,{more}"#)), -32600, "both a request and a response", "5");
    }
}

#[test]
fn a_member_that_is_there_twice_is_refused() {
    for name in ["jsonrpc", "method", "id", "params", "weir"] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","method":"m","id":5,"params":[],"weir":{{}},"{name}":null}}"#);
        assert_refused(&text, -32600, &format!("duplicate field `{name}`"), "null");
    }
    let text = r#"{"jsonrpc":"2.0","method":"m","\u006dethod":"n","id":5}"#;
    assert_refused(text, -32600, "duplicate field `method`", "null");
}

#[test]
fn names_and_methods_may_have_escapes() {
    let text = r#"{"\u006asonrpc":"2.\u0030","method":"a\n\u0000\"\ud83d\ude00","id":1}"#;
    assert_eq!(request(text).method, "a\n\0\"😀");
    assert_refused(r#"{"jsonrpc":"2.0","method":"m","\ud800":1}"#, -32600, "hex escape", "null");
}

#[test]
fn options_are_strict() {
    let options = |options: &str| call(&format!(r#""id":5,"weir":{options}"#));
    assert_eq!(request(&options("{}")).timeout, None);
    let longest = options(r#"{"timeout-ms":4294967295,"provider":"a\u0062"}"#);
    let longest = request(&longest);
    assert_eq!(longest.timeout, Some(Duration::from_millis(u32::MAX.into())));
    assert_eq!(longest.provider.as_deref(), Some("ab"));
    for other in ["null", "[]", "[500]", "5", "\"a\""] {
        assert_refused(&options(other), -32600, "`weir` is not an object", "5");
    }
    for timeout in ["-1", "1.5", "4294967296", "1e3", "1e400", "\"5\"", "true"] {
        assert_refused(&options(&format!(r#"{{"timeout-ms":{timeout}}}"#)), -32600, "`weir`: ", "5");
    }
    assert_refused(&options(r#"{"timeout_ms":5}"#), -32600, "unknown field `timeout_ms`", "5");
    assert_refused(&options(r#"{"provider":5}"#), -32600, "expected a string", "5");
}

#[test]
fn an_error_repeats_little_of_what_it_is_about() {
    let text = call(&format!(r#""id":5,"weir":{{"{}\u001b":1}}"#, "x\u{202e}".repeat(100_000)));
    let (_, message, _) = refused(&text);
    assert!(message.len() < 300 && !message.contains('\u{202e}'), "{message}");
}

#[test]
fn a_batch_has_an_outcome_for_each_entry() {
    let one = call(r#""id":1"#);
    let text = format!(r#"[{one}, 1, [], [{one}], {{"jsonrpc":"2.0","id":3,"result":[]}}]"#);
    let Ok(Incoming::Batch(messages)) = parse(&text, 5) else { panic!("{text}") };
    let [Ok(Message::Request(_)), Err(one), Err(two), Err(three), Ok(Message::Response(_))] = &*messages
    else {
        panic!("{messages:?}")
    };
    for refusal in [one, two, three] {
        assert_eq!((refusal.code, &refusal.id), (-32600, &Id::NULL));
    }
}

#[test]
fn a_batch_that_is_too_long_is_refused_as_a_whole() {
    let refusal = parse("[1,2,3]", 2).unwrap_err();
    assert_eq!((refusal.code, refusal.id), (-32600, Id::NULL));
    assert!(refusal.message.contains("at most 2"));
    assert!(matches!(parse("[1,2]", 2), Ok(Incoming::Batch(_))));
    assert_eq!(parse("[]", 0).unwrap_err().code, -32600);
}

#[test]
fn depth_is_no_danger() {
    let deep = nested(100_000);
    let text = call(&format!(r#""params":{deep},"id":1,"ignored":{deep}"#));
    assert_eq!(request(&text).params.unwrap().get(), deep);
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{deep}}}"#);
    assert_eq!(response(&text).outcome.unwrap(), deep);
    let Ok(Incoming::Batch(messages)) = parse(&deep, 8) else { panic!() };
    assert!(matches!(&*messages, [Err(_)]));
    for name in ["jsonrpc", "method"] {
        assert_refused(&format!(r#"{{"id":1,"{name}":{deep}}}"#), -32600, "", "1");
    }
    for name in ["weir", "params"] {
        let text = call(&format!(r#""{name}":{{"provider":{deep},"pattern":{deep}}},"id":1"#));
        if let Ok(Message::Request(request)) = single(&text) {
            params::<Pattern>(request.params).unwrap_err();
        }
    }
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"message":{deep},"data":{deep}}}}}"#);
    assert_eq!(response(&text).outcome.unwrap_err().code, "failed");
}

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    pattern: String,
}

#[test]
fn parameters_of_built_in_methods_are_given_by_name() {
    let pattern = |text: &str| params::<Pattern>(request(&call(text)).params).map_err(|error| error.message);
    assert_eq!(pattern(r#""params":{"pattern":"a.*"}"#), Ok(Pattern { pattern: "a.*".into() }));
    assert_eq!(pattern(r#""id":1"#), Err("missing field `pattern`".into()));
    let positional = pattern(r#""params":["a.*"]"#).unwrap_err();
    assert!(positional.contains("by name"), "{positional}");
    let unknown = pattern(r#""params":{"pattern":"a","to":1}"#);
    assert_eq!(unknown, Err("unknown field `to`, expected `pattern`".into()));
    assert_eq!(
        pattern(r#""params":{"pattern":7}"#),
        Err("invalid type: integer `7`, expected a string".into())
    );
    let error = params::<Pattern>(None).unwrap_err();
    assert_eq!((error.code, error.word.as_deref()), (-32602, Some("invalid")));
}

#[test]
fn a_request_is_cancelled_by_its_id_as_it_was_written() {
    let id = |text: &str| cancelled(request(&call(text)).params).map(|id| id.json().to_owned());
    assert_eq!(id(r#""params":{"id": 1e400}"#).as_deref(), Some("1e400"));
    assert_eq!(id(r#""params":{"id":null}"#).as_deref(), Some("null"));
    for wrong in [r#""params":{}"#, r#""params":[1]"#, r#""params":{"id":[]}"#, r#""id":1"#] {
        assert_eq!(id(wrong), None, "{wrong}");
    }
}
