//! Responses of apps that serve.

use super::{Message, response, single};

#[test]
fn an_app_answers_with_a_result() {
    let cases = [
        (r#"{"a": [1] }"#, r#"{"a": [1] }"#),
        ("null", "null"),
        ("1e400", "1e400"),
        (r#"{"$base64":"AP8="}"#, "\0\u{ff}"),
        (r#"{"$base64":""}"#, ""),
    ];
    for (result, expected) in cases {
        let response = response(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#));
        let expected: Vec<u8> = expected.chars().map(|c| u8::try_from(c).unwrap()).collect();
        assert_eq!((response.id, &*response.outcome.unwrap()), (7, &*expected));
    }
}

#[test]
fn an_app_answers_with_an_error() {
    let cases = [
        (r#"{"code":-1,"message":"no key","data":{"code":"not-found"}}"#, "not-found", "no key"),
        (r#"{"code":-1,"message":"a\"b","data":{"code":"x","more":[]}}"#, "x", "a\"b"),
        (r#"{"code":-1,"message":"m"}"#, "failed", "m"),
        (r#"{"message":"m","data":null}"#, "failed", "m"),
        (r#"{"message":"m","data":["code"]}"#, "failed", "m"),
        (r#"{"message":"m","data":{"code":5}}"#, "failed", "m"),
        (r#"{"message":"m","data":{"code":""}}"#, "failed", "m"),
        (r#"{"message":"m","data":{}}"#, "failed", "m"),
    ];
    for (error, code, message) in cases {
        let response = response(&format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#));
        let error = response.outcome.unwrap_err();
        assert_eq!((response.id, &*error.code, &*error.message), (7, code, message));
    }
}

#[test]
fn a_long_error_is_cut() {
    let (code, message) = ("c".repeat(65), "é".repeat(4096));
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"message":"{message}","data":{{"code":"{code}"}}}}}}"#);
    let error = response(&text).outcome.unwrap_err();
    assert_eq!((error.code.len(), error.message.len()), (64, 4096));
}

#[test]
fn a_malformed_response_ends_the_wait_of_its_request() {
    let members = [
        r#""result":1"#,
        r#""jsonrpc":"1.0","result":1"#,
        r#""jsonrpc":"2.0","result":1,"error":{"message":"m"}"#,
        r#""jsonrpc":"2.0","result":{"$base64":"!"}"#,
        r#""jsonrpc":"2.0","error":null"#,
        r#""jsonrpc":"2.0","error":"m""#,
        r#""jsonrpc":"2.0","error":[1,"m"]"#,
        r#""jsonrpc":"2.0","error":{}"#,
        r#""jsonrpc":"2.0","error":{"message":1}"#,
    ];
    for members in members {
        let response = response(&format!(r#"{{"id":7,{members}}}"#));
        let error = response.outcome.unwrap_err();
        assert_eq!((response.id, &*error.code), (7, "failed"));
        assert!(error.message.starts_with("malformed response: "), "{}", error.message);
    }
}

#[test]
fn a_response_to_no_request_of_ours_is_not_answered() {
    let ids = ["null", "\"7\"", "7.0", "7e0", "-7", "4294967296", "[7]", "true"];
    for id in ids {
        for outcome in [r#""result":1"#, r#""error":{"code":-32700,"message":"parse error"}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#);
            assert!(matches!(single(&text), Ok(Message::Stray)), "{text}");
        }
    }
    assert!(matches!(single(r#"{"result":1}"#), Ok(Message::Stray)));
}
