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
use crate::{imports::Async, meter, sandbox::Guest};

type Store<'a, G> = StoreContextMut<'a, G>;
type Fallible<T> = Result<T, Error>;
type Value = WasmList<u8>;
type Pair = Option<(String, Bytes)>;

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
    linker.func_wrap("open", |mut store: Store<'_, G>, (name,): (String,)| {
        meter::charge(&mut store, name.len())?;
        Ok((open(&mut store, &name),))
    })?;
    linker.func_wrap_async(
        "[method]bucket.get",
        |mut store: Store<'_, G>, (bucket, key): (Resource<OpenBucket>, String)| -> Async<'_, Fallible<_>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.len())?;
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
         (bucket, key, value): (Resource<OpenBucket>, String, Value)|
         -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.len() + value.len())?;
                let value = copied(&store, &value);
                outcome(bucket.change(vec![(key, Some(value))]).await.map(drop))
            })
        },
    )?;
    linker.func_wrap_async(
        "[method]bucket.delete",
        |mut store: Store<'_, G>, (bucket, key): (Resource<OpenBucket>, String)| -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.len())?;
                outcome(bucket.change(vec![(key, None)]).await.map(drop))
            })
        },
    )?;
    linker.func_wrap_async(
        "[method]bucket.exists",
        |mut store: Store<'_, G>,
         (bucket, key): (Resource<OpenBucket>, String)|
         -> Async<'_, Fallible<bool>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.len())?;
                outcome(bucket.exists(key).await)
            })
        },
    )?;
    if is_second {
        linker.func_wrap_async(
            "[method]bucket.list-keys",
            |mut store: Store<'_, G>,
             (bucket, cursor): (Resource<OpenBucket>, Option<String>)|
             -> Async<'_, Fallible<KeyResponse2>> {
                Box::new(async move {
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
                                return Ok(
                                    (Err(Error::Other(format!("no cursor {cursor} of this bucket"))),),
                                );
                            }
                        },
                    };
                    let page = list(&mut store, &bucket, after).await?;
                    let (keys, next) = match page {
                        Ok(page) => page,
                        Err(error) => return Ok((Err(error),)),
                    };
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
             (bucket, key, delta): (Resource<OpenBucket>, String, u64)|
             -> Async<'_, Fallible<u64>> {
                Box::new(async move {
                    let bucket = enter(&mut store, &bucket, key.len())?;
                    let sum = bucket.increment(key, delta.into(), 0..=u64::MAX.into()).await;
                    outcome(sum.and_then(|sum| u64::try_from(sum).map_err(|_| StoreError::OutOfRange)))
                })
            },
        );
    }
    linker.func_wrap_async(
        "increment",
        |mut store: Store<'_, G>,
         (bucket, key, delta): (Resource<OpenBucket>, String, i64)|
         -> Async<'_, Fallible<i64>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.len())?;
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
         (bucket, key): (Resource<OpenBucket>, String)|
         -> Async<'_, Fallible<Resource<OpenCas>>> {
            Box::new(async move {
                let bucket = enter(&mut store, &bucket, key.len())?;
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
                meter::charge(&mut store, value.len())?;
                let value = copied(&store, &value);
                let cas = store.data_mut().sandbox_mut().table.delete(cas)?;
                Ok((swap(&mut store, cas, value).await,))
            })
        },
    )
}

fn batch<G: Guest>(linker: &mut LinkerInstance<'_, G>) -> wasmtime::Result<()> {
    linker.func_wrap_async(
        "get-many",
        |mut store: Store<'_, G>,
         (bucket, keys): (Resource<OpenBucket>, Vec<String>)|
         -> Async<'_, Fallible<Vec<Pair>>> {
            Box::new(async move {
                let bucket = enter_many(&mut store, &bucket, keys.len(), keys.iter().map(String::len).sum())?;
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
         (bucket, pairs): (Resource<OpenBucket>, Vec<(String, Value)>)|
         -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let bytes = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
                let bucket = enter_many(&mut store, &bucket, pairs.len(), bytes)?;
                let changes: Vec<_> =
                    pairs.into_iter().map(|(key, value)| (key, Some(copied(&store, &value)))).collect();
                outcome(bucket.change(changes).await.map(drop))
            })
        },
    )?;
    linker.func_wrap_async(
        "delete-many",
        |mut store: Store<'_, G>,
         (bucket, keys): (Resource<OpenBucket>, Vec<String>)|
         -> Async<'_, Fallible<()>> {
            Box::new(async move {
                let bucket = enter_many(&mut store, &bucket, keys.len(), keys.iter().map(String::len).sum())?;
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

/// The same for a call with so many keys: each is as much work as a call.
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

/// A value, copied in one piece: wasmtime would not, for a `Vec` or `Bytes`.
fn copied<G: Guest>(store: &Store<'_, G>, value: &Value) -> Bytes {
    Bytes::copy_from_slice(value.as_le_slice(store))
}

/// Bytes of one answer.
fn allowed<G: Guest>(store: &Store<'_, G>) -> u64 {
    store.data().sandbox().stores.as_ref().map_or(0, |access| access.transfer)
}

fn outcome<T>(outcome: Result<T, StoreError>) -> wasmtime::Result<(Fallible<T>,)> {
    Ok((outcome.map_err(Error::from),))
}
