//! All that one owner has, copied and put back.

use std::{collections::BTreeSet, io::Read as _};

use weir_config::StoreGrant;
use weir_names::StoreName;

use super::*;
use crate::{OwnDataError, Stores, StoresConfig};

fn stores(dir: &Path, configs: [(&str, StoreConfig); 3]) -> Stores {
    let stores = Stores::new(Handle::current(), quiet());
    let named = configs.into_iter().map(|(name, config)| (name.parse().unwrap(), config)).collect();
    stores.configure(Some(&dir.to_owned()), &StoresConfig(named));
    stores
}

fn three(dir: &Path) -> Stores {
    let shared = StoreConfig { shared: true, ..roomy() };
    stores(dir, [("first", roomy()), ("second", roomy()), ("common", shared)])
}

fn of(stores: &Stores, owner: &str, store: &str) -> Bucket {
    let grants = [StoreGrant::from(store.parse::<weir_names::StoreName>().unwrap())];
    stores.bucket(owner, &grants, store).unwrap()
}

fn granted() -> BTreeSet<StoreName> {
    ["first", "second", "common"].map(|name| name.parse().unwrap()).into()
}

async fn blocking<T: Send + 'static>(
    stores: &Arc<Stores>,
    act: impl FnOnce(&Stores) -> T + Send + 'static,
) -> T {
    let stores = stores.clone();
    tokio::task::spawn_blocking(move || act(&stores)).await.unwrap()
}

async fn copied(stores: &Arc<Stores>) -> Vec<u8> {
    let copy = |stores: &Stores| {
        let mut copy = Vec::new();
        stores.copy_own("a", &granted(), &mut copy).map(|()| copy)
    };
    blocking(stores, copy).await.unwrap()
}

#[tokio::test]
async fn what_one_owner_has_is_put_back_as_it_was_and_nothing_else_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Arc::new(three(dir.path()));
    let (first, second) = (of(&stores, "a", "first"), of(&stores, "a", "second"));
    let (other, common) = (of(&stores, "b", "first"), of(&stores, "a", "common"));
    // More than a page has, in number and in bytes.
    for key in 0..2500 {
        set(&first, &format!("{key:05}"), key.to_string()).await.unwrap();
    }
    for key in ["x", "y", "z"] {
        set(&first, key, vec![7; 700_000]).await.unwrap();
    }
    set(&first, "empty", "").await.unwrap();
    set(&other, "k", "of another").await.unwrap();
    set(&common, "k", "of all").await.unwrap();
    let copy = copied(&stores).await;
    assert_eq!(copied(&stores).await, copy, "it is always the same");

    first.change((0..2000).map(|key| (format!("{key:05}"), None)).collect()).await.unwrap();
    set(&first, "x", "changed").await.unwrap();
    set(&second, "new", "it was not there").await.unwrap();
    set(&other, "k", "later").await.unwrap();
    set(&common, "k", "later").await.unwrap();
    let from = copy.clone();
    blocking(&stores, move |stores| stores.put_back_own("a", &mut &*from)).await.unwrap();
    assert_eq!(copied(&stores).await, copy);
    assert_eq!((keys(&first).await.len(), keys(&second).await.len()), (2504, 0));
    assert_eq!(
        (get(&other, "k").await, get(&common, "k").await),
        (Some("later".into()), Some("later".into()))
    );
    stores.close().await;
}

#[tokio::test]
async fn a_copy_that_ends_early_is_no_copy_and_can_be_put_back_again() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Arc::new(three(dir.path()));
    let first = of(&stores, "a", "first");
    set(&first, "k", "v").await.unwrap();
    let copy = copied(&stores).await;
    for end in 0..copy.len() {
        let part = copy[..end].to_owned();
        let put_back = move |stores: &Stores| stores.put_back_own("a", &mut part.as_slice().take(u64::MAX));
        let error = blocking(&stores, put_back).await.unwrap_err();
        assert!(matches!(error, OwnDataError::Io(_)), "{end}: {error}");
    }
    let whole = copy.clone();
    blocking(&stores, move |stores| stores.put_back_own("a", &mut &*whole)).await.unwrap();
    assert_eq!(copied(&stores).await, copy);
    stores.close().await;
}

#[tokio::test]
async fn a_store_that_is_gone_or_too_small_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Arc::new(three(dir.path()));
    set(&of(&stores, "a", "second"), "k", vec![1; 100_000]).await.unwrap();
    let copy = copied(&stores).await;
    let tiny = StoreConfig { bytes: 65_536, ..StoreConfig::default() };
    for (second, why) in [("third", "`second` is no longer configured"), ("second", "store `second`: ")] {
        let named = [("first", roomy()), (second, tiny.clone())];
        let named = named.into_iter().map(|(name, config)| (name.parse().unwrap(), config)).collect();
        stores.configure(Some(&dir.path().to_owned()), &StoresConfig(named));
        let from = copy.clone();
        let put_back = move |stores: &Stores| stores.put_back_own("a", &mut &*from);
        let error = blocking(&stores, put_back).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    stores.close().await;
}

#[tokio::test]
async fn what_a_copy_has_not_seen_stays_and_what_was_empty_is_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Arc::new(three(dir.path()));
    let (first, second) = (of(&stores, "a", "first"), of(&stores, "a", "second"));
    set(&first, "k", "v").await.unwrap();
    let only_first = BTreeSet::from(["first".parse::<StoreName>().unwrap()]);
    let whole = copied(&stores).await;
    let copy = move |stores: &Stores| {
        let mut copy = Vec::new();
        stores.copy_own("a", &only_first, &mut copy).map(|()| copy)
    };
    let part = blocking(&stores, copy).await.unwrap();
    set(&second, "k", "later").await.unwrap();
    blocking(&stores, move |stores| stores.put_back_own("a", &mut &*part)).await.unwrap();
    assert_eq!(keys(&second).await.len(), 1);
    let from = whole.clone();
    blocking(&stores, move |stores| stores.put_back_own("a", &mut &*from)).await.unwrap();
    assert_eq!((keys(&first).await.len(), keys(&second).await.len()), (1, 0));
    // A store that is gone by now, and was empty, is none that lacks.
    let first_only = StoresConfig([("first".parse().unwrap(), roomy())].into_iter().collect());
    stores.configure(Some(&dir.path().to_owned()), &first_only);
    blocking(&stores, move |stores| stores.put_back_own("a", &mut &*whole)).await.unwrap();
    assert_eq!(keys(&first).await.len(), 1);
    stores.close().await;
}

#[tokio::test]
async fn a_value_that_is_too_large_by_now_is_an_error_that_names_its_store() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Arc::new(three(dir.path()));
    set(&of(&stores, "a", "first"), "k", vec![1; 100_000]).await.unwrap();
    let copy = copied(&stores).await;
    for (value_size, can) in [(1 << 10, false), (1 << 20, true)] {
        let named = [("first", StoreConfig { value_size, ..roomy() }), ("second", roomy())];
        let named = named.into_iter().map(|(name, config)| (name.parse().unwrap(), config)).collect();
        stores.configure(Some(&dir.path().to_owned()), &StoresConfig(named));
        let from = copy.clone();
        let put_back = move |stores: &Stores| stores.put_back_own("a", &mut &*from);
        match blocking(&stores, put_back).await {
            Ok(()) => assert!(can),
            Err(error) => assert!(!can && error.to_string().contains("store `first`: "), "{error}"),
        }
    }
    assert_eq!(copied(&stores).await, copy);
    stores.close().await;
}
