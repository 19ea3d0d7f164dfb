//! `weir otlp`, with a collector that decodes what it gets.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    iter,
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
    },
    common::v1::any_value::Value,
    trace::v1::{Span, span::SpanKind},
};
use prost::Message;
use rustix::process::{Pid, Signal, kill_process};

use super::{
    spans::{RELAYS, pass_through},
    support::{Running, done},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A collector that answers each batch with the next of these, and the last for ever.
struct Collector {
    endpoint: String,
    batches: Receiver<Vec<u8>>,
}

impl Collector {
    fn answering(answers: &[Vec<u8>]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, batches) = mpsc::channel();
        let (last, first) = answers.split_last().unwrap();
        let answers = Vec::from(first).into_iter().chain(iter::repeat(last.clone()));
        // Ends with the test's process.
        thread::spawn(move || {
            for (stream, answer) in listener.incoming().zip(answers) {
                if sender.send(taken(stream.unwrap(), &answer)).is_err() {
                    return;
                }
            }
        });
        Self { endpoint, batches }
    }

    fn next(&self) -> Vec<(String, Span)> {
        let body = self.batches.recv_timeout(PATIENCE).unwrap();
        let request = ExportTraceServiceRequest::decode(&*body).unwrap();
        let services = request.resource_spans.into_iter().flat_map(|resource| {
            let service = attribute(&resource.resource.unwrap().attributes, "service.name");
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.map(move |span| (service.clone(), span)).collect::<Vec<_>>()
        });
        services.collect()
    }
}

/// Reads one request, and gives this answer; none if that is empty. Returns the request's body.
fn taken(mut stream: TcpStream, answer: &[u8]) -> Vec<u8> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head).unwrap() > 2 {
        let last = head.lines().last().unwrap().to_lowercase();
        if let Some(value) = last.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if answer.is_empty() {
        // Says nothing until the client leaves.
        let _left = reader.read(&mut [0]);
    } else {
        stream.write_all(answer).unwrap();
    }
    body
}

fn answer(status: &str, header: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn ok() -> Vec<u8> {
    answer("200 OK", "", b"")
}

fn attribute(attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.clone()).and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key} is {other:?}"),
    }
}

#[test]
fn the_spans_of_64_requests_arrive_with_their_parents() {
    let main = Running::with(RELAYS);
    pass_through(&main, 64);
    let collector = Collector::answering(&[ok()]);
    main.weir(&["otlp", "--once", "--endpoint", &collector.endpoint]).good();
    let mut traces: BTreeMap<Vec<u8>, BTreeMap<String, Span>> = BTreeMap::new();
    for (service, span) in collector.next() {
        assert_eq!(span.kind(), SpanKind::Server);
        assert_eq!(attribute(&span.attributes, "rpc.method"), format!("{service}@1/pass"));
        assert!(span.end_time_unix_nano > span.start_time_unix_nano);
        assert!(traces.entry(span.trace_id.clone()).or_default().insert(service, span).is_none());
    }
    assert_eq!(traces.len(), 64);
    for spans in traces.values() {
        let [first, second, third] = ["first", "second", "third"].map(|service| &spans[service]);
        assert_eq!(first.parent_span_id, [0, 0, 0, 0, 0, 0, 0, 0xaa]);
        assert_eq!((&second.parent_span_id, &third.parent_span_id), (&first.span_id, &second.span_id));
    }
}

#[test]
fn a_batch_is_sent_again_until_the_collector_takes_it() {
    let main = Running::with(RELAYS);
    pass_through(&main, 1);
    let busy = answer("503 Service Unavailable", "retry-after: 0\r\n", b"");
    let collector = Collector::answering(&[Vec::new(), busy, ok()]);
    let sent = main.weir(&["otlp", "--once", "--timeout", "300ms", "--endpoint", &collector.endpoint]);
    assert!(
        sent.stderr.contains("does not take spans: no answer within 300ms; trying again"),
        "{}",
        sent.stderr
    );
    assert!(sent.stderr.contains("the collector is back"), "{}", sent.stderr);
    assert_eq!(sent.code, 0);
    let batches = [collector.next(), collector.next(), collector.next()];
    assert!(batches.iter().all(|batch| batch.len() == 3 && *batch == batches[0]));
}

#[test]
fn what_the_collector_does_not_take_is_counted_and_said() {
    let main = Running::with(RELAYS);
    pass_through(&main, 1);
    let partial =
        ExportTracePartialSuccess { rejected_spans: 2, error_message: "too old\u{1b}[31m".to_owned() };
    let partial = ExportTraceServiceResponse { partial_success: Some(partial) };
    for (answer, why) in [
        (
            answer("200 OK", "", &partial.encode_to_vec()),
            "2 spans lost: the collector rejected them: too old\\u{1b}[31m",
        ),
        (
            answer("400 Bad Request", "", b"no"),
            "3 spans lost: the collector refused them: HTTP status 400 Bad Request: no",
        ),
    ] {
        let collector = Collector::answering(&[answer]);
        let sent = main.weir(&["otlp", "--once", "--endpoint", &collector.endpoint]);
        assert_eq!(sent.code, 1, "{}", sent.stderr);
        assert!(sent.stderr.contains(why), "{}", sent.stderr);
        assert_eq!(collector.next().len(), 3);
        assert!(matches!(collector.batches.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout)));
    }
}

#[test]
fn spans_that_come_later_are_exported_until_a_signal() {
    let main = Running::with(RELAYS);
    let collector = Collector::answering(&[ok()]);
    let args = ["otlp", "--interval", "50ms", "--endpoint", &*collector.endpoint];
    let child = main.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..2 {
        pass_through(&main, 1);
        let mut spans = 0;
        while spans < 3 {
            spans += collector.next().len();
        }
        assert_eq!(spans, 3);
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]));
}

#[test]
fn what_the_environment_says_holds_where_no_option_does() {
    let main = Running::with(RELAYS);
    pass_through(&main, 1);
    let with = |name: &str, value: &str| -> Command {
        let mut command = main.command(&["otlp", "--once"]);
        command.env(name, value);
        command
    };
    let collector = Collector::answering(&[ok()]);
    done(&mut with("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)).good();
    assert_eq!(collector.next().len(), 3);
    let refused =
        done(&mut with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://collector.example/v1/traces"));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("needs TLS, which `weir otlp` has not"), "{}", refused.stderr);
}
