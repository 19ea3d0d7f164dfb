//! What is written holds what it was given.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, value::RawValue};

use crate::rpc::{Envelope, Id, Incoming, Message, parse, write_event, write_request, write_result};

use super::{json, request, response, written};

/// JSON, JSON with a fault, or anything.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 32, 4, |inner| {
        let name = prop_oneof![Just("$base64".to_owned()), any::<String>()];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name, inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    });
    let text = value.prop_map(|value| value.to_string().into_bytes());
    let faulty =
        (text.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, place, byte)| {
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes
        });
    // A number beyond `f64` is JSON, but no `Value`, with which the tests read.
    let is_readable = |payload: &Vec<u8>| {
        serde_json::from_slice::<&RawValue>(payload).is_err()
            || serde_json::from_slice::<Value>(payload).is_ok()
    };
    prop_oneof![text, faulty, vec(any::<u8>(), 0..64)].prop_filter("a number beyond `f64`", is_readable)
}

/// The payload as it must come back.
fn as_it_comes(payload: &[u8]) -> &[u8] {
    // JSON has no empty value, and the blanks around it are not part of it.
    match payload {
        b"" => b"null",
        payload if serde_json::from_slice::<serde::de::IgnoredAny>(payload).is_ok() => payload.trim_ascii(),
        payload => payload,
    }
}

proptest! {
    #[test]
    fn a_payload_comes_back_from_an_answer(payload in payload()) {
        let text = request(r#"{"jsonrpc":"2.0","method":"m","id":7}"#).id.map(|id| {
            written(|out| write_result(out, &id, &payload))
        });
        let outcome = response(&text.unwrap()).outcome.unwrap();
        prop_assert_eq!(&*outcome, as_it_comes(&payload));
    }

    #[test]
    fn a_payload_comes_back_from_a_request(payload in payload(), timeout: u64, number: u32) {
        let envelope = Envelope { sender: "a", timeout_ms: timeout, trace: None };
        let text = written(|out| write_request(out, number, "c@1", "o", &payload, &envelope));
        let members = json(&text);
        prop_assert_eq!(&members["id"], number);
        prop_assert_eq!(&members["weir"]["timeout-ms"], timeout);
        // It has options that only Main gives.
        let text = text.replace(&format!(r#","weir":{{"sender":"a","timeout-ms":{timeout}}}"#), "");
        let params = request(&text).params;
        prop_assert_eq!(params.is_none(), payload.is_empty());
        let back = crate::rpc::payload(params).unwrap();
        prop_assert_eq!(&*back, if payload.is_empty() { b"" } else { as_it_comes(&payload) });
    }

    #[test]
    fn an_event_has_its_texts_as_they_are(text: String, sequence: u64, is_retained: bool, payload in payload()) {
        let event = written(|out| write_event(out, &text, &text, sequence, is_retained, &text, &payload));
        let params = &json(&event)["params"];
        for name in ["pattern", "topic", "sender"] {
            prop_assert_eq!(&params[name], text.as_str());
        }
        prop_assert_eq!(&params["sequence"], sequence);
        prop_assert_eq!(&params["retained"], is_retained);
    }

    #[test]
    fn an_id_comes_back_as_it_was(
        number in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,9})?",
        text: String,
    ) {
        for id in [number, Value::from(text).to_string()] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#);
            match parse(&text, 1) {
                Ok(Incoming::Single(Ok(Message::Request(request)))) => {
                    prop_assert_eq!(request.id.as_ref().map(Id::json), Some(&*id));
                }
                _ => prop_assert!(id.len() > 256),
            }
        }
    }
}
