//! `weir metrics`: the text, and its bridge for scrapers.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
};

use rustix::process::Signal;

use super::support::{Killed, PUPPETS, Running, assert_golden, done, until, weir};

const CHANNELS: &str = "[queue.uploads]\nmessages = 5\n[topic.\"told.it\"]\nretain = true\n";

/// One line with a value: its name, its labels as they stand, its value.
type Sample<'a> = (&'a str, &'a str, f64);

/// Checks the text line by line against OpenMetrics 1.0, and returns its samples.
fn checked(text: &str) -> Vec<Sample<'_>> {
    let lines = text.strip_suffix("# EOF\n").unwrap().lines();
    let (mut samples, mut families, mut series) = (Vec::new(), HashSet::new(), HashSet::new());
    let (mut family, mut kind) = ("", "");
    for line in lines {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            (family, kind) = rest.split_once(' ').unwrap();
            assert!(families.insert(family), "{line}");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            assert!(rest == format!("{family} {}", family.rsplit('_').next().unwrap()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(&format!("{family} ")) && rest.ends_with('.'), "{line}");
        } else {
            let (named, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = named
                .split_once('{')
                .map_or((named, ""), |(name, labels)| (name, labels.strip_suffix('}').unwrap()));
            let suffixes: &[&str] = match kind {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_count", "_sum"],
                _ => &[""],
            };
            assert!(name.strip_prefix(family).is_some_and(|suffix| suffixes.contains(&suffix)), "{line}");
            assert!(series.insert(named), "{line}");
            samples.push((name, labels, value.parse().unwrap()));
        }
    }
    samples
}

fn value(samples: &[Sample<'_>], name: &str, labels: &str) -> f64 {
    let found = samples.iter().find(|sample| (sample.0, sample.1) == (name, labels));
    found.unwrap_or_else(|| panic!("no {name}{{{labels}}} in {samples:?}")).2
}

#[test]
fn the_text_conforms_and_has_a_family_for_each_thing_that_main_counts() {
    let main = Running::with(&format!("{CHANNELS}{PUPPETS}"));
    main.weir(&["call", "puppet@1", "run", "--raw", "echo here"]).good();
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "no such command"]).code, 7);
    main.weir(&["queues", "put", "uploads", "job"]).good();
    main.weir(&["publish", "told.it", "1"]).good();
    let text = main.weir(&["metrics", "--topics"]).good();
    let samples = checked(&text);
    let number = |name: &str, labels: &str| value(&samples, name, labels);
    assert_eq!(number("weir_extension_state", r#"extension="puppet",state="ready""#), 1.0);
    assert_eq!(number("weir_extension_state", r#"extension="spare",state="loaded""#), 1.0);
    assert_eq!(number("weir_extension_state", r#"extension="puppet",state="quarantined""#), 0.0);
    assert!(number("weir_extension_memory_bytes", r#"extension="puppet""#) > 65_536.0);
    assert!(number("weir_extension_cpu_seconds_total", r#"extension="puppet""#) > 0.0);
    assert!(
        number("process_cpu_seconds_total", "")
            > number("weir_extension_cpu_seconds_total", r#"extension="puppet""#)
    );
    assert!(number("process_resident_memory_bytes", "") > 1e6);
    assert!(number("process_open_fds", "") > 3.0);
    assert_eq!(number("weir_queue_waiting_jobs", r#"queue="uploads""#), 1.0);
    assert_eq!(number("weir_topic_events_total", r#"topic="told.it""#), 1.0);
    let run = r#"provider="puppet",contract="puppet@1",operation="run""#;
    assert_eq!(number("weir_request_duration_seconds_count", run), 2.0);
    assert_eq!(number("weir_requests_failed_total", &format!("{run},error=\"handler\"")), 1.0);
    let buckets = samples.iter().filter(|(name, ..)| *name == "weir_request_duration_seconds_bucket");
    let buckets: Vec<f64> = buckets.map(|(.., value)| *value).collect();
    assert_eq!((buckets.len(), buckets.last()), (28, Some(&2.0)));
    assert!(buckets.is_sorted());

    let mut families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    families.sort_unstable();
    assert_golden("metrics-families", &families.join("\n"));
    let documented = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md")).unwrap();
    let without = |family: &&str| !documented.contains(&format!("`{}`", family.split(' ').next().unwrap()));
    assert_eq!(families.into_iter().filter(without).collect::<Vec<_>>(), [""; 0], "not in docs/metrics.md");

    let text = main.weir(&["metrics"]).good();
    assert!(!text.contains("weir_topic"), "topics are shown by choice alone");
}

#[test]
fn no_counter_shrinks_when_an_extension_restarts() {
    let main = Running::with(PUPPETS);
    main.weir(&["call", "puppet@1", "run", "--raw", "echo here"]).good();
    let counters = || -> BTreeMap<String, f64> {
        let text = main.weir(&["metrics"]).good();
        let grows =
            |name: &str| ["_total", "_count", "_bucket", "_sum"].iter().any(|end| name.ends_with(end));
        let counters = checked(&text).into_iter().filter(|(name, ..)| grows(name));
        counters.map(|(name, labels, value)| (format!("{name}{{{labels}}}"), value)).collect()
    };
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "trap"]).code, 8);
    let before = counters();
    assert_eq!(before["weir_extension_failures_total{extension=\"puppet\",limit=\"\"}"], 1.0);
    main.weir(&["restart", "puppet"]).good();
    let after = counters();
    for (series, value) in &before {
        assert!(after[series] >= *value, "{series}: {value}, then {}", after[series]);
    }
    assert!(after["weir_extension_restarts_total{extension=\"puppet\"}"] >= 1.0);
}

#[test]
fn what_the_operator_restarts_and_reloads_raises_no_alert_for_restarts() {
    let rules = include_str!("../../../packaging/prometheus/weir.rules.yml");
    let (_, alert) = rules.split_once("alert: WeirExtensionRestarts\n").unwrap();
    let expression = alert.lines().find_map(|line| line.trim().strip_prefix("expr: ")).unwrap();
    let mut words = expression.split(|part: char| !part.is_ascii_alphanumeric() && part != '_');
    let family = words.find(|word| word.starts_with("weir_")).unwrap();
    let main = Running::with(PUPPETS);
    for order in ["restart", "reload", "restart", "reload"] {
        main.weir(&[order, "puppet"]).good();
    }
    let text = main.weir(&["metrics"]).good();
    let samples = checked(&text);
    assert!(value(&samples, "weir_extension_restarts_total", "extension=\"puppet\"") >= 2.0, "{text}");
    assert!(text.contains(&format!("# TYPE {} counter\n", family.trim_end_matches("_total"))), "{text}");
    let counted = samples.iter().filter(|(name, labels, _)| *name == family && labels.contains("\"puppet\""));
    assert!(counted.map(|sample| sample.2).all(|count| count == 0.0), "{text}");
    main.weir(&["call", "puppet@1", "run", "--raw", "trap"]);
    let text = main.weir(&["metrics"]).good();
    assert_eq!(value(&checked(&text), family, "extension=\"puppet\",limit=\"\""), 1.0);
}

/// `weir metrics --listen` that runs.
struct Bridge {
    child: Killed,
    address: String,
}

impl Bridge {
    fn beside(main: &Running) -> Self {
        let mut command = main.command(&["metrics", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
        Self { child: Killed(child), address }
    }

    fn ask(&self, method: &str, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get_as(&self, accept: &str) -> String {
        self.ask("GET", "/metrics", &format!("{}\r\nAccept: {accept}", self.address))
    }

    fn get(&self, path: &str) -> String {
        self.ask("GET", path, &self.address)
    }
}

#[test]
fn the_bridge_shows_the_metrics_alone_and_to_this_machine_alone() {
    let main = Running::with(PUPPETS);
    let mut bridge = Bridge::beside(&main);
    let answer = bridge.get("/metrics");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(kind), "{head}");
    checked(text);
    // A scraper that knows only the format before: each sample of a counter has the name of its family.
    let classic = bridge.get_as("text/plain;version=0.0.4");
    assert!(classic.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{classic}");
    assert!(classic.contains("\n# HELP weir_extension_restarts_total "), "{classic}");
    assert!(!classic.contains("# UNIT") && !classic.contains("# EOF"), "{classic}");
    assert!(bridge.get_as("application/openmetrics-text;version=1.0.0,text/plain;q=0.5").contains(kind));
    for (method, path, host, status) in [
        ("GET", "/", &*bridge.address, "200 OK"),
        ("HEAD", "/metrics", &bridge.address, "200 OK"),
        ("GET", "/v1/extensions", &bridge.address, "404 Not Found"),
        ("POST", "/metrics", &bridge.address, "405 Method Not Allowed"),
        ("GET", "/metrics", "evil.example", "403 Forbidden"),
    ] {
        let answer = bridge.ask(method, path, host);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{method} {path}: {answer}");
    }

    // Scrapers that say nothing, or do not read, leave the eighth place to others.
    let stalled = (0..7).map(|number| {
        let mut stream = TcpStream::connect(&bridge.address).unwrap();
        if number % 2 == 0 {
            write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        }
        stream
    });
    let _stalled: Vec<_> = stalled.collect();
    assert!(bridge.get("/metrics").ends_with("# EOF\n"));

    main.weir(&["shutdown"]).good();
    until("Main is gone", || bridge.get("/metrics").starts_with("HTTP/1.1 503 ").then_some(()));
    let gone = bridge.get("/metrics");
    assert!(gone.contains("cannot reach Main at `") && gone.ends_with("\n"), "{gone}");
    bridge.child.signal(Signal::TERM);
    assert_eq!(bridge.child.0.wait().unwrap().code(), Some(0));
}

#[test]
fn an_address_that_other_machines_reach_must_be_meant() {
    let main = Running::with("");
    let refused = main.weir(&["metrics", "--listen", "0.0.0.0:0"]);
    let why = "error: other machines reach `0.0.0.0:0`, without TLS or a password: add --allow-remote, or listen on 127.0.0.1\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (2, why));
    let bridge = Bridge::beside(&main);
    let taken = main.weir(&["metrics", "--listen", &bridge.address]);
    let why = format!("error: cannot listen on `{}`: Address already in use (os error 98)\n", bridge.address);
    assert_eq!((taken.code, taken.stderr), (1, why));
}

#[test]
fn a_word_that_the_route_does_not_know_is_refused() {
    let main = Running::with("");
    let dir = main.path().to_owned();
    let gone = done(weir(&dir).args(["metrics", "--socket", "nowhere.sock"]));
    assert_eq!(gone.code, 3, "{}", gone.stderr);
    let (head, _) = super::http::get(&main, "/v1/metrics?topics=perhaps");
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
}
