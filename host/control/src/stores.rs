//! `GET /v1/stores` and the entries of one store.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_host::{
    Control,
    config::extend::nearest,
    names::harmless,
    store::{Bucket, Row, Store, StoreError, StoreUsage},
};

use super::{
    error::Refusal,
    routes::{PathOf, QueryOf, ServerState},
    server::Asker,
};

/// How many entries are listed by default.
const ENTRIES: usize = 100;

/// The most bytes of an imported page: the smallest bound, for a store with small values, and the largest, which is
/// what the control interface reads at all.
const IMPORT: RangeInclusive<u64> = 32 << 20..=64 << 20;

/// Bytes of an imported page that are left for other entries, beside one value of the largest size.
const MORE_TO_IMPORT: u64 = 8 << 20;

/// Owners that are directories of hooks begin with this. Any such owner is allowed, since commands run unconfigured
/// directories, too.
const OF_HOOKS: &str = "hooks/";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct StoreStatus {
    name: String,
    file: String,
    shared: bool,
    events: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    durable_within: Option<String>,
    max_keys: u32,
    max_bytes: u64,
    keys: u64,
    bytes: u64,
    file_bytes: u64,
    /// Why the store cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn all(State(served): State<ServerState>) -> Json<Value> {
    let mut stores = Vec::new();
    for store in served.control.stores() {
        let config = store.config();
        let (usage, error) = match store.usage().await {
            Ok(usage) => (usage, None),
            Err(error) => (StoreUsage::default(), Some(error.to_string())),
        };
        stores.push(StoreStatus {
            name: store.name().to_string(),
            file: store.path().display().to_string(),
            shared: config.shared,
            events: config.events,
            durable_within: config.durable_within.map(|time| humantime::format_duration(time).to_string()),
            max_keys: config.keys,
            max_bytes: config.bytes,
            keys: usage.keys,
            bytes: usage.bytes,
            file_bytes: usage.file,
            error,
        });
    }
    Json(json!({ "stores": stores }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EntriesQuery {
    owner: Option<String>,
    #[serde(default)]
    prefix: String,
    after_owner: Option<String>,
    after_key: Option<String>,
    max: Option<usize>,
    #[serde(default)]
    values: bool,
}

/// An entry. Its value is text, or Base64 if it is no UTF-8. A listed entry has none unless values were asked for.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    owner: String,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

pub(super) async fn entries(
    State(served): State<ServerState>,
    name: PathOf<String>,
    query: QueryOf<EntriesQuery>,
) -> Result<Json<Value>, Refusal> {
    let Path(name) = name?;
    let Query(EntriesQuery { owner, prefix, after_owner, after_key, max, values }) = query?;
    let after = after_key.map(|key| (after_owner.or_else(|| owner.clone()).unwrap_or_default(), key));
    let store = found(&served.control, &name)?;
    let page = store.rows(owner, after, prefix, max.unwrap_or(ENTRIES), values).await?;
    let next = page.next.map(|(owner, key)| json!({ "owner": owner, "key": key }));
    let entries: Vec<Entry> = page.rows.into_iter().map(Entry::from).collect();
    Ok(Json(json!({ "entries": entries, "next": next })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyQuery {
    #[serde(default)]
    owner: String,
    key: String,
}

pub(super) async fn get(
    State(served): State<ServerState>,
    name: PathOf<String>,
    query: QueryOf<KeyQuery>,
) -> Result<Response, Refusal> {
    let (Path(name), Query(KeyQuery { owner, key })) = (name?, query?);
    let value = bucket(&served.control, &name, &owner)?.get(key.clone(), u64::MAX).await?;
    let value = value.ok_or_else(|| {
        let key = harmless(&key, 200);
        Refusal::new(StatusCode::NOT_FOUND, "no-such-key", format!("`{name}` has no key `{key}`"))
    })?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], value).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PutQuery {
    #[serde(default)]
    owner: String,
    key: String,
    /// Whether to set the key even for an owner that no extension, peer or directory of hooks is.
    #[serde(default)]
    force: bool,
}

pub(super) async fn put(
    State(served): State<ServerState>,
    asker: Asker,
    name: PathOf<String>,
    query: QueryOf<PutQuery>,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let (Path(name), Query(PutQuery { owner, key, force })) = (name?, query?);
    let bucket = bucket(&served.control, &name, &owner)?;
    let value = served.requests.read(body, Ok(bucket.store().config().value_size)).await?;
    if !force && !bucket.store().config().shared {
        known_owner(&served, bucket.store(), &owner).await?;
    }
    let existed = bucket.change(vec![(key.clone(), Some(value.bytes.clone()))]).await;
    audit(&asker, format_args!("put of `{key}` into store `{name}`"), &existed);
    Ok(Json(json!({ "existed": existed? > 0 })))
}

pub(super) async fn remove(
    State(served): State<ServerState>,
    asker: Asker,
    name: PathOf<String>,
    query: QueryOf<KeyQuery>,
) -> Result<Json<Value>, Refusal> {
    let (Path(name), Query(KeyQuery { owner, key })) = (name?, query?);
    let existed = bucket(&served.control, &name, &owner)?.change(vec![(key.clone(), None)]).await;
    audit(&asker, format_args!("removal of `{key}` from store `{name}`"), &existed);
    Ok(Json(json!({ "existed": existed? > 0 })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Import {
    entries: Vec<Entry>,
}

pub(super) async fn import(
    State(served): State<ServerState>,
    asker: Asker,
    name: PathOf<String>,
    body: Body,
) -> Result<Json<Value>, Refusal> {
    let Path(name) = name?;
    let store = found(&served.control, &name)?;
    // The largest value may be in Base64, which is a third longer.
    let of_largest = (store.config().value_size / 3).saturating_mul(4).saturating_add(MORE_TO_IMPORT);
    let max = of_largest.clamp(*IMPORT.start(), *IMPORT.end());
    let body = served.requests.read(body, Ok(max)).await?;
    let Import { entries } = serde_json::from_slice(&body.bytes)
        .map_err(|error| Refusal::invalid(format!("the body is no page of entries: {error}")))?;
    let rows: Vec<_> = entries.into_iter().map(Entry::into_row).collect::<Result<_, _>>()?;
    let number = rows.len();
    let imported = store.import(rows).await;
    audit(&asker, format_args!("import of {number} entries into store `{name}`"), &imported);
    imported?;
    Ok(Json(json!({ "imported": number })))
}

pub(super) async fn compact(
    State(served): State<ServerState>,
    asker: Asker,
    name: PathOf<String>,
) -> Result<Json<Value>, Refusal> {
    let Path(name) = name?;
    let store = found(&served.control, &name)?;
    let before = store.usage().await?;
    let after = store.compact().await;
    audit(&asker, format_args!("compaction of store `{name}`"), &after);
    Ok(Json(json!({ "file-bytes-before": before.file, "file-bytes": after?.file })))
}

/// Refuses an owner that is no extension, no peer and no directory of hooks, and has no entries. The empty owner is
/// allowed.
async fn known_owner(served: &ServerState, store: &Arc<Store>, owner: &str) -> Result<(), Refusal> {
    if owner.is_empty() || owner.starts_with(OF_HOOKS) {
        return Ok(());
    }
    let extensions: Vec<_> =
        served.control.extensions().into_iter().map(|status| status.id.to_string()).collect();
    let peers: Vec<_> = served.peers.list().into_iter().map(|status| status.name.to_string()).collect();
    let names = || extensions.iter().chain(&peers).map(String::as_str);
    if names().any(|name| name == owner) {
        return Ok(());
    }
    let of_owner = store.rows(Some(owner.to_owned()), None, String::new(), 1, false).await?;
    if !of_owner.rows.is_empty() {
        return Ok(());
    }
    let near = nearest(owner, names()).map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
    let owner = harmless(owner, 200);
    let message =
        format!("no extension or peer is `{owner}`{near}; `--force` sets the key for it all the same");
    Err(Refusal::new(StatusCode::NOT_FOUND, "unknown-owner", message))
}

fn found(control: &Control, name: &str) -> Result<Arc<Store>, Refusal> {
    control.store(name).ok_or_else(|| unknown(name))
}

fn bucket(control: &Control, name: &str, owner: &str) -> Result<Bucket, Refusal> {
    control.bucket(name, owner).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Refusal {
    let name = harmless(name, 200);
    let message = format!("there is no store `{name}`: add `[store.{name}]` to the configuration");
    Refusal::new(StatusCode::NOT_FOUND, "unknown-store", message)
}

/// Logs a change of a store that the asker wanted, and its outcome.
fn audit<T>(asker: &Asker, what: fmt::Arguments<'_>, outcome: &Result<T, StoreError>) {
    let outcome = outcome.as_ref().map_or_else(ToString::to_string, |_| "done".to_owned());
    let text = harmless(format!("{what}: {outcome}"), 1024);
    tracing::info!("{text} by=\"{asker}\"");
}

impl From<Row> for Entry {
    fn from(Row { owner, key, bytes, value }: Row) -> Self {
        let (value, base64) = match value.as_deref().map(|value| (value, str::from_utf8(value))) {
            None => (None, None),
            Some((_, Ok(text))) => (Some(text.to_owned()), None),
            Some((value, Err(_))) => (None, Some(BASE64_STANDARD.encode(value))),
        };
        Self { owner, key, bytes: Some(bytes), value, base64 }
    }
}

impl Entry {
    fn into_row(self) -> Result<(String, String, Bytes), Refusal> {
        let Self { owner, key, bytes: _, value, base64 } = self;
        let value = match (value, base64) {
            (Some(text), None) => text.into(),
            (None, Some(base64)) => BASE64_STANDARD
                .decode(base64)
                .map_err(|error| Refusal::invalid(format!("the value of an entry is no Base64: {error}")))?
                .into(),
            _ => return Err(Refusal::invalid("an entry has either `value` or `base64`")),
        };
        Ok((owner, key, value))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let (status, code) = match &error {
            StoreError::Key(_) | StoreError::KeysAtOnce(_) => (StatusCode::BAD_REQUEST, "invalid"),
            StoreError::ValueTooLarge { .. } | StoreError::AnswerTooLarge { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "too-large")
            }
            StoreError::Bytes { .. } | StoreError::Keys { .. } | StoreError::File { .. } => {
                (StatusCode::INSUFFICIENT_STORAGE, "store-full")
            }
            StoreError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            StoreError::Closed => (StatusCode::NOT_FOUND, "unknown-store"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "store-failed"),
        };
        Self::new(status, code, error.to_string())
    }
}
