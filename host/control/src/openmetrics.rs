//! `GET /v1/metrics`: every count and gauge of Main as OpenMetrics, or in the format before it. `docs/metrics.md` describes
//! them.

mod text;

use std::{cmp::Reverse, fs, time::Duration};

use axum::{
    body::Body,
    extract::{Query, State},
    http::header,
    response::{IntoResponse, Response},
};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use weir_host::{
    Control,
    control::{
        DurationsSnapshot, ExtensionState, ExtensionStatus, HookCount, OperationStatus, PartState,
        PartStatus, ServingVersion, Standing,
    },
    limits::ExtensionLimits,
    peers::{PeerStatus, Peers},
    traffic::{QueueStatus, TopicStatus},
};

use self::text::{Family, Label, Text};
use super::{
    error::Refusal,
    report::made,
    routes::{QueryOf, ServerState},
};

/// The most operations that are shown: those with the most requests. Each takes some 4 KiB.
const MAX_OPERATIONS: usize = 1000;

/// The type of the answer of `GET /v1/metrics`: OpenMetrics 1.0.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The type of the answer of `GET /v1/metrics?classic=true`: version 0.0.4 of Prometheus's own format.
pub const CLASSIC_METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

const STATES: [ExtensionState; 9] = [
    ExtensionState::Loaded,
    ExtensionState::Starting,
    ExtensionState::Ready,
    ExtensionState::Interrupted,
    ExtensionState::Draining,
    ExtensionState::Stopped,
    ExtensionState::Failed,
    ExtensionState::BackingOff,
    ExtensionState::Quarantined,
];

const STANDINGS: [Standing; 3] = [Standing::Probation, Standing::Proven, Standing::Refused];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricsQuery {
    /// Whether to show topics as well, of which there may be thousands.
    #[serde(default)]
    topics: bool,
    /// Whether to use the text format before OpenMetrics.
    #[serde(default)]
    classic: bool,
}

pub(super) async fn metrics(
    State(served): State<ServerState>,
    query: QueryOf<MetricsQuery>,
) -> Result<Response, Refusal> {
    let Query(MetricsQuery { topics, classic }) = query?;
    let peers = served.peers.clone();
    let text = made(served, move |control| Ok(text(control, &peers, topics, classic).into_bytes())).await?;
    let kind = if classic { CLASSIC_METRICS } else { OPENMETRICS };
    Ok(([(header::CONTENT_TYPE, kind)], Body::from(text)).into_response())
}

fn text(control: &Control, peers: &Peers, topics: bool, is_classic: bool) -> String {
    let mut text = Text::new(is_classic);
    text.gauge("weir_build_info", "The version of Main.")
        .sample(&[("version", &env!("CARGO_PKG_VERSION"))], 1);
    let limits = control.limits_now(None, None);
    if let Some(budget) = limits.memory_budget {
        text.gauge("weir_memory_budget_bytes", "The memory that all limits together may come to.")
            .sample(&[], budget);
    }
    text.gauge("weir_memory_sum_bytes", "The memory that all limits together come to.")
        .sample(&[], limits.memory_sum);
    let (recorded, lost) = control.span_counts();
    text.counter("weir_recorded_spans", "Spans that were recorded.").sample(&[], recorded);
    text.counter("weir_lost_spans", "Recorded spans that were dropped to make room.").sample(&[], lost);
    add_process(&mut text);
    parts(&mut text, &control.parts());
    let all = control.extensions();
    extensions(&mut text, &all);
    versions(&mut text, &all);
    limited(&mut text, &limits.extensions);
    operations(&mut text, control.operations());
    of_peers(&mut text, &peers.list());
    queues(&mut text, &control.queues());
    hooks(&mut text, &control.hook_counts());
    if topics {
        of_topics(&mut text, &control.topics().topics);
    }
    text.end()
}

/// A family of metrics: its name, its help, and its number for one item.
type Row<T> = (&'static str, &'static str, fn(&T) -> u64);

/// Adds a family of this kind for each row, with a sample for each item.
fn each<T>(
    text: &mut Text,
    kind: for<'a> fn(&'a mut Text, &'static str, &str) -> Family<'a>,
    all: &[T],
    label: fn(&T) -> Label<'_>,
    rows: &[Row<T>],
) {
    for (name, help, value) in rows {
        let mut family = kind(text, name, help);
        all.iter().for_each(|one| family.sample(&[label(one)], value(one)));
    }
}

fn parts(text: &mut Text, all: &[PartStatus]) {
    let rows: &[Row<PartStatus>] =
        &[("weir_part_up", "1 if this part of Main serves, 0 before it starts again.", |of| {
            u64::from(of.state == PartState::Serving)
        })];
    each(text, Text::gauge, all, |of| ("part", &of.name), rows);
    let rows: &[Row<PartStatus>] =
        &[("weir_part_restarts", "Starts of this part of Main after the first.", |of| of.restarts)];
    each(text, Text::counter, all, |of| ("part", &of.name), rows);
    let help = "Requests and connections that this part of Main refused, by reason.";
    let mut refusals = text.counter("weir_part_refusals", help);
    for part in all {
        for (reason, count) in &part.refused {
            refusals.sample(&[("part", &part.name), ("reason", reason)], count);
        }
    }
}

fn extensions(text: &mut Text, all: &[ExtensionStatus]) {
    let mut states =
        text.gauge("weir_extension_state", "1 for the state that the extension is in, 0 for all others.");
    for status in all {
        for state in STATES {
            let labels: [Label<'_>; 2] = [("extension", &status.id), ("state", &state)];
            states.sample(&labels, u8::from(status.state == state));
        }
    }
    let mut cpu = text.counter("weir_extension_cpu_seconds", "Time on the worker thread.");
    for status in all {
        cpu.sample(&[("extension", &status.id)], status.cpu.as_secs_f64());
    }
    each(
        text,
        Text::gauge,
        all,
        |of| ("extension", &of.id),
        &[
            ("weir_extension_memory_bytes", "Linear memory.", |of| of.memory),
            ("weir_extension_memory_limit_bytes", "Linear memory that it may have.", |of| of.memory_limit),
            ("weir_extension_inbox_messages", "Messages that wait in its inbox.", |of| of.inbox_messages),
            ("weir_extension_inbox_bytes", "Bytes of the messages that wait in its inbox.", |of| {
                of.inbox_bytes
            }),
        ],
    );
    each(
        text,
        Text::counter,
        all,
        |of| ("extension", &of.id),
        &[
            (
                "weir_extension_restarts",
                "Starts after the first: after failures, and by the operator.",
                |of| of.restarts,
            ),
            ("weir_extension_received_messages", "Messages that it received.", |of| of.received),
            ("weir_extension_sent_messages", "Requests and events that it sent.", |of| of.sent),
            ("weir_extension_shed_messages", "Messages to it that found no room.", |of| of.shed),
            ("weir_extension_late_answers", "Its answers after the deadline.", |of| of.late),
        ],
    );
    let help = "Failures, by the limit that was exceeded, if that is the cause.";
    let mut failures = text.counter("weir_extension_failures", help);
    for status in all {
        for (limit, count) in &status.failed {
            failures.sample(&[("extension", &status.id), ("limit", limit)], count);
        }
    }
    let mut answers =
        text.counter("weir_extension_http_answers", "Answers to its clients by HTTP, by their status.");
    for status in all {
        for (class, count) in status.http.iter().flat_map(|http| http.answers.classes()) {
            answers.sample(&[("extension", &status.id), ("status", &class)], count);
        }
    }
    let mut refused =
        text.counter("weir_extension_refused_requests", "Requests to it that did not fit its description.");
    for status in all {
        if let Some(count) = status.refused {
            refused.sample(&[("extension", &status.id)], count);
        }
    }
}

/// The versions of extensions with `update`. Others have none.
fn versions(text: &mut Text, all: &[ExtensionStatus]) {
    let all: Vec<_> = all.iter().filter_map(|status| Some((&status.id, status.version?))).collect();
    let mut numbers = text.gauge("weir_extension_version", "The number of the version that it runs.");
    for (id, ServingVersion { number, .. }) in &all {
        numbers.sample(&[("extension", id)], number);
    }
    let help = "1 for what Main knows of the version that it runs, 0 for all else.";
    let mut standings = text.gauge("weir_extension_version_standing", help);
    for (id, version) in &all {
        for standing in STANDINGS {
            let labels: [Label<'_>; 2] = [("extension", id), ("standing", &standing)];
            standings.sample(&labels, u8::from(version.standing == standing));
        }
    }
    let help = "1 if it runs although another version is configured, which was refused or cannot be read.";
    let mut held_back = text.gauge("weir_extension_version_held_back", help);
    for (id, ServingVersion { is_held_back, .. }) in &all {
        held_back.sample(&[("extension", id)], u8::from(*is_held_back));
    }
}

fn limited(text: &mut Text, all: &[ExtensionLimits]) {
    let help = "Time that it could have run, and was delayed for being over its cpu-share.";
    let mut delayed = text.counter("weir_extension_delayed_seconds", help);
    for limits in all {
        let seconds = limits.delayed.unwrap_or_default().as_secs_f64();
        delayed.sample(&[("extension", &limits.id)], seconds);
    }
    each(
        text,
        Text::counter,
        all,
        |of| ("extension", &of.id),
        &[
            ("weir_extension_dropped_log_lines", "Lines over its log-rate, which are lost.", |of| {
                of.log_dropped.unwrap_or_default()
            }),
            ("weir_extension_refused_http_requests", "HTTP requests that it may not send.", |of| {
                of.http_refused.unwrap_or_default()
            }),
            (
                "weir_extension_timed_out_http_requests",
                "HTTP requests that took longer than http.total-timeout.",
                |of| of.http_timed_out.unwrap_or_default(),
            ),
        ],
    );
}

fn operations(text: &mut Text, all: Vec<OperationStatus>) {
    let requests = |status: &OperationStatus| status.durations.buckets.iter().sum::<u64>();
    let (all, hidden) = largest(all, MAX_OPERATIONS, requests);
    text.gauge(
        "weir_operations_hidden",
        "Operations with the fewest requests, which are left out above 1000.",
    )
    .sample(&[], hidden);
    let help = "From the send of a request to its outcome.";
    let mut histogram = text.histogram("weir_request_duration_seconds", help);
    for status in &all {
        let OperationStatus { provider, contract, operation, durations, .. } = status;
        let labels: [Label<'_>; 3] =
            [("provider", provider), ("contract", contract), ("operation", operation)];
        let [provider, contract, operation] = labels;
        let mut sum = 0;
        // Shows each second bound, from the first on: these are the powers of two.
        for (place, (bound, count)) in DurationsSnapshot::bounds().zip(&durations.buckets).enumerate() {
            sum += count;
            if place % 2 == 0 {
                let bound = bound.as_secs_f64();
                histogram.sample_of("_bucket", &[provider, contract, operation, ("le", &bound)], sum);
            }
        }
        let total = requests(status);
        histogram.sample_of("_bucket", &[provider, contract, operation, ("le", &"+Inf")], total);
        histogram.sample_of("_count", &labels, total);
        histogram.sample_of("_sum", &labels, durations.sum);
    }
    let help = "Requests that ended in an error. Those refused before they were sent are included.";
    let mut failed = text.counter("weir_requests_failed", help);
    for OperationStatus { provider, contract, operation, failed: errors, .. } in &all {
        for (error, count) in errors {
            let labels: [Label<'_>; 4] =
                [("provider", provider), ("contract", contract), ("operation", operation), ("error", error)];
            failed.sample(&labels, count);
        }
    }
}

fn of_peers(text: &mut Text, all: &[PeerStatus]) {
    let mut sessions = text.gauge("weir_peer_sessions", "Sessions that are there now.");
    all.iter().for_each(|peer| sessions.sample(&[("peer", &peer.name)], peer.sessions.len()));
    each(
        text,
        Text::counter,
        all,
        |of| ("peer", &of.name),
        &[
            ("weir_peer_opened_sessions", "Sessions since Main started.", |of| of.sessions_so_far),
            ("weir_peer_denied_sessions", "Attempts with a wrong proof.", |of| of.denied),
            ("weir_peer_received_messages", "Messages that it received.", |of| of.counts.received),
            ("weir_peer_sent_messages", "Requests, events and jobs that it sent.", |of| of.counts.sent),
            ("weir_peer_shed_messages", "Messages to it that found no room.", |of| of.counts.shed),
            ("weir_peer_late_answers", "Its answers after the deadline.", |of| of.counts.late),
        ],
    );
}

fn queues(text: &mut Text, all: &[QueueStatus]) {
    each(
        text,
        Text::gauge,
        all,
        |of| ("queue", &of.queue),
        &[
            ("weir_queue_waiting_jobs", "Jobs that wait for a reader.", |of| of.waiting),
            ("weir_queue_in_hand_jobs", "Jobs in the hands of readers.", |of| of.in_hand),
            ("weir_queue_limit_jobs", "Jobs that it may hold.", |of| of.messages_limit.into()),
            ("weir_queue_bytes", "Bytes of its jobs, with 128 for each envelope.", |of| of.bytes),
            ("weir_queue_limit_bytes", "Bytes that it may hold.", |of| of.bytes_limit),
            ("weir_queue_idle_readers", "Readers that wait for a job.", |of| of.idle_readers),
            ("weir_queue_blocked_senders", "Senders that wait for room.", |of| of.blocked),
        ],
    );
    each(
        text,
        Text::counter,
        all,
        |of| ("queue", &of.queue),
        &[
            ("weir_queue_put_jobs", "Jobs put.", |of| of.put),
            ("weir_queue_delivered_jobs", "Deliveries to readers.", |of| of.delivered),
            ("weir_queue_done_jobs", "Jobs done.", |of| of.done),
            ("weir_queue_returned_jobs", "Deliveries returned undone.", |of| of.returned),
            ("weir_queue_dead_jobs", "Jobs that ran out of deliveries.", |of| of.dead),
            ("weir_queue_shed_jobs", "Jobs lost for want of room.", |of| of.shed),
            ("weir_queue_refused_jobs", "Jobs refused for want of room.", |of| of.refused),
        ],
    );
}

fn hooks(text: &mut Text, all: &[HookCount]) {
    let mut runs = text.counter("weir_hook_runs", "Runs of hooks, by how they ended.");
    for HookCount { hooks, hook, outcome, runs: count, .. } in all {
        let labels: [Label<'_>; 3] = [("hooks", hooks), ("hook", hook), ("outcome", outcome)];
        runs.sample(&labels, count);
    }
}

fn of_topics(text: &mut Text, all: &[TopicStatus]) {
    each(
        text,
        Text::counter,
        all,
        |of| ("topic", &of.topic),
        &[
            ("weir_topic_events", "Events published.", |of| of.sequence),
            ("weir_topic_delivered_events", "Deliveries to subscribers.", |of| of.delivered),
            ("weir_topic_shed_events", "Events lost in an inbox for want of room.", |of| of.shed),
            ("weir_topic_refused_events", "Deliveries refused for want of room.", |of| of.refused),
        ],
    );
}

/// The `number` largest items, or all if there are no more, and how many are left out.
fn largest<T>(mut all: Vec<T>, number: usize, size: impl Fn(&T) -> u64) -> (Vec<T>, usize) {
    let left_out = all.len().saturating_sub(number);
    if left_out > 0 {
        all.sort_by_key(|one| Reverse(size(one)));
        all.truncate(number);
    }
    (all, left_out)
}

/// Main as a process, under the names that Prometheus' own clients give. What the system does not tell is left out.
fn add_process(text: &mut Text) {
    if let Ok(cpu) = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)) {
        let help = "Processor time of all threads of Main.";
        text.counter("process_cpu_seconds", help).sample(&[], cpu.as_secs_f64());
    }
    if let Some(resident) = resident() {
        text.gauge("process_resident_memory_bytes", "Memory of Main that is resident.").sample(&[], resident);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // The descriptor that reads the directory is left out.
        text.gauge("process_open_fds", "Open file descriptors of Main.").sample(&[], open.count() - 1);
    }
}

fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use weir_host::peers::{PeerConfig, PeerMessage, Wanted};

    use super::*;

    #[test]
    fn of_too_many_the_largest_are_shown() {
        let size = |one: &u64| *one;
        assert_eq!(largest(vec![2, 9, 1], 3, size), (vec![2, 9, 1], 0));
        assert_eq!(largest((0..10_000).collect(), 2, size), (vec![9999, 9998], 9998));
    }

    #[tokio::test]
    async fn of_ten_thousand_operations_the_busiest_thousand_are_shown() {
        let config = weir_host::parse("", "weir.toml", "/".as_ref()).unwrap();
        let main = weir_host::Main::builder(config).start().await.unwrap();
        let operations: Vec<String> = (0..256).map(|number| format!("op-{number}")).collect();
        let mut sessions = Vec::new();
        for number in 0..40 {
            let contract = format!("c{number}@1");
            let mut peer = PeerConfig::new(format!("app:p{number}").parse().unwrap());
            peer.fulfills.push(contract.parse().unwrap());
            let session = main.peers().open_with(peer).unwrap();
            session.serve(&contract, &operations).unwrap();
            sessions.push(session);
        }
        let wanted = Wanted { requests: true, events: false };
        let call = async |number: usize, operation: &str| {
            let contract = format!("c{number}@1");
            let answer = async {
                let next = sessions[number].next(wanted).await;
                let Some(PeerMessage::Request(request)) = next else { panic!("{next:?}") };
                request.answer(Ok("".into()));
            };
            let (called, ()) = tokio::join!(main.client().call(&contract, operation, ""), answer);
            called.unwrap();
        };
        for number in 0..sessions.len() {
            for operation in &operations {
                call(number, operation).await;
            }
        }
        call(7, "op-9").await;
        let text = text(main.control(), main.peers(), false, false);
        let lines = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(lines("weir_request_duration_seconds_count"), MAX_OPERATIONS);
        assert!(text.contains("weir_operations_hidden 9240\n"), "{:?}", text.find("weir_operations_hidden"));
        let asked = r#"_count{provider="app:p7",contract="c7@1",operation="op-9"} 2"#;
        assert!(text.contains(asked));
        assert!(text.len() < 5 << 20, "{} bytes", text.len());
        drop(sessions);
        main.shutdown().await.unwrap();
    }
}
