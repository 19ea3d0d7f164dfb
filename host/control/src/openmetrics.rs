//! `GET /v1/metrics`: every count and gauge of Main as OpenMetrics, described in `docs/metrics.md`.

mod text;

use std::cmp::Reverse;

use axum::{
    body::Body,
    extract::{Query, State},
    http::header,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use weir_host::{
    Control,
    control::{DurationsSnapshot, ExtensionState, ExtensionStatus, OperationStatus},
    limits::ExtensionLimits,
    peers::{PeerStatus, Peers},
    traffic::QueueStatus,
};

use self::text::{Label, Text};
use super::{
    error::Refusal,
    report::made,
    routes::{QueryOf, Served},
};

/// Operations that are shown, those with the most requests. Each takes some 4 KiB.
const MAX_OPERATIONS: usize = 1000;

/// As OpenMetrics 1.0 names it.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricsQuery {
    /// Topics as well: there may be thousands.
    #[serde(default)]
    topics: bool,
}

pub(super) async fn metrics(
    State(served): State<Served>,
    query: QueryOf<MetricsQuery>,
) -> Result<Response, Refusal> {
    let Query(MetricsQuery { topics }) = query?;
    let peers = served.peers.clone();
    let text = made(served, move |control| Ok(text(control, &peers, topics).into_bytes())).await?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], Body::from(text)).into_response())
}

fn text(control: &Control, peers: &Peers, topics: bool) -> String {
    let mut text = Text::default();
    text.gauge("weir_build_info", "The version of Main.")
        .sample(&[("version", &env!("CARGO_PKG_VERSION"))], 1);
    let limits = control.limits_now(None, None);
    if let Some(budget) = limits.memory_budget {
        text.gauge("weir_memory_budget_bytes", "The memory that all limits together may come to.")
            .sample(&[], budget);
    }
    text.gauge("weir_memory_sum_bytes", "The memory that all limits together come to.")
        .sample(&[], limits.memory_sum);
    extensions(&mut text, &control.extensions());
    limited(&mut text, &limits.extensions);
    operations(&mut text, control.operations());
    of_peers(&mut text, &peers.list());
    queues(&mut text, &control.queues());
    if topics {
        of_topics(&mut text, control);
    }
    text.end()
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
    type Gauge = (&'static str, &'static str, fn(&ExtensionStatus) -> u64);
    let gauges: [Gauge; 4] = [
        ("weir_extension_memory_bytes", "Linear memory.", |status| status.memory),
        ("weir_extension_memory_limit_bytes", "Linear memory that it may have.", |status| {
            status.memory_limit
        }),
        ("weir_extension_inbox_messages", "Messages that wait in its inbox.", |status| status.inbox_messages),
        ("weir_extension_inbox_bytes", "Bytes of the messages that wait in its inbox.", |status| {
            status.inbox_bytes
        }),
    ];
    for (name, help, value) in gauges {
        let mut gauge = text.gauge(name, help);
        all.iter().for_each(|status| gauge.sample(&[("extension", &status.id)], value(status)));
    }
    let counters: [Gauge; 5] = [
        ("weir_extension_restarts", "Starts after the first.", |status| status.restarts),
        ("weir_extension_received_messages", "Messages that it received.", |status| status.received),
        ("weir_extension_sent_messages", "Requests and events that it sent.", |status| status.sent),
        ("weir_extension_shed_messages", "Messages to it that found no room.", |status| status.shed),
        ("weir_extension_late_answers", "Its answers after the deadline.", |status| status.late),
    ];
    for (name, help, value) in counters {
        let mut counter = text.counter(name, help);
        all.iter().for_each(|status| counter.sample(&[("extension", &status.id)], value(status)));
    }
    let mut refused =
        text.counter("weir_extension_refused_requests", "Requests to it that did not fit its description.");
    for status in all {
        if let Some(count) = status.refused {
            refused.sample(&[("extension", &status.id)], count);
        }
    }
}

fn limited(text: &mut Text, all: &[ExtensionLimits]) {
    let help = "Time that it could have run, and was delayed for being over its cpu-share.";
    let mut delayed = text.counter("weir_extension_delayed_seconds", help);
    for limits in all {
        let seconds = limits.delayed.unwrap_or_default().as_secs_f64();
        delayed.sample(&[("extension", &limits.id)], seconds);
    }
    let mut dropped =
        text.counter("weir_extension_dropped_log_lines", "Lines over its log-rate, which are lost.");
    for limits in all {
        dropped.sample(&[("extension", &limits.id)], limits.log_dropped.unwrap_or_default());
    }
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
        let mut sum = 0;
        // Powers of two alone: each second bound, from the first on.
        for (place, (bound, count)) in DurationsSnapshot::bounds().zip(&durations.buckets).enumerate() {
            sum += count;
            if place % 2 == 0 {
                let bound = bound.as_secs_f64();
                let bounded: Vec<_> =
                    labels.into_iter().chain([("le", &bound as &dyn std::fmt::Display)]).collect();
                histogram.sample_of("_bucket", &bounded, sum);
            }
        }
        let all: Vec<_> = labels.into_iter().chain([("le", &"+Inf" as &dyn std::fmt::Display)]).collect();
        histogram.sample_of("_bucket", &all, requests(status));
        histogram.sample_of("_count", &labels, requests(status));
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
    type Number = (&'static str, &'static str, fn(&PeerStatus) -> u64);
    let mut sessions = text.gauge("weir_peer_sessions", "Sessions that are there now.");
    all.iter().for_each(|peer| sessions.sample(&[("peer", &peer.name)], peer.sessions.len()));
    let counters: [Number; 6] = [
        ("weir_peer_opened_sessions", "Sessions since Main started.", |peer| peer.sessions_so_far),
        ("weir_peer_denied_sessions", "Attempts with a wrong proof.", |peer| peer.denied),
        ("weir_peer_received_messages", "Messages that it received.", |peer| peer.counts.received),
        ("weir_peer_sent_messages", "Requests, events and jobs that it sent.", |peer| peer.counts.sent),
        ("weir_peer_shed_messages", "Messages to it that found no room.", |peer| peer.counts.shed),
        ("weir_peer_late_answers", "Its answers after the deadline.", |peer| peer.counts.late),
    ];
    for (name, help, value) in counters {
        let mut counter = text.counter(name, help);
        all.iter().for_each(|peer| counter.sample(&[("peer", &peer.name)], value(peer)));
    }
}

fn queues(text: &mut Text, all: &[QueueStatus]) {
    type Number = (&'static str, &'static str, fn(&QueueStatus) -> u64);
    let gauges: [Number; 7] = [
        ("weir_queue_waiting_jobs", "Jobs that wait for a reader.", |queue| queue.waiting),
        ("weir_queue_in_hand_jobs", "Jobs in the hands of readers.", |queue| queue.in_hand),
        ("weir_queue_limit_jobs", "Jobs that it may hold.", |queue| queue.messages_limit.into()),
        ("weir_queue_bytes", "Bytes of its jobs, with 128 for each envelope.", |queue| queue.bytes),
        ("weir_queue_limit_bytes", "Bytes that it may hold.", |queue| queue.bytes_limit),
        ("weir_queue_idle_readers", "Readers that wait for a job.", |queue| queue.idle_readers),
        ("weir_queue_blocked_senders", "Senders that wait for room.", |queue| queue.blocked),
    ];
    for (name, help, value) in gauges {
        let mut gauge = text.gauge(name, help);
        all.iter().for_each(|queue| gauge.sample(&[("queue", &queue.queue)], value(queue)));
    }
    let counters: [Number; 7] = [
        ("weir_queue_put_jobs", "Jobs put.", |queue| queue.put),
        ("weir_queue_delivered_jobs", "Deliveries to readers.", |queue| queue.delivered),
        ("weir_queue_done_jobs", "Jobs done.", |queue| queue.done),
        ("weir_queue_returned_jobs", "Deliveries returned undone.", |queue| queue.returned),
        ("weir_queue_dead_jobs", "Jobs that ran out of deliveries.", |queue| queue.dead),
        ("weir_queue_shed_jobs", "Jobs lost for want of room.", |queue| queue.shed),
        ("weir_queue_refused_jobs", "Jobs refused for want of room.", |queue| queue.refused),
    ];
    for (name, help, value) in counters {
        let mut counter = text.counter(name, help);
        all.iter().for_each(|queue| counter.sample(&[("queue", &queue.queue)], value(queue)));
    }
}

fn of_topics(text: &mut Text, control: &Control) {
    let all = control.topics().topics;
    let mut events = text.counter("weir_topic_events", "Events published.");
    all.iter().for_each(|topic| events.sample(&[("topic", &topic.topic)], topic.sequence));
    let mut delivered = text.counter("weir_topic_delivered_events", "Deliveries to subscribers.");
    all.iter().for_each(|topic| delivered.sample(&[("topic", &topic.topic)], topic.delivered));
    let mut shed = text.counter("weir_topic_shed_events", "Events lost in an inbox for want of room.");
    all.iter().for_each(|topic| shed.sample(&[("topic", &topic.topic)], topic.shed));
    let mut refused = text.counter("weir_topic_refused_events", "Deliveries refused for want of room.");
    all.iter().for_each(|topic| refused.sample(&[("topic", &topic.topic)], topic.refused));
}

/// At most `number` of them, the largest if there are more, and how many are left out.
fn largest<T>(mut all: Vec<T>, number: usize, size: impl Fn(&T) -> u64) -> (Vec<T>, usize) {
    let left_out = all.len().saturating_sub(number);
    if left_out > 0 {
        all.sort_by_key(|one| Reverse(size(one)));
        all.truncate(number);
    }
    (all, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_largest_are_shown() {
        let size = |one: &u64| *one;
        assert_eq!(largest(vec![2, 9, 1], 3, size), (vec![2, 9, 1], 0));
        assert_eq!(largest((0..10_000).collect(), 2, size), (vec![9999, 9998], 9998));
    }
}
