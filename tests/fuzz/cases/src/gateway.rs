//! Texts of apps and payloads of extensions, without the gateway around them.

use std::{borrow::Cow, collections::HashMap};

use serde_json::{Value, value::RawValue};
use weir_gateway::fuzzing::{Read, read, write};

const MAX_BATCH: usize = 8;

/// An object's members as they stand.
type Members<'t> = HashMap<Cow<'t, str>, &'t RawValue>;

/// Reads the input as an app's text, and writes it as an extension's payload.
///
/// What is written is one JSON object with the members that it must have, and a payload comes back as it was. An answer
/// has the id of its request byte for byte.
pub fn gateway(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check_written(data, &text);
    let messages = read(&text, MAX_BATCH);
    assert!((1..=MAX_BATCH).contains(&messages.len()));
    // Several members of one name are refused, so the last is the only one.
    let ids = serde_json::from_str::<Members<'_>>(&text).ok().map(|members| members.get("id").copied());
    for message in messages {
        match message {
            Read::Refused(answer) => {
                let id = members(&answer)["id"].get();
                assert!(id == "null" || text.contains(id));
                check_answer(&answer, id);
            }
            Read::Request { id, payload, answers } => {
                if let Some(given) = ids {
                    assert_eq!(id.as_deref(), given.map(RawValue::get));
                }
                assert!(id.as_deref().is_none_or(|id| text.contains(id)));
                let id = id.as_deref().unwrap_or("null");
                answers.iter().for_each(|answer| check_answer(answer, id));
                if let Some(payload) = payload {
                    check_written(&payload, &text);
                }
            }
            Read::Response { id, outcome } => {
                if let Some(given) = ids {
                    assert_eq!(given.unwrap().get(), id.to_string());
                }
                match outcome {
                    Ok(payload) => check_written(&payload, "a"),
                    Err(code) => assert!((1..=64).contains(&code.len())),
                }
            }
            Read::Stray => {}
        }
    }
}

fn check_answer(answer: &str, id: &str) {
    let members = members(answer);
    assert_eq!(members["id"].get(), id);
    assert_eq!(members.len(), 3);
    assert_ne!(members.contains_key("result"), members.contains_key("error"));
    if let Some(error) = members.get("error") {
        let error: Value = serde_json::from_str(error.get()).unwrap();
        assert!(error["code"].is_i64() && error["message"].is_string(), "{error}");
    }
}

fn check_written(payload: &[u8], text: &str) {
    let [answer, event, alias, request] = write(payload, text);
    check_answer(&answer, "7");
    match &*read(&answer, 1) {
        [Read::Response { id: 7, outcome: Ok(back) }] if is_same(back, payload) => {}
        other => panic!("{other:?}"),
    }
    let members = members(&event);
    assert_eq!(members.len(), 3);
    let params: Members<'_> = serde_json::from_str(members["params"].get()).unwrap();
    assert_eq!(params.len(), 6);
    for name in ["pattern", "topic", "sender"] {
        assert_eq!(serde_json::from_str::<String>(params[name].get()).unwrap(), text);
    }
    let result = self::members(&answer)["result"];
    assert_eq!(params["payload"].get(), result.get());
    let (alias, request) = (self::members(&alias), self::members(&request));
    let with_params = usize::from(!payload.is_empty());
    assert_eq!((alias.len(), request.len()), (2 + with_params, 4 + with_params));
    assert_eq!(request["id"].get(), "7");
    let [alias, request] = [alias, request].map(|members| members.get("params").map(|params| params.get()));
    assert_eq!(alias, request);
    assert!(alias.is_none_or(|params| params.starts_with(['{', '['])));
}

/// Whether an app gives `back` what it was given. JSON has no empty value, and the blanks around it are not part of it.
fn is_same(back: &[u8], payload: &[u8]) -> bool {
    let is_json = || serde_json::from_slice::<&RawValue>(payload).is_ok();
    match payload {
        b"" => back == b"null",
        _ => back == payload || back == payload.trim_ascii() && is_json(),
    }
}

fn members(json: &str) -> Members<'_> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}
