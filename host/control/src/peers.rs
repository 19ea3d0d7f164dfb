//! `GET /v1/peers`, and the end of one session.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use serde_json::{Value, json};
use weir_host::peers::SessionId;

use super::{
    asker::Asker,
    error::Refusal,
    report::report,
    routes::{PathOf, Served},
};

pub(super) async fn all(State(served): State<Served>) -> Result<Response, Refusal> {
    let peers = served.peers.clone();
    report(served, move |_| json!({ "peers": peers.list() })).await
}

pub(super) async fn end(
    State(served): State<Served>,
    asker: Asker,
    id: PathOf<u64>,
) -> Result<Json<Value>, Refusal> {
    let Path(id) = id?;
    let id = SessionId(id);
    let listed = served.peers.list();
    let session = listed.iter().flat_map(|peer| &peer.sessions).find(|session| session.id == id);
    // It may have ended since.
    let Some(session) = session.filter(|_| served.peers.end(id)) else {
        tracing::warn!("end of the session {id}: there is none by=\"{asker}\"");
        let message = format!("no session of a peer has the number `{id}`");
        return Err(Refusal::new(StatusCode::NOT_FOUND, "unknown-session", message));
    };
    tracing::info!("end of the session {id} of `{}`: done by=\"{asker}\"", session.name);
    Ok(Json(json!({ "id": id, "name": session.name })))
}
