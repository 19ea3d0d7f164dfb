//! Answers of megabytes, such as limits and topics.
//!
//! Each is made on a thread of its own: it would delay every extension on the worker thread, and the blocking pool
//! may hang on files. Where the machine has no thread left, reports that read no files are made on the worker thread:
//! they tell the operator of the shortage.

use std::{io, sync::Arc, thread};

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{Semaphore, oneshot};
use weir_host::Control;

use super::{error::Refusal, routes::ServerState};

/// Sends the result of `make` as JSON; one report at a time.
pub(super) async fn report<T: Serialize>(
    served: ServerState,
    make: impl FnOnce(&Control) -> T + Send + 'static,
) -> Result<Response, Refusal> {
    try_report(served, |control| Ok(make(control))).await
}

/// Sends the result of `make` as JSON, unless `make` refuses the request; one report at a time.
pub(super) async fn try_report<T: Serialize>(
    served: ServerState,
    make: impl FnOnce(&Control) -> Result<T, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    Ok(as_json(made(served, |control| json(&make(control)?)).await?))
}

/// The bytes that `make` makes of what Main reports; one report at a time.
pub(super) async fn made(
    served: ServerState,
    make: impl FnOnce(&Control) -> Result<Vec<u8>, Refusal> + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let (control, turns) = (served.control, served.reports);
    apart(turns, Work::InMemory, on_thread, move || make(&control)).await
}

/// Sends what a reload would do. A plan reads files, which may hang, so plans have turns of their own: one delays only
/// other plans, not reports.
pub(super) async fn plan(served: ServerState, id: Option<String>) -> Result<Response, Refusal> {
    let (control, turns) = (served.control, served.plans);
    Ok(as_json(beside(turns, move || json(&control.plan(id.as_deref())?)).await?))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|error| refusal(error.into()))
}

/// Runs work that may take long, once `turns` has a place for it. Refuses it if the machine has no thread for it.
pub(super) async fn beside<T: Send + 'static>(
    turns: Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    apart(turns, Work::MayBeLong, on_thread, work).await
}

/// What happens to work for which there is no thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// The work takes milliseconds, so it is done on the worker thread.
    InMemory,
    /// The work may hang, so it is refused.
    MayBeLong,
}

/// Runs `work` on a thread of its own, once `turns` has a place for it.
async fn apart<T: Send + 'static>(
    turns: Arc<Semaphore>,
    kind: Work,
    spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<()>,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let turn = turns.acquire_owned().await.map_err(|error| refusal(io::Error::other(error)))?;
    let (sender, done) = oneshot::channel();
    // Shared, so that the work is still here if no thread comes.
    let work = Arc::new(Mutex::new(Some(move || {
        // Fails only if the client has left.
        drop(sender.send(work()));
        drop(turn);
    })));
    let there = work.clone();
    let spawned = spawn(Box::new(move || take(&there)));
    match spawned {
        Ok(()) => {}
        Err(error) if kind == Work::MayBeLong => return Err(refusal(error)),
        Err(_) => take(&work),
    }
    done.await.map_err(|error| refusal(io::Error::other(error)))?
}

fn on_thread(work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name("weir-report".to_owned()).spawn(work).map(drop)
}

/// Does the work, unless another thread has taken it.
fn take(work: &Mutex<Option<impl FnOnce()>>) {
    let work = work.lock().take();
    if let Some(work) = work {
        work();
    }
}

fn as_json(json: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Body::from(json)).into_response()
}

/// The refusal of a report that could not be made: the machine has no thread, the thread panicked, or JSON failed.
fn refusal(error: io::Error) -> Refusal {
    let message = format!("overloaded: cannot put the report together: {error}");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    #[tokio::test]
    async fn without_a_thread_a_report_is_made_here_and_what_reads_files_is_refused() {
        let turns = Arc::new(Semaphore::new(1));
        for _ in 0..2 {
            let made = apart(turns.clone(), Work::InMemory, none, || Ok(b"report".to_vec())).await;
            assert_eq!(made.unwrap(), b"report");
            let refused = apart(turns.clone(), Work::MayBeLong, none, || Ok(())).await;
            assert_eq!(refused.unwrap_err().into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        let made = apart(turns, Work::InMemory, on_thread, || Ok(b"report".to_vec())).await;
        assert_eq!(made.unwrap(), b"report");
    }
}
