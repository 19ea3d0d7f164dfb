//! Where limits come from, and what is shown of their use.

use std::{path::Path, sync::Arc, time::Instant};

use weir_bus::Access;
use weir_config::{LimitHit, LimitName, Loader, ReloadMode};

use super::*;
use crate::test_bus;

const FILE: &str = r#"
[main]
request-timeout = "7s"
[limits.small]
inherits = "min"
memory = "8 MiB"
[limits.smaller]
inherits = "small"
stop-timeout = "1s"
[[extension]]
id = "plain"
path = "a.wasm"
[[extension]]
id = "own"
path = "a.wasm"
class = "smaller"
limits.stop-timeout = "250ms"
limits.request-timeout = "3s"
[[extension]]
id = "class"
path = "a.wasm"
class = "smaller"
"#;

fn parsed() -> Config {
    Loader::new().parse(FILE, "weir.toml", Path::new("/")).unwrap()
}

fn unit(id: &str) -> Unit {
    let id: ExtensionId = id.parse().unwrap();
    let peer = test_bus::bus().add_peer(&id, test_bus::LIMITS, Access::default(), None);
    Unit::new(ExtensionConfig::new(id, "a.wasm").into(), peer, Arc::default())
}

#[tokio::test]
async fn every_limit_says_where_it_comes_from() {
    let mut config = parsed();
    let mut embedded = ExtensionConfig::new("embedded".parse().unwrap(), "a.wasm");
    embedded.limits.memory = 1024 * 1024;
    config.extensions.push(embedded);
    config.extensions[0].limits.log_rate = 7;
    let report = LimitsReport::configured(&config).await;
    let source = |id: &str, key: &str| {
        let of = report.extensions.iter().find(|extension| extension.id.as_str() == id).unwrap();
        let limit = of.limits.iter().find(|limit| limit.key == key).unwrap();
        format!("{} from {}", limit.text, limit.source)
    };
    assert_eq!(source("plain", "memory"), "16896 KiB from built in, `medium`");
    assert_eq!(source("plain", "request-timeout"), "7s from `main.request-timeout`");
    assert_eq!(source("plain", "log-rate"), "7 from the embedding program");
    assert_eq!(source("own", "cpu-share"), "10% from built in, `min`");
    assert_eq!(source("own", "memory"), "8 MiB from weir.toml:6");
    assert_eq!(source("own", "stop-timeout"), "250ms from weir.toml:17");
    assert_eq!(source("own", "request-timeout"), "3s from weir.toml:18");
    assert_eq!(source("class", "memory"), "8 MiB from weir.toml:6");
    assert_eq!(source("class", "stop-timeout"), "1s from weir.toml:9");
    assert_eq!(source("embedded", "memory"), "1 MiB from the embedding program");
    assert_eq!(source("embedded", "stack"), "1 MiB from built in, `medium`");
}

#[test]
fn memory_is_summed_over_all_whoever_is_asked_for() {
    let (units, mut main) = ([unit("a"), unit("b")], MainConfig::default());
    let version = units[1].version();
    let mut overlapping = (*version.config).clone();
    overlapping.reload = ReloadMode::Overlap;
    units[1].set_version(units[1].next_version(overlapping.into(), version.peer.clone(), None));
    main.memory_budget = Some(64 * 1024 * 1024);
    let report = LimitsReport::running(&units.map(Arc::new), &main, None, 0, |id| id.as_str() == "b");
    // 16.5 MiB of memory, 1 MiB of stack, and an inbox of twice 1 MiB.
    let (one, overlapping) = (39 << 19, 74 << 19);
    assert_eq!((report.memory_sum, report.memory_budget), (one + overlapping, main.memory_budget));
    let [b] = &report.extensions[..] else { panic!("{report:?}") };
    assert_eq!((b.id.as_str(), b.memory_sum), ("b", overlapping));
}

#[test]
fn use_is_shown_of_each_limit_but_those_that_nothing_measures() {
    let unit = unit("a");
    let unmeasured = || -> Vec<&str> {
        LIMIT_KEYS.iter().filter(|key| used(key.used, &unit).is_none()).map(|key| key.name).collect()
    };
    // A start or stop that has not happened has no duration.
    let never = ["file-size", "code-size", "compile-memory", "compile-timeout"];
    let of_an_instance =
        ["stack", "time-per-message", "http.header-size", "http.timeout", "http.total-timeout", "resources"];
    let at_first = ["ready-timeout", "request-timeout", "handler-timeout", "stop-timeout"];
    assert_eq!(unmeasured(), [&of_an_instance[..], &at_first, &never].concat());
    unit.usage.ready.set(1);
    unit.usage.stop.set(1);
    assert_eq!(unmeasured(), [&of_an_instance[..], &["request-timeout", "handler-timeout"], &never].concat());
}

#[test]
fn use_is_what_the_extension_and_the_bus_count() {
    let unit = unit("a");
    let usage = &unit.usage;
    usage.memory.set(300);
    usage.memory.set(200);
    usage.cpu_second.add(Instant::now(), 500_000_000);
    usage.in_hand.set(2);
    usage.under_way.set(5);
    usage.under_way.set(1);
    usage.ready.set(1_500_000_000);
    usage.add_delay(2_000_000_000);
    usage.log_dropped.store(4, Ordering::Relaxed);
    unit.version().peer.check_size(&vec![0; 1000].into()).unwrap();
    unit.version().peer.check_size(&vec![0; 1025].into()).unwrap_err();
    let report = LimitsReport::running(&[Arc::new(unit)], &MainConfig::default(), None, 0, |_| true);
    let json = serde_json::to_value(report).unwrap();
    let extension = &json["extensions"][0];
    let limits = extension["limits"].as_array().unwrap();
    let limit = |key: &str| limits.iter().find(|limit| limit["key"] == key).unwrap();
    let uses = |key: &str| {
        let limit = limit(key);
        format!("{} {} {}", limit["used"], limit["peak"], limit["unit"].as_str().unwrap())
    };
    assert_eq!(uses("memory"), "200 300 bytes");
    let share = limit("cpu-share")["peak"].as_f64().unwrap();
    assert!((share - 0.5).abs() < 1e-9, "{share}");
    assert_eq!(uses("in-flight"), "2 5 requests");
    assert_eq!(uses("ready-timeout"), "1.5 1.5 s");
    assert_eq!(uses("message-size"), "null 1000 bytes");
    assert_eq!(uses("inbox.messages"), "0 0 messages");
    assert_eq!(uses("stack"), "null null bytes");
    assert_eq!((&extension["delayed-seconds"], &extension["log-dropped"]), (&2.0.into(), &4.into()));
}

#[tokio::test]
async fn programs_read_numbers_in_units_that_people_use() {
    let json = serde_json::to_value(LimitsReport::configured(&parsed()).await).unwrap();
    let extension = &json["extensions"][0];
    let limits = extension["limits"].as_array().unwrap();
    let limit = |key: &str| limits.iter().find(|limit| limit["key"] == key).unwrap();
    assert_eq!(limit("memory")["allowed"], 33 * 512 * 1024);
    assert_eq!(limit("stop-timeout")["allowed"], 5.0);
    assert_eq!(limit("cpu-share")["allowed"], 0.5);
    let source = |key: &str| limit(key)["source"].clone();
    assert_eq!(
        source("cpu-share"),
        serde_json::json!({"kind":"class","name":"medium","text":"built in, `medium`"})
    );
    assert_eq!(
        source("request-timeout"),
        serde_json::json!({"kind":"main","name":"request-timeout","text":"`main.request-timeout`"})
    );
    let of_file = &json["extensions"][1]["limits"][0]["source"];
    assert_eq!(*of_file, serde_json::json!({"file":"weir.toml","kind":"file","line":6,"text":"weir.toml:6"}));
    assert!(limit("memory")["used"].is_null() && extension["delayed-seconds"].is_null());
    let fuel_slice = if weir_config::INTERPRETED { 6_250 } else { 100_000 };
    assert_eq!(extension["fixed"]["fuel-slice"], fuel_slice);
    assert_eq!(extension["transfer"], 1088 * 1024);
}

#[test]
fn the_limit_of_a_failure_is_in_the_same_units() {
    let json =
        |limit: LimitName, used, allowed| serde_json::to_value(LimitHit::new(limit, used, allowed)).unwrap();
    assert_eq!(
        json(LimitName::TOTAL_TIMEOUT, 1_000_000, 2_000_000),
        serde_json::json!({"allowed":0.002,"name":"total-timeout","unit":"s","used":0.001})
    );
    assert_eq!(
        json(LimitKey::STACK.into(), 1, 2),
        serde_json::json!({"allowed":2,"name":"stack","unit":"bytes","used":1})
    );
    assert_eq!(
        json(LimitKey::READY_TIMEOUT.into(), 250_000_000, 250_000_000),
        serde_json::json!({"allowed":0.25,"name":"ready-timeout","unit":"s","used":0.25})
    );
    assert_eq!(
        json(LimitName::TRANSFER, 1, 2),
        serde_json::json!({"allowed":2,"name":"transfer","unit":"bytes","used":1})
    );
    assert_eq!(
        json(LimitName::TABLES, 1, 2),
        serde_json::json!({"allowed":2,"name":"tables","unit":"count","used":1})
    );
    assert_eq!(
        json(LimitKey::FUEL_PER_MESSAGE.into(), 1, 2),
        serde_json::json!({"allowed":2,"name":"fuel-per-message","unit":"fuel","used":1})
    );
}
