//! Spans as OpenTelemetry has them: one resource for each provider, attributes by its semantic conventions.

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource as ProtoResource,
    trace::v1::{
        ResourceSpans, ScopeSpans, Span as ProtoSpan, Status,
        span::{Link as ProtoLink, SpanKind as ProtoKind},
        status::StatusCode,
    },
};

use weir_reports::{Span, SpanKind};

use crate::export::Resource;

/// The most bytes of a text. Longer texts are cut, so that the size of a batch is bounded.
const MAX_TEXT: usize = 1024;

/// The flag of the W3C's Trace Context for a trace that is recorded.
const SAMPLED: u32 = 1;

/// Makes the request that a collector understands from the spans of one batch.
pub(crate) fn request(spans: Vec<Span>, resource: &Resource) -> ExportTraceServiceRequest {
    let mut services: BTreeMap<String, Vec<ProtoSpan>> = BTreeMap::new();
    for span in spans {
        // An event has no provider, so it counts as its publisher's.
        let service = span.provider.as_deref().unwrap_or(&span.caller);
        services.entry(cut(service)).or_default().push(converted(&span));
    }
    let of_service = |(service, spans)| ResourceSpans {
        resource: Some(described(service, resource)),
        scope_spans: vec![ScopeSpans {
            scope: Some(InstrumentationScope {
                name: "weir".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..InstrumentationScope::default()
            }),
            spans,
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: services.into_iter().map(of_service).collect() }
}

fn described(service: String, resource: &Resource) -> ProtoResource {
    let mut attributes = vec![text("service.name", &service), text("service.namespace", &resource.namespace)];
    attributes.extend(resource.host.as_deref().map(|host| text("host.name", host)));
    ProtoResource { attributes, ..ProtoResource::default() }
}

fn converted(span: &Span) -> ProtoSpan {
    let (name, kind, mut attributes) = of_kind(&span.kind);
    let seconds =
        |key, time: Option<Duration>| time.map(|time| attribute(key, Value::DoubleValue(time.as_secs_f64())));
    attributes.push(text("weir.caller", &span.caller));
    attributes.extend(seconds("weir.waited", span.waited));
    attributes.extend(seconds("weir.worked", span.worked));
    let fuel = span.fuel.map(|fuel| i64::try_from(fuel).unwrap_or(i64::MAX));
    attributes.extend(fuel.map(|fuel| attribute("weir.fuel", Value::IntValue(fuel))));
    let mut status = None;
    if span.outcome != "ok" {
        attributes.push(text("error.type", &span.outcome));
        status = Some(Status { code: StatusCode::Error.into(), message: cut(&span.outcome) });
    }
    let links = span.link.iter().map(|link| ProtoLink {
        trace_id: link.trace.0.get().to_be_bytes().into(),
        span_id: link.span.0.get().to_be_bytes().into(),
        flags: SAMPLED,
        ..ProtoLink::default()
    });
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let start = nanoseconds(span.start.duration_since(UNIX_EPOCH).unwrap_or_default());
    ProtoSpan {
        trace_id: span.trace.0.get().to_be_bytes().into(),
        span_id: span.span.0.get().to_be_bytes().into(),
        parent_span_id: span.parent.map_or_else(Vec::new, |parent| parent.0.get().to_be_bytes().into()),
        flags: SAMPLED,
        name,
        kind: kind.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: start.saturating_add(nanoseconds(span.duration)),
        attributes,
        links: links.collect(),
        status,
        ..ProtoSpan::default()
    }
}

/// Returns the name of a span, its kind, and the attributes that only this kind has.
fn of_kind(kind: &SpanKind) -> (String, ProtoKind, Vec<KeyValue>) {
    let messaging = |operation: &str, destination: &str| {
        let attributes = vec![
            text("messaging.system", "weir"),
            text("messaging.destination.name", destination),
            text("messaging.operation.name", operation),
            text("messaging.operation.type", operation),
        ];
        (cut(&format!("{operation} {destination}")), attributes)
    };
    match kind {
        SpanKind::Request { contract, operation } => {
            let method = format!("{contract}/{operation}");
            let attributes = vec![text("rpc.system.name", "weir"), text("rpc.method", &method)];
            (cut(&method), ProtoKind::Server, attributes)
        }
        SpanKind::Job { queue } => {
            let (name, attributes) = messaging("process", queue.as_str());
            (name, ProtoKind::Consumer, attributes)
        }
        SpanKind::Event { topic } => {
            let (name, attributes) = messaging("send", topic.as_str());
            (name, ProtoKind::Producer, attributes)
        }
        // A kind of a newer Main. If it were left out, the parent of other spans would be missing.
        _ => ("other".to_owned(), ProtoKind::Internal, vec![text("weir.kind", "other")]),
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(cut(value)))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// Returns the first `MAX_TEXT` bytes of a text, of whole characters.
fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default().to_owned()
}
