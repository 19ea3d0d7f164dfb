//! The interfaces over [`weir_store`].

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

/// The value of a [`Fallible`]; its error is the answer of the call.
macro_rules! good {
    ($fallible:expr) => {
        match $fallible {
            Ok(value) => value,
            Err(error) => return Ok((Err(error),)),
        }
    };
}

pub(crate) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    for version in VERSIONS {
        let is_second = version.ends_with('2');
        store(&mut linker.instance(&format!("wasi:keyvalue/store@{version}"))?, is_second)?;
        atomics(&mut linker.instance(&format!("wasi:keyvalue/atomics@{version}"))?, is_second)?;
        batch(&mut linker.instance(&format!("wasi:keyvalue/batch@{version}"))?)?;
    }
    Ok(())
}

fn store<G: Guest>(linker: &mut LinkerInstance<'_, G>, is_second: bool) -> wasmtime::Result<()> {
    linker.resource("bucket", ResourceType::host::<OpenBucket>(), |mut store, rep| {
        store.data_mut().sandbox_mut().table.delete(Resource::<OpenBucket>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap("open", |mut store: Store<'_, G>, (name,): (Text,)| {
        meter::charge(&mut store, name.copied())?;
        Ok((name.0.map_or(Err(Error::NoSuchStore), |name| open(&mut store, &name)),))
    })?;
    linker.func_wrap_async(
        "[method]bucket.get",
        |mut store: Store<'_, G>, (bucket, key): (Resource<OpenBucket>, Key)| -> Async<'_, Fallible<_>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.copied())?;
                let key = good!(within(key));
                let value = bucket.get(key, allowed(&store)).await;
                meter::charge_more(
                    &mut store,
                    value.as_ref().map_or(0, |v| v.as_ref().map_or(0, Bytes::len)),
                )?;
                outcome(value)
            })
        },
    )?;
    linker.func_wrap_async(
        "[method]bucket.set",
        |mut store: Store<'_, G>,
         (bucket, key, value): (Resource<OpenBucket>, Key, Value)|
         -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.copied() + length(&value))?;
                let (key, value) = match (within(key), copied(&store, &value)) {
                    (Ok(key), Ok(value)) => (key, value),
                    (Err(error), _) | (_, Err(error)) => return Ok((Err(error),)),
                };
                outcome(bucket.change(vec![(key, Some(value))]).await.map(drop))
            })
        },
    )?;
    linker.func_wrap_async(
        "[method]bucket.delete",
        |mut store: Store<'_, G>, (bucket, key): (Resource<OpenBucket>, Key)| -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.copied())?;
                let key = good!(within(key));
                outcome(bucket.change(vec![(key, None)]).await.map(drop))
            })
        },
    )?;
    linker.func_wrap_async(
        "[method]bucket.exists",
        |mut store: Store<'_, G>, (bucket, key): (Resource<OpenBucket>, Key)| -> Async<'_, Fallible<bool>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.copied())?;
                let key = good!(within(key));
                outcome(bucket.exists(key).await)
            })
        },
    )?;
    if is_second {
        linker.func_wrap_async(
            "[method]bucket.list-keys",
            |mut store: Store<'_, G>,
             (bucket, cursor): (Resource<OpenBucket>, Option<Key>)|
             -> Async<'_, Fallible<KeyResponse2>> {
                Box::new(async move {
                    let cursor = match cursor.map(within).transpose() {
                        Ok(cursor) => cursor,
                        Err(error) => {
                            meter::charge(&mut store, 0)?;
                            return Ok((Err(error),));
                        }
                    };
                    let page = list(&mut store, &bucket, cursor).await?;
                    Ok((page.map(|(keys, cursor)| KeyResponse2 { keys, cursor }),))
                })
            },
        )
    } else {
        linker.func_wrap_async(
            "[method]bucket.list-keys",
            |mut store: Store<'_, G>,
             (bucket, cursor): (Resource<OpenBucket>, Option<u64>)|
             -> Async<'_, Fallible<KeyResponse>> {
                Box::new(async move {
                    let open = store.data_mut().sandbox_mut().table.get(&bucket)?;
                    let after = match cursor {
                        None => None,
                        Some(cursor) => match open.kept(cursor) {
                            Some(key) => Some(key),
                            None => {
                                meter::charge(&mut store, 0)?;
                                return Ok(
                                    (Err(Error::Other(format!("no cursor {cursor} of this bucket"))),),
                                );
                            }
                        },
                    };
                    let page = list(&mut store, &bucket, after).await?;
                    let (keys, next) = good!(page);
                    let open = store.data_mut().sandbox_mut().table.get_mut(&bucket)?;
                    let cursor = next.map(|key| open.keep(key));
                    Ok((Ok(KeyResponse { keys, cursor }),))
                })
            },
        )
    }
}

fn atomics<G: Guest>(linker: &mut LinkerInstance<'_, G>, is_second: bool) -> wasmtime::Result<()> {
    if !is_second {
        return linker.func_wrap_async(
            "increment",
            |mut store: Store<'_, G>,
             (bucket, key, delta): (Resource<OpenBucket>, Key, u64)|
             -> Async<'_, Fallible<u64>> {
                Box::new(async move {
                    let bucket = enter(&mut store, &bucket, key.copied())?;
                    let key = good!(within(key));
                    let sum = bucket.increment(key, delta.into(), 0..=u64::MAX.into()).await;
                    outcome(sum.and_then(|sum| u64::try_from(sum).map_err(|_| StoreError::OutOfRange)))
                })
            },
        );
    }
    linker.func_wrap_async(
        "increment",
        |mut store: Store<'_, G>,
         (bucket, key, delta): (Resource<OpenBucket>, Key, i64)|
         -> Async<'_, Fallible<i64>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.copied())?;
                let key = good!(within(key));
                let sum = bucket.increment(key, delta.into(), i64::MIN.into()..=i64::MAX.into()).await;
                outcome(sum.and_then(|sum| i64::try_from(sum).map_err(|_| StoreError::OutOfRange)))
            })
        },
    )?;
    linker.resource("cas", ResourceType::host::<OpenCas>(), |mut store, rep| {
        store.data_mut().sandbox_mut().table.delete(Resource::<OpenCas>::new_own(rep))?;
        Ok(())
    })?;
    linker.func_wrap_async(
        "[static]cas.new",
        |mut store: Store<'_, G>,
         (bucket, key): (Resource<OpenBucket>, Key)|
         -> Async<'_, Fallible<Resource<OpenCas>>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.copied())?;
                let key = good!(within(key));
                let cas = OpenCas { bucket, key, seen: None };
                Ok((begin(&mut store, cas).await,))
            })
        },
    )?;
    linker.func_wrap_async(
        "[method]cas.current",
        |mut store: Store<'_, G>, (cas,): (Resource<OpenCas>,)| -> Async<'_, Fallible<Option<Bytes>>> {
            Box::new(async move {
                let OpenCas { bucket, key, .. } = seen(&mut store, &cas)?;
                let value = bucket.get(key, allowed(&store)).await;
                if let Ok(value) = &value {
                    meter::charge_more(&mut store, value.as_ref().map_or(0, Bytes::len))?;
                    store.data_mut().sandbox_mut().table.get_mut(&cas)?.seen = hash(value.as_deref());
                }
                outcome(value)
            })
        },
    )?;
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

fn batch<G: Guest>(linker: &mut LinkerInstance<'_, G>) -> wasmtime::Result<()> {
    linker.func_wrap_async(
        "get-many",
        |mut store: Store<'_, G>,
         (bucket, keys): (Resource<OpenBucket>, Handed<Vec<Key>>)|
         -> Async<'_, Fallible<Vec<Pair>>> {
            Box::new(async move {
                let (bucket, keys) = good!(enter_keys(&mut store, &bucket, keys)?);
                let values = bucket.get_many(keys.clone(), allowed(&store)).await;
                let values = values.map(|values| {
                    let pairs = keys.into_iter().zip(values);
                    pairs.map(|(key, value)| value.map(|value| (key, value))).collect::<Vec<_>>()
                });
                let bytes = values.iter().flatten().flatten().map(|(_, value)| value.len()).sum();
                meter::charge_more(&mut store, bytes)?;
                outcome(values)
            })
        },
    )?;
    linker.func_wrap_async(
        "set-many",
        |mut store: Store<'_, G>,
         (bucket, pairs): (Resource<OpenBucket>, Handed<Vec<(Key, Value)>>)|
         -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let Ok(pairs) = pairs.whole() else { return refused(&mut store) };
                let bytes = pairs.iter().map(|(key, value)| key.copied() + length(value)).sum();
                let bucket = enter_many(&mut store, &bucket, pairs.len(), bytes)?;
                let pairs = pairs.into_iter();
                let changes = pairs.map(|(key, value)| Ok((within(key)?, Some(copied(&store, &value)?))));
                let changes: Vec<_> = good!(changes.collect::<Fallible<_>>());
                outcome(bucket.change(changes).await.map(drop))
            })
        },
    )?;
    linker.func_wrap_async(
        "delete-many",
        |mut store: Store<'_, G>,
         (bucket, keys): (Resource<OpenBucket>, Handed<Vec<Key>>)|
         -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let (bucket, keys) = good!(enter_keys(&mut store, &bucket, keys)?);
                let changes = keys.into_iter().map(|key| (key, None)).collect();
                outcome(bucket.change(changes).await.map(drop))
            })
        },
    )
}

fn open<G: Guest>(store: &mut Store<'_, G>, name: &str) -> Fallible<Resource<OpenBucket>> {
    let sandbox = store.data_mut().sandbox_mut();
    let access = sandbox.stores.as_ref().ok_or(Error::AccessDenied)?;
    let bucket = access.stores.bucket(&access.owner, &access.grants, name)?;
    let opened = sandbox.table.push(OpenBucket::new(bucket));
    opened.map_err(|_| Error::Other("too many handles are open: drop some".to_owned()))
}

/// Charges for a call with so many bytes, and finds the store.
fn enter<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    bytes: usize,
) -> wasmtime::Result<Bucket> {
    meter::charge(store, bytes)?;
    Ok(store.data_mut().sandbox_mut().table.get(bucket)?.bucket.clone())
}

/// Charges for a call with so many keys, each of which is as much work as a call, and finds the store.
fn enter_many<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    keys: usize,
    bytes: usize,
) -> wasmtime::Result<Bucket> {
    meter::charge_each(store, keys)?;
    meter::charge_more(store, bytes)?;
    Ok(store.data_mut().sandbox_mut().table.get(bucket)?.bucket.clone())
}

/// Charges for a call with a list of keys, and finds the store.
fn enter_keys<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    keys: Handed<Vec<Key>>,
) -> wasmtime::Result<Fallible<(Bucket, Vec<String>)>> {
    let Ok(keys) = keys.whole() else { return refused(store).map(|(error,)| error) };
    let bucket = enter_many(store, bucket, keys.len(), keys.iter().map(Key::copied).sum())?;
    let keys: Fallible<Vec<_>> = keys.into_iter().map(within).collect();
    Ok(keys.map(|keys| (bucket, keys)))
}

/// Charges for a call with more keys and values than it may carry.
fn refused<G: Guest, T>(store: &mut Store<'_, G>) -> wasmtime::Result<(Fallible<T>,)> {
    meter::charge(store, 0)?;
    let allowed = allowed(store);
    Ok((Err(Error::Other(format!("the keys and values of one call have more than {allowed} bytes"))),))
}

type ListedPage = Fallible<(Vec<String>, Option<String>)>;

async fn list<G: Guest>(
    store: &mut Store<'_, G>,
    bucket: &Resource<OpenBucket>,
    after: Option<String>,
) -> wasmtime::Result<ListedPage> {
    let bucket = enter(store, bucket, after.as_ref().map_or(0, String::len))?;
    let page = bucket.list(String::new(), after, MAX_PAGE).await;
    let page = match page {
        Ok(page) => page,
        Err(error) => return Ok(Err(error.into())),
    };
    meter::charge_texts(store, page.keys.iter())?;
    Ok(Ok((page.keys, page.next)))
}

fn seen<G: Guest>(store: &mut Store<'_, G>, cas: &Resource<OpenCas>) -> wasmtime::Result<OpenCas> {
    meter::charge(store, 0)?;
    Ok(store.data_mut().sandbox_mut().table.get(cas)?.clone())
}

/// A handle that has seen the value of now.
async fn begin<G: Guest>(store: &mut Store<'_, G>, mut cas: OpenCas) -> Result<Resource<OpenCas>, Error> {
    // Hashed by the store, on the pool: a value may have many MiB.
    cas.seen = cas.bucket.hash(cas.key.clone()).await?;
    push(store, cas)
}

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

fn push<G: Guest>(store: &mut Store<'_, G>, cas: OpenCas) -> Result<Resource<OpenCas>, Error> {
    let opened = store.data_mut().sandbox_mut().table.push(cas);
    opened.map_err(|_| Error::Other("too many handles are open: drop some".to_owned()))
}

/// A value, copied in one piece: wasmtime would not, for a `Vec` or `Bytes`. One that is too large is not copied.
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

/// Bytes of a value that will be copied.
fn length(value: &Value) -> usize {
    match value {
        Handed::Whole(value) => value.len(),
        Handed::TooLarge(_) => 0,
    }
}

fn within(key: Key) -> Fallible<String> {
    key.0.map_err(|bytes| StoreError::Key(size(bytes)).into())
}

/// Bytes of one answer.
fn allowed<G: Guest>(store: &Store<'_, G>) -> u64 {
    store.data().sandbox().stores.as_ref().map_or(0, |access| access.transfer)
}

fn outcome<T>(outcome: Result<T, StoreError>) -> wasmtime::Result<(Fallible<T>,)> {
    Ok((outcome.map_err(Error::from),))
}
