//! Disks that fail, and go on.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_failed_and_is_in_the_file_is_not_done_twice() {
    let disk = Disk::new();
    let store = on_disk(&disk, roomy());
    let mine = bucket(&store, "a");
    set(&mine, "n", "0").await.unwrap();
    for round in 1..=20 {
        disk.fail_late(0);
        let add = || {
            let mine = mine.clone();
            tokio::spawn(async move { mine.increment("n".into(), 1, 0..=9999).await })
        };
        let both = [add(), add(), add(), add()];
        let mut sums = Vec::new();
        for one in both {
            sums.push(one.await.unwrap().unwrap());
        }
        sums.sort_unstable();
        assert_eq!(sums, (round * 4 - 3..=round * 4).collect::<Vec<_>>());
    }
    assert_eq!(get(&mine, "n").await.unwrap(), "80");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_failure_puts_nothing_older_over_what_is_in_the_file() {
    let mut made_after_all = 0;
    for whole_before in 0..6 {
        let disk = Disk::new();
        let config = StoreConfig { durable_within: Some(Duration::from_secs(3600)), ..roomy() };
        let store = on_disk(&disk, config);
        let mine = bucket(&store, "a");
        for key in ["k", "m"] {
            set(&mine, key, "1").await.unwrap();
        }
        disk.fail_late(whole_before);
        // So large that it is written at once, with what is pending.
        let both = vec![("k".into(), Some("2".into())), ("m".into(), Some(vec![5; 1 << 20].into()))];
        let made = mine.change(both).await;
        let (k, m) = if made.is_ok() { ("2", 1 << 20) } else { ("1", 1) };
        made_after_all += usize::from(disk.has_failed_late() && made.is_ok());
        assert_eq!(get(&mine, "k").await.unwrap(), k, "{whole_before}");
        assert_eq!(get(&mine, "m").await.unwrap().len(), m, "{whole_before}");
        store.close().await;
        assert_eq!(get(&bucket(&on_disk(&disk, roomy()), "a"), "k").await.unwrap(), k, "{whole_before}");
    }
    assert!(made_after_all > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn small_changes_that_are_pending_are_bounded_by_what_they_take_and_deletes_of_nothing_are_none() {
    let disk = Disk::new();
    let config = StoreConfig { durable_within: Some(Duration::from_secs(3600)), ..roomy() };
    let store = on_disk(&disk, config);
    store.open().await.unwrap();
    let mine = bucket(&store, "a");
    let before = disk.syncs();
    for round in 0..10 {
        let nothing = (0..4096).map(|number| (format!("{round}-{number}"), None)).collect();
        assert_eq!(mine.change(nothing).await, Ok(0));
    }
    store.flush().await.unwrap();
    assert_eq!(disk.syncs(), before);
    // 12,288 changes of 8 bytes and 128 more each are more than 1 MiB.
    for round in 0..3 {
        let some = (0..4096).map(|number| (format!("{round}-{number:05}"), Some("1".into()))).collect();
        assert_eq!(mine.change(some).await, Ok(0));
    }
    assert!(disk.syncs() > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_lacked_room_recovers_by_itself_when_there_is_room() {
    let disk = Disk::new();
    let config = StoreConfig { durable_within: Some(Duration::from_secs(3600)), ..roomy() };
    let store = on_disk(&disk, config);
    let mine = bucket(&store, "a");
    set(&mine, "k", "answered").await.unwrap();
    disk.cut_at(disk.steps());
    assert!(set(&mine, "large", vec![1; 1 << 20]).await.is_err());
    assert!(mine.get("k".into(), 99).await.is_err());
    disk.cut_at(usize::MAX);
    let reads = async {
        loop {
            match mine.get("k".into(), 99).await {
                Ok(value) => return value,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let value = tokio::time::timeout(PATIENCE, reads).await.unwrap();
    assert_eq!(value.unwrap(), "answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_fails_is_not_opened_for_each_call() {
    let openings = Arc::new(Mutex::new(0));
    let counted = openings.clone();
    let open = Box::new(move |_: u64, _: &Arc<crate::bound::Bound>| {
        *counted.lock().unwrap() += 1;
        Err(OpenError::InUse { path: "disk".into() })
    });
    let store = Store::with("s".parse().unwrap(), "disk".into(), roomy(), Handle::current(), quiet(), open);
    let mine = bucket(&store, "a");
    let began = std::time::Instant::now();
    for _ in 0..500 {
        let error = set(&mine, "k", "1").await.unwrap_err();
        assert!(error.to_string().contains("in use"), "{error}");
    }
    let openings = *openings.lock().unwrap();
    assert!(openings <= 33 + began.elapsed().as_secs(), "{openings}");
}

#[test]
fn a_file_that_hangs_takes_one_thread_however_often_it_is_opened() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().max_blocking_threads(2).build().unwrap();
    runtime.block_on(async {
        let (begin, mut begun) = tokio::sync::mpsc::channel(8);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Mutex::new(released);
        let open = Box::new(move |_: u64, _: &Arc<crate::bound::Bound>| {
            begin.try_send(()).unwrap();
            // Ends also when the test has failed.
            let _end = released.lock().unwrap().recv();
            Err(OpenError::InUse { path: "disk".into() })
        });
        let store =
            Store::with("s".parse().unwrap(), "disk".into(), roomy(), Handle::current(), quiet(), open);
        tokio::select! {
            _ = store.open() => panic!("it hangs"),
            began = begun.recv() => began.unwrap(),
        }
        // The callers have given up.
        for _ in 0..3 {
            assert!(tokio::time::timeout(Duration::ZERO, store.open()).await.is_err());
        }
        let other = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(|| ()));
        other.await.expect("a thread is left").unwrap();
        release.send(()).unwrap();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_fails_loses_nothing_that_was_answered() {
    let disk = Disk::new();
    // A small cache, so that reads reach the disk.
    let config = StoreConfig { durable_within: Some(Duration::from_secs(3600)), cache: 64 << 10, ..roomy() };
    let store = on_disk(&disk, config);
    let mine = bucket(&store, "a");
    for number in 0..100 {
        set(&mine, &format!("{number:03}"), vec![7; 5000]).await.unwrap();
    }
    store.flush().await.unwrap();
    set(&mine, "k", "answered").await.unwrap();
    disk.fail_reads(1);
    let mut has_failed = false;
    for number in 0..100 {
        has_failed |= mine.get(format!("{number:03}"), u64::MAX).await.is_err();
    }
    assert!(has_failed, "no read reached the disk");
    set(&mine, "other", "1").await.unwrap();
    assert_eq!(get(&mine, "k").await.unwrap(), "answered");
    store.close().await;
    assert_eq!(get(&bucket(&on_disk(&disk, roomy()), "a"), "k").await.unwrap(), "answered");
}
