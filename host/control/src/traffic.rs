//! `GET /v1/topics`, `GET /v1/queues`, and the jobs of one queue.

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use weir_host::{
    client::{MessageId, PutOptions, Queue},
    names::QueueName,
    traffic::JobStatus,
};

use super::{
    error::Refusal,
    report::report,
    routes::{PathOf, QueryOf, ServerState, said},
    server::{AskedControl, Asker},
    spans::Traceparent,
    streams::PayloadFields,
};

/// How many jobs are listed by default.
const JOBS: usize = 20;
/// The most jobs that are listed.
const MAX_JOBS: usize = 1000;
/// Bytes of the largest payload that is listed. A job with a larger one is listed without it.
const MAX_SHOWN: usize = 4096;

pub(super) async fn topics(State(served): State<ServerState>) -> Result<Response, Refusal> {
    report(served, |control| control.topics()).await
}

pub(super) async fn queues(State(served): State<ServerState>) -> Result<Response, Refusal> {
    report(served, |control| json!({ "queues": control.queues() })).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobsQuery {
    max: Option<usize>,
}

#[derive(Serialize)]
struct Jobs {
    #[serde(serialize_with = "lines")]
    jobs: Vec<JobStatus>,
}

#[derive(Serialize)]
struct JobLine<'a> {
    #[serde(flatten)]
    job: &'a JobStatus,
    #[serde(flatten)]
    payload: Option<PayloadFields<'a>>,
}

pub(super) async fn jobs(
    State(served): State<ServerState>,
    queue: PathOf<String>,
    query: QueryOf<JobsQuery>,
) -> Result<Response, Refusal> {
    let Path(queue) = queue?;
    let max = query?.0.max.unwrap_or(JOBS).min(MAX_JOBS);
    known(&served, &queue)?;
    let jobs = served.control.queue_jobs(&queue, max)?;
    report(served, move |_| Jobs { jobs }).await
}

pub(super) async fn put(
    State(served): State<ServerState>,
    asker: Asker,
    queue: PathOf<String>,
    Traceparent(trace): Traceparent,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let Path(queue) = queue?;
    let jobs = known(&served, &queue);
    let max = jobs.as_ref().map(Queue::max_job).map_err(|_| Refusal::invalid(String::new()));
    // Reads the body first, because the sender hears a refusal only after it has sent the body.
    let payload = served.requests.read(body, max).await;
    let (jobs, payload) = (jobs?, payload?);
    let mut options = PutOptions::default();
    options.trace = trace;
    let id = jobs.put_with(payload.bytes.clone(), options).await;
    said(&asker, &id, || format!("put into `{queue}`"));
    Ok(Json(json!({ "id": id? })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequeueQuery {
    id: Option<MessageId>,
}

pub(super) async fn requeue(
    State(served): State<ServerState>,
    AskedControl(control): AskedControl,
    queue: PathOf<String>,
    query: QueryOf<RequeueQuery>,
) -> Result<Json<Value>, Refusal> {
    let Path(queue) = queue?;
    known(&served, &queue)?;
    let requeued = control.requeue(&queue, query?.0.id)?;
    Ok(Json(json!({ "requeued": requeued })))
}

/// The queue of this name. Refuses a name that no queue has.
fn known(served: &ServerState, name: &str) -> Result<Queue, Refusal> {
    served.client.queue(name).map_err(|error| match name.parse::<QueueName>() {
        Ok(_) => Refusal::new(StatusCode::NOT_FOUND, "unknown-queue", error.to_string()),
        Err(_) => error.into(),
    })
}

fn lines<S: Serializer>(jobs: &[JobStatus], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(jobs.iter().map(|job| JobLine {
        job,
        payload: (job.payload.len() <= MAX_SHOWN).then(|| PayloadFields::new(&job.payload)),
    }))
}
