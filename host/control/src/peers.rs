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
    report(served, move |control| json!({ "peers": peers.list(), "parts": control.parts() })).await
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
    if let Some(session) = session.filter(|session| session.proof == "main") {
        tracing::warn!("end of the session {id} of `{}`: refused by=\"{asker}\"", session.name);
        let message =
            format!("the session {id} belongs to `{}`, a part of Main: nobody can end it", session.name);
        return Err(Refusal::new(StatusCode::FORBIDDEN, "part-of-main", message));
    }
    // It may have ended since.
    let Some(session) = session.filter(|_| served.peers.end(id)) else {
        tracing::warn!("end of the session {id}: there is none by=\"{asker}\"");
        let message = format!("no session of a peer has the number `{id}`");
        return Err(Refusal::new(StatusCode::NOT_FOUND, "unknown-session", message));
    };
    tracing::info!("end of the session {id} of `{}`: done by=\"{asker}\"", session.name);
    Ok(Json(json!({ "id": id, "name": session.name })))
}
