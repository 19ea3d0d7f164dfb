//! Traces: recorded when asked, shown as trees, bounded whatever strangers send.

use std::{collections::BTreeMap, fs, thread};

use serde_json::Value;

use super::support::{PUPPETS, Running, until};

/// Three extensions, each of which passes requests on to the next.
pub(super) const RELAYS: &str = r#"
[[extension]]
id = "first"
path = "relay.wasm"
fulfills = ["first@1"]
wants = ["second@1"]
config = { contract = "first@1", next = "second@1" }

[[extension]]
id = "second"
path = "relay.wasm"
fulfills = ["second@1"]
wants = ["third@1"]
config = { contract = "second@1", next = "third@1" }

[[extension]]
id = "third"
path = "relay.wasm"
fulfills = ["third@1"]
config = { contract = "third@1", next = "none@1" }
"#;

/// Has the request pass through all three, as part of these traces, all at once.
pub(super) fn pass_through(main: &Running, traces: u32) {
    thread::scope(|scope| {
        for trace in 1..=traces {
            scope.spawn(move || {
                let (head, body) = main.http(&format!(
                    "POST /v1/call/first@1/pass HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\
                     traceparent: 00-{trace:032x}-00000000000000aa-01\r\ncontent-length: 1\r\n\r\n\u{2}"
                ));
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                assert!(body.ends_with("thirdsecondfirst"), "{body}");
            });
        }
    });
}

fn spans(main: &Running, query: &str) -> Value {
    let (head, body) =
        main.http(&format!("GET /v1/spans{query} HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head} {body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn a_traced_call_shows_where_its_time_went() {
    let main = Running::with(RELAYS);
    let call = main.weir_with_stdin(&["call", "--raw", "--trace", "first@1", "pass", "-"], &[2]);
    let tree = call.stderr;
    assert!(call.code == 0 && call.stdout.ends_with("thirdsecondfirst"), "{tree}");
    let width = tree.find("FROM").unwrap();
    let first_column = |line: &str| line.chars().take(width).collect::<String>().trim_end().to_owned();
    let shape: Vec<_> = tree.lines().map(first_column).collect();
    assert_eq!(shape, ["SPAN", "first first@1 pass", "└─ second second@1 pass", "   └─ third third@1 pass"]);
    let outcomes = tree.lines().skip(1).all(|line| line.ends_with("  ok") && !line.contains("  -"));
    assert!(outcomes, "each has a time, fuel and an outcome:\n{tree}");

    let list = main.weir(&["trace"]).good();
    let line = list.lines().nth(1).unwrap();
    assert!(line.contains("  3  ") && line.ends_with("ok       main to first first@1 pass"), "{list}");
    let trace = line.split(' ').next().unwrap();
    assert_eq!(main.weir(&["trace", trace]).good(), tree);
    assert_eq!(main.weir(&["trace", "--slow", "--number", "1"]).good(), list);
    let json = main.json(&["trace", trace, "--json"]);
    assert_eq!(json.as_array().unwrap().len(), 3);

    // Nothing else is recorded.
    main.weir_with_stdin(&["call", "--raw", "first@1", "pass", "-"], &[2]).good();
    assert_eq!(spans(&main, "")["recorded"], 3);
    let other = main.weir(&["trace", &"1".repeat(32)]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("Main has no span of trace `1111"), "{}", other.stderr);
}

#[test]
fn each_of_64_traces_under_way_at_once_has_its_own_spans() {
    let main = Running::with(RELAYS);
    pass_through(&main, 64);
    let all = spans(&main, "?limit=4096");
    let mut traces: BTreeMap<&str, BTreeMap<&str, &Value>> = BTreeMap::new();
    for span in all["spans"].as_array().unwrap() {
        let provider = span["provider"].as_str().unwrap();
        assert!(traces.entry(span["trace"].as_str().unwrap()).or_default().insert(provider, span).is_none());
    }
    assert_eq!(traces.len(), 64);
    for spans in traces.values() {
        let [first, second, third] = ["first", "second", "third"].map(|provider| spans[provider]);
        assert_eq!((&first["parent"], &first["caller"]), (&"00000000000000aa".into(), &"main".into()));
        assert_eq!((&second["parent"], &second["caller"]), (&first["span"], &"first".into()));
        assert_eq!((&third["parent"], &third["caller"]), (&second["span"], &"second".into()));
    }
}

#[test]
fn a_traceparent_that_is_none_is_refused_and_costs_nobody_else() {
    let main = Running::with(PUPPETS);
    let call = |traceparent: &str| {
        main.http(&format!(
            "POST /v1/call/puppet@1/run HTTP/1.1\r\nhost: weir\r\nconnection: close\r\ntraceparent: {traceparent}\r\n\
             content-length: 9\r\n\r\necho here"
        ))
    };
    let zeros = format!("00-{}-{}-01", "0".repeat(32), "0".repeat(16));
    let huge = format!("00-{}", "1".repeat(8000));
    for wrong in ["", "1", "ÿ", &zeros, &huge] {
        let (head, body) = call(wrong);
        assert!(head.starts_with("HTTP/1.1 400 "), "{wrong:.99}: {head}");
        assert!(body.contains("a traceparent is written as in `00-"), "{wrong:.99}: {body}");
    }
    let (head, body) = call("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    assert!(head.starts_with("HTTP/1.1 200 ") && body == "here", "{head} {body}");
    assert_eq!(spans(&main, "")["recorded"], 0, "an unsampled context is not recorded");
    for query in ["?trace=1", "?after=-1", "?limit=x", "?what=1"] {
        let (head, _) =
            main.http(&format!("GET /v1/spans{query} HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 400 "), "{query}: {head}");
    }
}

#[test]
fn sampling_is_a_key_that_holds_with_the_next_reload_and_spans_are_bounded() {
    let main = Running::with(PUPPETS);
    main.weir(&["publish", "told.it"]).good();
    assert_eq!(spans(&main, "")["recorded"], 0);
    let file = main.path().join("weir.toml");
    let text = fs::read_to_string(&file).unwrap();
    let sampled = text.replacen("[main]\n", "[main]\ntrace-one-in = 1\ntrace-spans = 16\n", 1);
    fs::write(&file, sampled).unwrap();
    main.weir(&["reload"]).good();
    for _ in 0..20 {
        main.weir(&["publish", "told.it"]).good();
    }
    let all = until("all are recorded", || {
        Some(spans(&main, "")).filter(|all| all["recorded"].as_u64() >= Some(20))
    });
    let kept = all["spans"].as_array().unwrap();
    assert_eq!((kept.len(), &all["lost"]), (16, &4.into()));
    assert_eq!(
        (&kept[0]["number"], &kept[0]["kind"], &kept[0]["topic"]),
        (&5.into(), &"event".into(), &"told.it".into())
    );
    assert_eq!(spans(&main, "?after=18&limit=1")["spans"].as_array().unwrap().len(), 1);
    fs::write(&file, text).unwrap();
    main.weir(&["reload"]).good();
    main.weir(&["publish", "told.it"]).good();
    assert_eq!(spans(&main, "")["recorded"], 20);
}
