//! The functions of `wasi:keyvalue`, carried out by [`weir_store`].

use bytes::Bytes;
use wasmtime::{
    StoreContextMut,
    component::{Linker, LinkerInstance, Resource, ResourceType, WasmList},
};
use weir_store::{Bucket, MAX_PAGE, StoreError};

use super::{
    VERSIONS,
    types::{CasError, Error, KeyResponse, KeyResponse2, OpenBucket, OpenCas, hash},
};
use crate::{
    abi::{Handed, Text},
    imports::Async,
    memory::size,
    meter,
    sandbox::Guest,
};

type Store<'a, G> = StoreContextMut<'a, G>;
type Fallible<T> = Result<T, Error>;
type Key = Text;
type Value = Handed<WasmList<u8>>;
type Pair = Option<(String, Bytes)>;

/// Why a call returns no value: an error of the interface, or a trap.
enum Failure {
    Error(Error),
    Trap(wasmtime::Error),
}

type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Error(error.into())
    }
}

impl From<wasmtime::Error> for Failure {
    fn from(trap: wasmtime::Error) -> Self {
        Self::Trap(trap)
    }
}

/// Adds functions to the linker, each with its name in the interface and the function that carries it out.
macro_rules! add {
    ($linker:ident, $($name:literal => $act:path),+ $(,)?) => {
        $($linker.func_wrap_async($name, |store, arguments| {
            Box::new(async move { done($act(store, arguments).await) })
        })?;)+
    };
}

pub(crate) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    for version in VERSIONS {
        // The second draft lists keys after a key and not a number, and has compare-and-swap.
        let is_second = version.ends_with('2');
        add_store(&mut linker.instance(&format!("wasi:keyvalue/store@{version}"))?, is_second)?;
        add_atomics(&mut linker.instance(&format!("wasi:keyvalue/atomics@{version}"))?, is_second)?;
        let mut batch = linker.instance(&format!("wasi:keyvalue/batch@{version}"))?;
        add!(batch,
            "get-many" => get_many,
            "set-many" => set_many,
            "delete-many" => delete_many,
        );
    }
    Ok(())
}

fn add_store<G: Guest>(linker: &mut LinkerInstance<'_, G>, is_second: bool) -> wasmtime::Result<()> {
    linker.resource("bucket", ResourceType::host::<OpenBucket>(), |mut store, rep| {
        store.data_mut().sandbox_mut().table.delete(Resource::<OpenBucket>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap("open", |mut store: Store<'_, G>, (name,): (Text,)| {
        meter::charge(&mut store, name.copied())?;
        Ok((name.0.map_or(Err(Error::NoSuchStore), |name| open(&mut store, &name)),))
    })?;
    add!(linker,
        "[method]bucket.get" => get,
        "[method]bucket.set" => set,
        "[method]bucket.delete" => delete,
        "[method]bucket.exists" => exists,
    );
    if is_second {
        add!(linker, "[method]bucket.list-keys" => list_keys);
    } else {
        add!(linker, "[method]bucket.list-keys" => list_keys_by_number);
    }
    Ok(())
}

fn add_atomics<G: Guest>(linker: &mut LinkerInstance<'_, G>, is_second: bool) -> wasmtime::Result<()> {
    if !is_second {
        add!(linker, "increment" => increment_unsigned);
        return Ok(());
    }
    linker.resource("cas", ResourceType::host::<OpenCas>(), |mut store, rep| {
        store.data_mut().sandbox_mut().table.delete(Resource::<OpenCas>::new_own(rep))?;
        Ok(())
    })?;
    add!(linker,
        "increment" => increment,
        "[static]cas.new" => new_cas,
        "[method]cas.current" => current,
    );
    linker.func_wrap_async(
        "swap",
        |mut store: Store<'_, G>,
         (cas, value): (Resource<OpenCas>, Value)|
         -> Async<'_, Result<(), CasError>> {
            Box::new(async move {
                meter::charge(&mut store, length(&value))?;
                let value = copied(&store, &value);
                let cas = store.data_mut().sandbox_mut().table.delete(cas)?;
                Ok((match value {
                    Ok(value) => swap(&mut store, cas, value).await,
                    Err(error) => Err(CasError::StoreError(error)),
                },))
            })
        },
    )
}

async fn get<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, key): (Resource<OpenBucket>, Key),
) -> Outcome<Option<Bytes>> {
    let bucket = enter(&mut store, &bucket, key.copied())?;
    let value = bucket.get(within(key)?, allowed(&store)).await;
    meter::charge_more(&mut store, value.iter().flatten().map(Bytes::len).sum())?;
    Ok(value?)
}

async fn set<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, key, value): (Resource<OpenBucket>, Key, Value),
) -> Outcome<()> {
    let bucket = enter(&mut store, &bucket, key.copied() + length(&value))?;
    let change = (within(key)?, Some(copied(&store, &value)?));
    bucket.change(vec![change]).await?;
    Ok(())
}

async fn delete<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, key): (Resource<OpenBucket>, Key),
) -> Outcome<()> {
    let bucket = enter(&mut store, &bucket, key.copied())?;
    bucket.change(vec![(within(key)?, None)]).await?;
    Ok(())
}

async fn exists<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, key): (Resource<OpenBucket>, Key),
) -> Outcome<bool> {
    let bucket = enter(&mut store, &bucket, key.copied())?;
    Ok(bucket.exists(within(key)?).await?)
}

async fn list_keys<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, cursor): (Resource<OpenBucket>, Option<Key>),
) -> Outcome<KeyResponse2> {
    let (keys, cursor) = list(&mut store, &bucket, cursor.map(within).transpose()).await?;
    Ok(KeyResponse2 { keys, cursor })
}

async fn list_keys_by_number<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, cursor): (Resource<OpenBucket>, Option<u64>),
) -> Outcome<KeyResponse> {
    let open = opened(&mut store, &bucket)?;
    let kept =
        |cursor| open.kept(cursor).ok_or_else(|| Error::Other(format!("no cursor {cursor} of this bucket")));
    let after = cursor.map(kept).transpose();
    let (keys, next) = list(&mut store, &bucket, after).await?;
    let open = opened(&mut store, &bucket)?;
    Ok(KeyResponse { keys, cursor: next.map(|key| open.keep(key)) })
}

async fn increment_unsigned<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, key, delta): (Resource<OpenBucket>, Key, u64),
) -> Outcome<u64> {
    let bucket = enter(&mut store, &bucket, key.copied())?;
    let sum = bucket.increment(within(key)?, delta.into(), 0..=u64::MAX.into()).await?;
    u64::try_from(sum).map_err(|_| StoreError::OutOfRange.into())
}

async fn increment<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, key, delta): (Resource<OpenBucket>, Key, i64),
) -> Outcome<i64> {
    let bucket = enter(&mut store, &bucket, key.copied())?;
    let sum = bucket.increment(within(key)?, delta.into(), i64::MIN.into()..=i64::MAX.into()).await?;
    i64::try_from(sum).map_err(|_| StoreError::OutOfRange.into())
}

/// Makes a handle for a swap that counts the present value as seen.
async fn new_cas<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, key): (Resource<OpenBucket>, Key),
) -> Outcome<Resource<OpenCas>> {
    let bucket = enter(&mut store, &bucket, key.copied())?;
    let key = within(key)?;
    // The store hashes the value on the thread pool, because the value may have many MiB.
    let seen = bucket.hash(key.clone()).await?;
    Ok(push(&mut store, OpenCas { bucket, key, seen })?)
}

async fn current<G: Guest>(mut store: Store<'_, G>, (cas,): (Resource<OpenCas>,)) -> Outcome<Option<Bytes>> {
    meter::charge(&mut store, 0)?;
    let OpenCas { bucket, key, .. } = opened(&mut store, &cas)?.clone();
    let value = bucket.get(key, allowed(&store)).await?;
    meter::charge_more(&mut store, value.as_ref().map_or(0, Bytes::len))?;
    opened(&mut store, &cas)?.seen = hash(value.as_deref());
    Ok(value)
}

async fn get_many<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, keys): (Resource<OpenBucket>, Handed<Vec<Key>>),
) -> Outcome<Vec<Pair>> {
    let (bucket, keys) = enter_keys(&mut store, &bucket, keys)?;
    let values = bucket.get_many(keys.clone(), allowed(&store)).await;
    let bytes = values.iter().flatten().flatten().map(Bytes::len).sum();
    meter::charge_more(&mut store, bytes)?;
    let pairs = keys.into_iter().zip(values?);
    Ok(pairs.map(|(key, value)| value.map(|value| (key, value))).collect())
}

async fn set_many<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, pairs): (Resource<OpenBucket>, Handed<Vec<(Key, Value)>>),
) -> Outcome<()> {
    let Ok(pairs) = pairs.whole() else { return refused(&mut store) };
    let bytes = pairs.iter().map(|(key, value)| key.copied() + length(value)).sum();
    let bucket = enter_many(&mut store, &bucket, pairs.len(), bytes)?;
    let pairs = pairs.into_iter();
    let changes = pairs.map(|(key, value)| Ok((within(key)?, Some(copied(&store, &value)?))));
    bucket.change(changes.collect::<Fallible<_>>()?).await?;
    Ok(())
}

async fn delete_many<G: Guest>(
    mut store: Store<'_, G>,
    (bucket, keys): (Resource<OpenBucket>, Handed<Vec<Key>>),
) -> Outcome<()> {
    let (bucket, keys) = enter_keys(&mut store, &bucket, keys)?;
    bucket.change(keys.into_iter().map(|key| (key, None)).collect()).await?;
    Ok(())
}

/// Opens a store. The empty name stands for `default`, as programs for other hosts expect.
fn open<G: Guest>(store: &mut Store<'_, G>, name: &str) -> Fallible<Resource<OpenBucket>> {
    let name = if name.is_empty() { "default" } else { name };
    let access = store.data().sandbox().stores.as_ref().ok_or(Error::AccessDenied)?;
    let bucket = access.stores.bucket(&access.owner, &access.grants, name)?;
    push(store, OpenBucket::new(bucket))
}

/// Returns the value behind a handle.
fn opened<'a, G: Guest, T: 'static>(
    store: &'a mut Store<'_, G>,
    handle: &Resource<T>,
) -> wasmtime::Result<&'a mut T> {
    Ok(store.data_mut().sandbox_mut().table.get_mut(handle)?)
}

/// Charges for a call with this many bytes, and returns the store.
fn enter<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    bytes: usize,
) -> wasmtime::Result<Bucket> {
    meter::charge(store, bytes)?;
    Ok(opened(store, bucket)?.bucket.clone())
}

/// Charges for a call with this many keys, each of which is as much work as a call, and returns the store.
fn enter_many<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    keys: usize,
    bytes: usize,
) -> wasmtime::Result<Bucket> {
    meter::charge_each(store, keys)?;
    meter::charge_more(store, bytes)?;
    Ok(opened(store, bucket)?.bucket.clone())
}

/// Charges for a call with a list of keys, and returns the store and the keys.
fn enter_keys<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    keys: Handed<Vec<Key>>,
) -> Outcome<(Bucket, Vec<String>)> {
    let Ok(keys) = keys.whole() else { return refused(store) };
    let bucket = enter_many(store, bucket, keys.len(), keys.iter().map(Key::copied).sum())?;
    let keys: Fallible<Vec<_>> = keys.into_iter().map(within).collect();
    Ok((bucket, keys?))
}

/// Charges for a call that carries too many bytes of keys and values, and returns its error.
fn refused<G: Guest, T>(store: &mut Store<'_, G>) -> Outcome<T> {
    meter::charge(store, 0)?;
    let allowed = allowed(store);
    Err(Error::Other(format!("the keys and values of one call have more than {allowed} bytes")).into())
}

/// Returns the next page of keys, and the key after which the list goes on, if it does.
async fn list<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    after: Fallible<Option<String>>,
) -> Outcome<(Vec<String>, Option<String>)> {
    let bucket = enter(store, bucket, after.iter().flatten().map(String::len).sum())?;
    let page = bucket.list(String::new(), after?, MAX_PAGE).await?;
    meter::charge_texts(store, page.keys.iter())?;
    Ok((page.keys, page.next))
}

/// Sets the value, if the present one is the one that the handle has seen. Otherwise returns a handle that has seen the
/// present one.
async fn swap<G: Guest>(store: &mut Store<'_, G>, mut cas: OpenCas, value: Bytes) -> Result<(), CasError> {
    let swapped = cas.bucket.swap_seen(cas.key.clone(), cas.seen, Some(value)).await;
    match swapped.map_err(|error| CasError::StoreError(error.into()))? {
        Ok(()) => Ok(()),
        Err(current) => {
            cas.seen = current;
            Err(push(store, cas).map_or_else(CasError::StoreError, CasError::CasFailed))
        }
    }
}

/// Makes a handle of the guest. Fails if the guest has too many.
fn push<G: Guest, T: Send + 'static>(store: &mut Store<'_, G>, entry: T) -> Fallible<Resource<T>> {
    let pushed = store.data_mut().sandbox_mut().table.push(entry);
    pushed.map_err(|_| Error::Other("too many handles are open: drop some".to_owned()))
}

/// Copies a value in one piece, which wasmtime does not do for a `Vec` or `Bytes`. A value that is too large is not
/// copied.
fn copied<G: Guest>(store: &Store<'_, G>, value: &Value) -> Fallible<Bytes> {
    match value {
        Handed::Whole(value) => Ok(Bytes::copy_from_slice(value.as_le_slice(store))),
        Handed::TooLarge(bytes) => {
            let allowed = allowed(store);
            Err(Error::Other(format!(
                "the value has {bytes} bytes, and one call carries at most {allowed}, its key included"
            )))
        }
    }
}

/// Returns how many bytes of a value will be copied: none of a value that is too large.
fn length(value: &Value) -> usize {
    match value {
        Handed::Whole(value) => value.len(),
        Handed::TooLarge(_) => 0,
    }
}

/// Returns the key, or the error for a key that is too long.
fn within(key: Key) -> Fallible<String> {
    key.0.map_err(|bytes| StoreError::Key(size(bytes)).into())
}

/// Returns the most bytes that one answer may have, which is 0 for a guest without stores.
fn allowed<G: Guest>(store: &Store<'_, G>) -> u64 {
    store.data().sandbox().stores.as_ref().map_or(0, |access| access.transfer)
}

/// Turns the outcome of a call into what wasmtime takes: a value or error for the guest, or a trap.
fn done<T>(outcome: Outcome<T>) -> wasmtime::Result<(Fallible<T>,)> {
    match outcome {
        Ok(value) => Ok((Ok(value),)),
        Err(Failure::Error(error)) => Ok((Err(error),)),
        Err(Failure::Trap(trap)) => Err(trap),
    }
}
