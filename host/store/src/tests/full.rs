//! A full disk is an error of the call, and loses nothing.

use super::*;

/// Fills a disk until it is full; returns the keys that were answered.
async fn fill(disk: &Disk, store: &Arc<Store>, value: usize) -> Vec<String> {
    store.open().await.unwrap();
    disk.set_room(disk.len() + (1 << 20));
    let (mine, mut there) = (bucket(store, "a"), Vec::new());
    for number in 0..20_000 {
        let key = format!("{number:05}");
        match set(&mine, &key, vec![7; value]).await {
            Ok(_) => there.push(key),
            Err(StoreError::Io(error)) => {
                assert!(error.contains("no storage space"), "{error}");
                return there;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it was never full");
}

async fn all_there(store: &Arc<Store>, there: &[String], value: usize) {
    let mine = bucket(store, "a");
    assert_eq!(keys(&mine).await, there);
    for key in there {
        assert_eq!(get(&mine, key).await.unwrap().len(), value);
    }
    let usage = store.usage().await.unwrap();
    assert_eq!(usage.keys, there.len() as u64);
}

/// While what was answered is not in the file, nothing else is; once there is room, all of it is.
async fn survives(config: StoreConfig) {
    let disk = Disk::new();
    let store = on_disk(&disk, config.clone());
    let mut there = fill(&disk, &store, 9000).await;
    if config.durable_within.is_none() {
        all_there(&store, &there, 9000).await;
    }
    let mine = bucket(&store, "a");
    // Even deleting takes pages, until the one before it is on disk.
    for key in there.clone().into_iter().take(10) {
        match mine.change(vec![(key.clone(), None)]).await {
            Ok(1) => there.retain(|there| *there != key),
            Err(StoreError::Io(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    if config.durable_within.is_none() {
        all_there(&store, &there, 9000).await;
    }
    disk.set_room(usize::MAX);
    for number in 0..300 {
        let key = format!("a{number:03}");
        set(&mine, &key, vec![7; 9000]).await.unwrap();
        there.push(key);
    }
    all_there(&store, &there, 9000).await;
    store.close().await;
    drop((store, mine));
    all_there(&on_disk(&disk, config), &there, 9000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_an_error_and_loses_nothing() {
    survives(roomy()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_nothing_that_was_answered_and_not_on_disk() {
    survives(StoreConfig { durable_within: Some(Duration::from_secs(3600)), ..roomy() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_write_that_finds_no_room_does_not_fail_those_beside_it() {
    let disk = Disk::new();
    let store = on_disk(&disk, StoreConfig { value_size: 64 << 20, ..roomy() });
    set(&bucket(&store, "a"), "k", "1").await.unwrap();
    disk.set_room(disk.len() + (1 << 20));
    let (mine, other) = (bucket(&store, "a"), bucket(&store, "b"));
    let small = (0..50).map(|number| {
        let other = other.clone();
        tokio::spawn(async move { set(&other, &format!("{number}"), "1").await })
    });
    let small: Vec<_> = small.collect();
    let large = set(&mine, "large", vec![1; 4 << 20]).await;
    assert!(matches!(large, Err(StoreError::Io(_))), "{large:?}");
    for answer in small {
        assert_eq!(answer.await.unwrap(), Ok(0));
    }
    assert_eq!(keys(&other).await.len(), 50);
    assert_eq!(keys(&mine).await, ["k"]);
}
