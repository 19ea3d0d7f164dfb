use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::*;

/// Reads a report, which is written as it was read.
fn read<T: DeserializeOwned + Serialize>(json: &Value) -> T {
    let report: T = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), *json);
    report
}

fn extension() -> Value {
    json!({
        "id": "storage.2", "state": "backing-off", "since": "2026-03-01T10:00:01.250Z", "restarts": 1,
        "cpu-seconds": 0.0123, "cpu-share": 0.004, "memory": 65536, "memory-limit": 131072, "inbox-messages": 0,
        "inbox-bytes": 0, "received": 120, "sent": 3, "shed": 0, "late": 0, "class": "medium",
        "fulfills": ["local.storage@1"],
        "failures": [{
            "extension": "storage.2", "time": "2026-03-01T10:00:01.250Z", "cause": "not ready in time",
            "handling": { "message": 7, "sender": "main", "operation": "a@1 do" },
            "limit": { "name": "ready-timeout", "unit": "s", "used": 10.25, "allowed": 10.0 },
            "then": "backing-off", "next-restart": "2026-03-01T10:00:02.500Z",
        }],
    })
}

#[test]
fn reports_are_written_as_they_are_read() {
    let status: ExtensionStatus = read(&extension());
    let limit = status.failures[0].limit.as_ref().unwrap();
    assert_eq!((limit.used, limit.name.unit()), (10_250_000_000, LimitUnit::Seconds));
    read::<PeerStatus>(&json!({
        "name": "app:player", "fulfills": [], "sessions-so-far": 5, "denied": 2, "sent": 9, "received": 1, "shed": 4,
        "late": 0, "sessions": [{
            "id": 3, "name": "app:player", "since": "2026-11-20T11:14:02.500Z", "proof": "token", "in-flight": 2,
            "waiting": 1, "waiting-bytes": 150, "subscriptions": 1, "serves": ["a@1"], "sent": 1, "received": 2,
            "shed": 0, "late": 0,
        }],
    }));
    read::<OperationStatus>(&json!({
        "provider": "a", "contract": "a@1", "operation": "do", "failed": { "timeout": 1 },
        "durations": { "sum": 0.5, "buckets": [0, 1] },
    }));
}

#[test]
fn what_an_older_main_does_not_say_and_what_only_a_newer_one_says_costs_no_report() {
    let mut json = extension();
    for field in ["cpu-share", "fulfills", "failures"] {
        json.as_object_mut().unwrap().remove(field);
    }
    (json["state"], json["mood"]) = ("asleep".into(), "good".into());
    let status: ExtensionStatus = serde_json::from_value(json).unwrap();
    assert_eq!((status.state, status.failures), (ExtensionState::Other, Vec::new()));
}

#[test]
fn a_hit_of_each_unit_is_read_as_it_is_kept() {
    for (limit, unit, used) in [
        (LimitName::OUTPUT, json!("bytes"), json!(1_000_000_000_000_000_u64)),
        (LimitName::new("cpu-share", LimitUnit::Share), json!("share"), json!(0.2501)),
        (LimitName::CALL, json!("s"), json!(0.000_000_001)),
        (LimitName::TABLES, json!("count"), json!(3)),
    ] {
        let hit: LimitHit =
            read(&json!({ "name": limit.as_str(), "unit": unit, "used": used, "allowed": used }));
        assert_eq!(hit.name, limit);
    }
    let newer = json!({ "name": "heat", "unit": "kelvin", "used": 300, "allowed": 290 });
    let newer: LimitHit = serde_json::from_value(newer).unwrap();
    assert_eq!((newer.name.as_str(), newer.name.unit(), newer.used), ("heat", LimitUnit::Count, 300));
}

#[test]
fn a_span_has_what_its_kind_has() {
    let mut span = json!({
        "number": 7, "trace": "0af7651916cd43dd8448eb211c80319c", "span": "b7ad6b7169203331", "kind": "request",
        "contract": "a@1", "operation": "do", "caller": "main", "provider": "a",
        "link": { "trace": "0af7651916cd43dd8448eb211c80319d", "span": "b7ad6b7169203332" },
        "start": "2026-11-25T20:00:00.000001003Z", "duration-seconds": 0.5, "waited-seconds": 0.000_001, "fuel": 7,
        "outcome": "timeout",
    });
    assert!(matches!(read::<Span>(&span).kind, SpanKind::Request { .. }));
    (span["kind"], span["mood"]) = ("wish".into(), json!([1]));
    assert_eq!(serde_json::from_value::<Span>(span.clone()).unwrap().kind, SpanKind::Other);
    span["span"] = "0000000000000000".into();
    serde_json::from_value::<Span>(span).unwrap_err();
}
