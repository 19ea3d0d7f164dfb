//! The contract `store@1`: extensions use the stores granted to them, by requests.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_bus::HandlerError;
use weir_config::STORE_CONTRACT;
use weir_names::{MAIN, NameError};
use weir_store::{Bucket, MAX_PAGE, StoreError, Stores, Unavailable};
use weir_supervisor::Roster;

use crate::service::{Answer, ServedRequest, Service, asked, json};

/// The contract as it describes itself.
pub(super) const DOCUMENT: &str = include_str!("store@1.json");

/// Requests of one sender at once. More are refused, so that a flood takes no handlers from other senders.
const AT_ONCE: usize = 64;

/// Bytes that JSON adds to a value in Base64, and to a key.
const IN_JSON: u64 = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRequest {
    store: String,
    /// Whose entries of the store: only Main may name another than itself.
    owner: Option<String>,
    key: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetRequest {
    store: String,
    owner: Option<String>,
    key: String,
    value: Option<String>,
    base64: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListRequest {
    store: String,
    owner: Option<String>,
    #[serde(default)]
    prefix: String,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IncrementRequest {
    store: String,
    owner: Option<String>,
    key: String,
    #[serde(default = "one")]
    by: i64,
}

/// Values as in [`SetRequest`]: as text or as Base64; neither for a key without a value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CompareAndSetRequest {
    store: String,
    owner: Option<String>,
    key: String,
    expected: Option<String>,
    expected_base64: Option<String>,
    value: Option<String>,
    base64: Option<String>,
}

/// A value that was found: as text if it is UTF-8, else as Base64. Both are `None` if the key has no value.
#[derive(Debug, Default, Serialize)]
struct FoundValue {
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[derive(Debug, Serialize)]
struct Listed {
    keys: Vec<String>,
    next: Option<String>,
}

#[derive(Debug, Serialize)]
struct Swapped {
    swapped: bool,
    #[serde(flatten)]
    current: Option<FoundValue>,
}

#[derive(Debug)]
struct StoreService {
    stores: Arc<Stores>,
    roster: Arc<Roster>,
    /// Room for the requests of each sender. A sender without requests is forgotten.
    senders: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Serves `store@1`.
pub(super) fn service(stores: &Arc<Stores>, roster: &Arc<Roster>) -> Result<Service, NameError> {
    let (stores, roster) = (stores.clone(), roster.clone());
    let served = Arc::new(StoreService { stores, roster, senders: Mutex::default() });
    Ok(Service::new(STORE_CONTRACT.parse()?)
        .on("get".parse()?, served.handler(get))
        .on("set".parse()?, served.handler(set))
        .on("delete".parse()?, served.handler(delete))
        .on("exists".parse()?, served.handler(exists))
        .on("list".parse()?, served.handler(list))
        .on("increment".parse()?, served.handler(increment))
        .on("compare-and-set".parse()?, served.handler(swap)))
}

impl StoreService {
    fn handler<F, R>(
        self: &Arc<Self>,
        act: F,
    ) -> impl Fn(ServedRequest) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync + 'static
    where
        F: Fn(Arc<Self>, ServedRequest) -> R + Copy + Send + Sync + 'static,
        R: Future<Output = Answer> + Send + 'static,
    {
        let served = self.clone();
        move |request| {
            let served = served.clone();
            Box::pin(async move {
                let _one_of_few = served.room(&request.sender)?;
                act(served, request).await
            })
        }
    }

    fn room(&self, sender: &str) -> Result<OwnedSemaphorePermit, HandlerError> {
        let mut senders = self.senders.lock();
        let room = senders.get(sender).and_then(Weak::upgrade).unwrap_or_else(|| {
            senders.retain(|_, room| room.strong_count() > 0);
            let room = Arc::new(Semaphore::new(AT_ONCE));
            senders.insert(sender.to_owned(), Arc::downgrade(&room));
            room
        });
        room.try_acquire_owned().map_err(|_| {
            let message = format!("{AT_ONCE} requests of `{sender}` are being served: try again later");
            HandlerError::new("busy", message)
        })
    }

    /// The store as this sender sees it. Main sees the entries that all share, or those of the owner that it names.
    fn bucket(&self, sender: &str, store: &str, owner: Option<String>) -> Result<Bucket, HandlerError> {
        let denied = |error: Unavailable| match error {
            Unavailable::NotGranted => {
                let message =
                    format!("`{sender}` may not use the store `{store}`: its `grants.stores` lacks it");
                HandlerError::new("permission-denied", message)
            }
            Unavailable::Unknown => HandlerError::new("unknown", format!("there is no store `{store}`")),
        };
        if sender == MAIN {
            let owner = owner.unwrap_or_default();
            return self.stores.bucket_of(&owner, store, true).ok_or_else(|| denied(Unavailable::Unknown));
        }
        let unit = self.roster.find(sender).ok_or_else(|| denied(Unavailable::NotGranted))?;
        let version = unit.version();
        let config = &version.config;
        // Copies have the keys of their original.
        let own = config.copy_of.as_ref().unwrap_or(&config.id).as_str();
        if owner.is_some_and(|owner| owner != own) {
            let message = format!("`{sender}` may not name another `owner`");
            return Err(HandlerError::new("permission-denied", message));
        }
        self.stores.bucket(own, &config.grants.stores, store).map_err(denied)
    }

    /// Bytes of a value that fit into an answer to this sender.
    fn allowed(&self, sender: &str) -> u64 {
        let limits = self.roster.find(sender).map(|unit| unit.version().config.limits.message_size);
        limits.map_or(u64::MAX, |size| (size.saturating_sub(IN_JSON) / 4).saturating_mul(3))
    }
}

async fn get(served: Arc<StoreService>, request: ServedRequest) -> Answer {
    let KeyRequest { store, owner, key } = asked("get", &request)?;
    let bucket = served.bucket(&request.sender, &store, owner)?;
    let value = bucket.get(key, served.allowed(&request.sender)).await.map_err(failed)?;
    json(&FoundValue::of(value))
}

async fn set(served: Arc<StoreService>, request: ServedRequest) -> Answer {
    let SetRequest { store, owner, key, value, base64 } = asked("set", &request)?;
    let value = given("value", value, base64)?.ok_or_else(|| {
        HandlerError::new("invalid", "`set` takes a `value`, or one as `base64`".to_owned())
    })?;
    let bucket = served.bucket(&request.sender, &store, owner)?;
    let existed = bucket.change(vec![(key, Some(value))]).await.map_err(failed)?;
    json(&serde_json::json!({ "existed": existed > 0 }))
}

async fn delete(served: Arc<StoreService>, request: ServedRequest) -> Answer {
    let KeyRequest { store, owner, key } = asked("delete", &request)?;
    let bucket = served.bucket(&request.sender, &store, owner)?;
    let existed = bucket.change(vec![(key, None)]).await.map_err(failed)?;
    json(&serde_json::json!({ "existed": existed > 0 }))
}

async fn exists(served: Arc<StoreService>, request: ServedRequest) -> Answer {
    let KeyRequest { store, owner, key } = asked("exists", &request)?;
    let bucket = served.bucket(&request.sender, &store, owner)?;
    json(&serde_json::json!({ "exists": bucket.exists(key).await.map_err(failed)? }))
}

async fn list(served: Arc<StoreService>, request: ServedRequest) -> Answer {
    let ListRequest { store, owner, prefix, after, limit } = asked("list", &request)?;
    let bucket = served.bucket(&request.sender, &store, owner)?;
    let page = bucket.list(prefix, after, limit.unwrap_or(MAX_PAGE)).await.map_err(failed)?;
    json(&Listed { keys: page.keys, next: page.next })
}

async fn increment(served: Arc<StoreService>, request: ServedRequest) -> Answer {
    let IncrementRequest { store, owner, key, by } = asked("increment", &request)?;
    let bucket = served.bucket(&request.sender, &store, owner)?;
    let sum = bucket.increment(key, by.into(), i64::MIN.into()..=i64::MAX.into()).await.map_err(failed)?;
    json(&serde_json::json!({ "value": i64::try_from(sum).unwrap_or_default() }))
}

async fn swap(served: Arc<StoreService>, request: ServedRequest) -> Answer {
    let asked: CompareAndSetRequest = asked("compare-and-set", &request)?;
    let CompareAndSetRequest { store, owner, key, expected, expected_base64, value, base64 } = asked;
    let expected = given("expected", expected, expected_base64)?;
    let value = given("value", value, base64)?;
    let bucket = served.bucket(&request.sender, &store, owner)?;
    let swapped = bucket.swap(key, expected, value).await.map_err(failed)?;
    let is_swapped = swapped.is_ok();
    let current = match swapped {
        Ok(()) => None,
        Err(current) => {
            let allowed = served.allowed(&request.sender);
            let fits = current.as_ref().is_none_or(|value| value.len() as u64 <= allowed);
            // If it does not fit, the caller learns only that it is another value.
            fits.then(|| FoundValue::of(current))
        }
    };
    json(&Swapped { swapped: is_swapped, current })
}

impl FoundValue {
    fn of(value: Option<Bytes>) -> Self {
        let Some(value) = value else { return Self::default() };
        match str::from_utf8(&value) {
            Ok(text) => Self { value: Some(text.to_owned()), base64: None },
            Err(_) => Self { value: None, base64: Some(BASE64_STANDARD.encode(&value)) },
        }
    }
}

/// The value that a request gives as text or as Base64, if it gives one.
fn given(key: &str, text: Option<String>, base64: Option<String>) -> Result<Option<Bytes>, HandlerError> {
    match (text, base64) {
        (Some(_), Some(_)) => {
            Err(HandlerError::new("invalid", format!("`{key}` is given as text and as Base64: give one")))
        }
        (Some(text), None) => Ok(Some(text.into())),
        (None, Some(base64)) => BASE64_STANDARD
            .decode(base64)
            .map(|bytes| Some(bytes.into()))
            .map_err(|error| HandlerError::new("invalid", format!("`{key}` is not in Base64: {error}"))),
        (None, None) => Ok(None),
    }
}

fn failed(error: StoreError) -> HandlerError {
    HandlerError::new(error.code(), error.to_string())
}

fn one() -> i64 {
    1
}
