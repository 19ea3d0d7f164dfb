//! Stores on files, and on a disk that loses power, runs full or is damaged.

mod bounds;
mod crash;
mod damage;
mod disk;
mod failing;
mod full;
mod model;
mod own;
mod shared;
mod size;

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use tokio::runtime::Handle;

use crate::{
    Bucket, Changed, ENTRY_BYTES, OpenError, Page, Store, StoreConfig, StoreError,
    file::{Opened, open_backend},
    tests::disk::Disk,
};

const PATIENCE: Duration = Duration::from_secs(120);

/// Room for everything.
fn roomy() -> StoreConfig {
    StoreConfig { bytes: 1 << 30, keys: 1_000_000, ..StoreConfig::default() }
}

fn quiet() -> crate::OnChange {
    Arc::new(|_| {})
}

fn in_dir(dir: &Path, config: StoreConfig) -> Arc<Store> {
    Store::new("s".parse().unwrap(), dir.join("s.redb"), config, Handle::current(), quiet())
}

fn on_disk(disk: &Disk, config: StoreConfig) -> Arc<Store> {
    Store::on_disk(disk.clone(), config, quiet())
}

impl Store {
    fn on_disk(disk: Disk, config: StoreConfig, on_change: crate::OnChange) -> Arc<Self> {
        let open = Box::new(move |cache: u64, bound: &Arc<crate::bound::Bound>| {
            let (database, repaired) = open_backend("disk".as_ref(), cache, bound, disk.opened(), None)?;
            Ok((database, if repaired { Opened::Repaired } else { Opened::Whole }))
        });
        Self::with("s".parse().unwrap(), "disk".into(), config, Handle::current(), on_change, open)
    }
}

fn bucket(store: &Arc<Store>, owner: &str) -> Bucket {
    Bucket::new(store.clone(), owner.into(), true)
}

async fn set(bucket: &Bucket, key: &str, value: impl Into<Bytes>) -> Result<usize, StoreError> {
    bucket.change(vec![(key.to_owned(), Some(value.into()))]).await
}

async fn get(bucket: &Bucket, key: &str) -> Option<Bytes> {
    bucket.get(key.to_owned(), u64::MAX).await.unwrap()
}

async fn keys(bucket: &Bucket) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let Page { keys: page, next } = bucket.list(String::new(), after, usize::MAX).await.unwrap();
        keys.extend(page);
        match next {
            Some(next) => after = Some(next),
            None => return keys,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_set_is_there_after_a_restart_and_what_was_deleted_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = in_dir(dir.path(), roomy());
    let mine = bucket(&store, "a");
    assert_eq!(set(&mine, "k", "1").await, Ok(0));
    assert_eq!(set(&mine, "k", "2").await, Ok(1));
    assert_eq!(set(&mine, "gone", vec![0, 255]).await, Ok(0));
    assert_eq!(get(&mine, "gone").await.unwrap(), vec![0, 255]);
    assert_eq!(mine.change(vec![("gone".into(), None), ("never".into(), None)]).await, Ok(1));
    let before = store.usage().await.unwrap();
    assert_eq!((before.keys, before.bytes), (1, 3 + ENTRY_BYTES));
    store.close().await;
    assert_eq!(set(&mine, "k", "3").await, Err(StoreError::Closed));

    let store = in_dir(dir.path(), roomy());
    assert_eq!(get(&bucket(&store, "a"), "k").await.unwrap(), "2");
    assert_eq!(keys(&bucket(&store, "a")).await, ["k"]);
    assert_eq!(keys(&bucket(&store, "b")).await, Vec::<String>::new());
    let after = store.usage().await.unwrap();
    assert_eq!((after.keys, after.bytes), (1, 3 + ENTRY_BYTES));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_use_or_of_another_kind_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let first = in_dir(dir.path(), roomy());
    first.open().await.unwrap();
    let second = in_dir(dir.path(), roomy());
    assert_eq!(second.open().await, Err(OpenError::InUse { path: path.clone() }));
    let error = set(&bucket(&second, "a"), "k", "v").await.unwrap_err();
    assert!(error.to_string().contains("in use by another process"), "{error}");
    first.close().await;
    // The next use tries again.
    set(&bucket(&second, "a"), "k", "v").await.unwrap();
    second.close().await;

    for (content, expected) in [
        (b"this is not a store".repeat(1000), "damaged"),
        (std::fs::read(&path).unwrap()[..100].to_vec(), "damaged"),
        (Vec::new(), "is damaged (it has no bytes)"),
    ] {
        std::fs::write(&path, &content).unwrap();
        let error = in_dir(dir.path(), roomy()).open().await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    std::fs::remove_file(&path).unwrap();
    let other = redb::Database::create(&path).unwrap();
    let transaction = other.begin_write().unwrap();
    transaction.open_table(redb::TableDefinition::<u8, u8>::new("theirs")).unwrap();
    transaction.commit().unwrap();
    drop(other);
    let error = in_dir(dir.path(), roomy()).open().await.unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");

    std::fs::remove_file(&path).unwrap();
    let newer = redb::Database::create(&path).unwrap();
    let transaction = newer.begin_write().unwrap();
    transaction.open_table(crate::file::META).unwrap().insert("version", (3, 0)).unwrap();
    transaction.commit().unwrap();
    drop(newer);
    let error = in_dir(dir.path(), roomy()).open().await.unwrap_err();
    assert_eq!(error, OpenError::Version { path: path.clone(), found: "version 3".into() });
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let error = in_dir(dir.path(), roomy()).open().await.unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_not_closed_is_said_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/s.redb");
    let open = || crate::file::open(&path, 1 << 20, &Arc::default());
    let how = || open().map(|(database, how)| (how, crate::file::end(&database)));
    assert_eq!(how().unwrap().0, Opened::New);
    assert_eq!(how().unwrap().0, Opened::Whole);
    drop(open().unwrap());
    assert_eq!(how().unwrap().0, Opened::Repaired);
    assert_eq!(how().unwrap().0, Opened::Whole);
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1);
    let modes = [path.parent().unwrap(), &path].map(|path| path.metadata().unwrap().permissions().mode());
    assert_eq!(modes.map(|mode| mode & 0o777), [0o700, 0o600]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_told_in_order_once_they_are_visible_and_only_if_asked_for() {
    let heard = Arc::<Mutex<Vec<Changed>>>::default();
    let on_change: crate::OnChange = {
        let heard = heard.clone();
        Arc::new(move |changed| heard.lock().unwrap().push(changed))
    };
    let store = Store::on_disk(Disk::new(), roomy(), on_change);
    let mine = bucket(&store, "a");
    set(&mine, "silent", "1").await.unwrap();
    store.configure(StoreConfig { events: true, ..roomy() });
    set(&mine, "k", "1").await.unwrap();
    mine.change(vec![("k".into(), None)]).await.unwrap();
    assert_eq!(mine.swap("k".into(), Some("1".into()), None).await, Ok(Err(None)));
    let heard: Vec<_> =
        heard.lock().unwrap().iter().map(|it| (it.key.clone(), it.exists, it.owner.clone())).collect();
    assert_eq!(heard, [("k".into(), true, "a".into()), ("k".into(), false, "a".into())]);
}

#[tokio::test(start_paused = true)]
async fn with_durable_within_a_write_is_on_disk_in_time_and_nothing_ticks_while_nothing_is_written() {
    let disk = Disk::new();
    let within = Duration::from_secs(1);
    let store = on_disk(&disk, StoreConfig { durable_within: Some(within), ..roomy() });
    store.open().await.unwrap();
    let mine = bucket(&store, "a");
    for round in 0..3 {
        let before = disk.syncs();
        for number in 0..10 {
            set(&mine, &format!("{number}"), format!("{round}")).await.unwrap();
        }
        assert_eq!(disk.syncs(), before);
        tokio::time::sleep(within * 2).await;
        store.flush().await.unwrap();
        let after = disk.syncs();
        assert!(after > before);
        // A flush with nothing to write writes nothing.
        store.flush().await.unwrap();
        tokio::time::sleep(within * 100).await;
        assert_eq!(disk.syncs(), after);
    }
    // More than may be lost is written at once.
    let before = disk.syncs();
    set(&mine, "large", vec![1; (1 << 20) - 10]).await.unwrap();
    set(&mine, "other", vec![1; 100]).await.unwrap();
    assert!(disk.syncs() > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_not_followed_and_another_file_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let theirs = dir.path().join("theirs");
    std::fs::write(&theirs, "content").unwrap();
    let path = dir.path().join("s.redb");
    let new = dir.path().join(format!("s.redb.new-{}", std::process::id()));
    std::os::unix::fs::symlink(&theirs, &new).unwrap();
    let store = in_dir(dir.path(), roomy());
    set(&bucket(&store, "a"), "k", "1").await.unwrap();
    store.close().await;
    assert_eq!(std::fs::read(&theirs).unwrap(), b"content");
    assert!(!new.exists());
    let moved = dir.path().join("moved.redb");
    std::fs::rename(&path, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &path).unwrap();
    let error = in_dir(dir.path(), roomy()).open().await.unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_version_before_is_counted_anew_and_only_less_fits_if_it_has_more_than_it_may() {
    let disk = Disk::new();
    let store = on_disk(&disk, roomy());
    let mine = bucket(&store, "a");
    for number in 0..1000 {
        set(&mine, &format!("{number:03}"), "").await.unwrap();
    }
    store.close().await;
    drop((store, mine));
    // As that version had left it: with 3 bytes of each entry.
    let (database, _) = open_backend("disk".as_ref(), 1 << 20, &Arc::default(), disk.opened(), None).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut meta = transaction.open_table(crate::file::META).unwrap();
    meta.insert("version", (1, 0)).unwrap();
    meta.insert(crate::file::USAGE, (1000, 3000)).unwrap();
    drop(meta);
    transaction.commit().unwrap();
    drop(database);

    let store = on_disk(&disk, StoreConfig { bytes: 64 << 10, ..roomy() });
    let mine = bucket(&store, "a");
    let usage = store.usage().await.unwrap();
    assert_eq!((usage.keys, usage.bytes), (1000, 1000 * (4 + ENTRY_BYTES)));
    assert_eq!(get(&mine, "999").await.unwrap(), "");
    assert!(matches!(set(&mine, "more", "").await, Err(StoreError::Bytes { .. })));
    assert_eq!(mine.change(vec![("999".into(), None)]).await, Ok(1));
    assert_eq!(keys(&mine).await.len(), 999);
}
