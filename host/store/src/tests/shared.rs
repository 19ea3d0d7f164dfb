//! Many users at once: each is answered once, and none waits for all of another's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_share_a_transaction_and_each_is_answered() {
    let disk = Disk::new();
    let store = on_disk(&disk, roomy());
    store.open().await.unwrap();
    let before = disk.syncs();
    let tasks: Vec<_> = (0..1000)
        .map(|number| {
            let mine = bucket(&store, "a");
            tokio::spawn(async move { mine.increment(format!("{}", number % 7), 1, 0..=9999).await })
        })
        .collect();
    let mut sums = Vec::new();
    for task in tasks {
        sums.push(task.await.unwrap().unwrap());
    }
    assert!(disk.syncs() - before < 500, "{}", disk.syncs() - before);
    assert_eq!(sums.iter().max(), Some(&143));
    let mut total = 0;
    for key in 0..7 {
        total += str::from_utf8(&get(&bucket(&store, "a"), &key.to_string()).await.unwrap())
            .unwrap()
            .parse::<u32>()
            .unwrap();
    }
    assert_eq!(total, 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_gives_up_leaves_the_others_their_turn() {
    let store = on_disk(&Disk::new(), roomy());
    let mine = bucket(&store, "a");
    for number in 0..100 {
        let mut gives_up = Box::pin(set(&mine, "gone", vec![number; 10]));
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(gives_up.as_mut().poll(cx))).await;
        drop((polled, gives_up));
        tokio::time::timeout(PATIENCE, set(&mine, "k", vec![number])).await.unwrap().unwrap();
        assert_eq!(get(&mine, "k").await.unwrap(), vec![number]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_writes_at_full_speed_does_not_starve_another() {
    let store = on_disk(&Disk::new(), roomy());
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let greedy: Vec<_> = (0..64)
        .map(|number| {
            let (mine, stop, written) = (bucket(&store, "greedy"), stop.clone(), written.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    set(&mine, &format!("{number}"), vec![1; 10_000]).await.unwrap();
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let other = bucket(&store, "modest");
    let mut before_it = Vec::new();
    for number in 0..50 {
        let before = written.load(Ordering::Relaxed);
        tokio::time::timeout(PATIENCE, set(&other, "k", vec![number])).await.unwrap().unwrap();
        before_it.push(written.load(Ordering::Relaxed) - before);
    }
    // At most the transaction under way, the one it is part of, and what was answered just before. Of a single write, the
    // answer may come late to this task, and others go on meanwhile.
    before_it.sort_unstable();
    assert!(before_it[25] <= 4 * 64, "so many writes came first: {before_it:?}");
    stop.store(true, Ordering::Relaxed);
    for task in greedy {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn what_can_never_be_stored_does_not_wait_and_one_user_does_not_fill_the_line() {
    let store = on_disk(&Disk::new(), StoreConfig { value_size: 1 << 20, shared: true, ..roomy() });
    let user = |name: &str| Bucket::new(store.clone(), "".into(), true).used_by(name.into());
    let (greedy, modest) = (user("greedy"), user("modest"));
    // One thread: nothing is answered before all have been asked.
    let mut asked = Vec::new();
    for number in 0..40 {
        let (greedy, too_large) = (greedy.clone(), number % 2 == 0);
        let value = vec![1; (1 << 20) + usize::from(too_large)];
        asked.push(tokio::spawn(async move { set(&greedy, &format!("{number}"), value).await }));
    }
    tokio::time::timeout(PATIENCE, set(&modest, "k", "1")).await.unwrap().unwrap();
    for (number, answer) in asked.into_iter().enumerate() {
        match answer.await.unwrap() {
            Err(StoreError::ValueTooLarge { .. }) => assert_eq!(number % 2, 0),
            Ok(_) | Err(StoreError::Busy) => assert_eq!(number % 2, 1),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn one_user_of_a_shared_store_does_not_fill_the_line_of_reads() {
    let store = on_disk(&Disk::new(), StoreConfig { shared: true, ..roomy() });
    let user = |name: &str| Bucket::new(store.clone(), "".into(), true).used_by(name.into());
    let (greedy, modest) = (user("greedy"), user("modest"));
    set(&modest, "k", "1").await.unwrap();
    // The thread for reads is busy until all have asked.
    let (begin, begun) = tokio::sync::oneshot::channel();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let busy = {
        let store = store.clone();
        let read = move |_: &crate::store::Snapshot| {
            begin.send(()).unwrap();
            Ok(Ok(waits.recv()))
        };
        tokio::spawn(async move { store.read(&"greedy".into(), read).await })
    };
    begun.await.unwrap();
    let flood: Vec<_> = (0..5000)
        .map(|_| {
            let greedy = greedy.clone();
            tokio::spawn(async move { greedy.exists("k".to_owned()).await })
        })
        .collect();
    let asked = tokio::spawn(async move { modest.exists("k".to_owned()).await });
    let refused = async {
        while !asked.is_finished() && flood.iter().filter(|read| read.is_finished()).count() < 5000 - 1024 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.unwrap();
    go_on.send(()).unwrap();
    busy.await.unwrap().unwrap().unwrap();
    assert_eq!(tokio::time::timeout(PATIENCE, asked).await.unwrap().unwrap(), Ok(true));
    for read in flood {
        assert!(matches!(read.await.unwrap(), Ok(_) | Err(StoreError::Busy)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_end_writes_all_stores_whatever_waits_in_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let stores = crate::Stores::new(Handle::current(), quiet());
    let within = StoreConfig { durable_within: Some(Duration::from_secs(3600)), ..roomy() };
    let names = ["a", "b", "c"];
    let config: crate::StoresConfig =
        names.map(|name| (name.parse().unwrap(), within.clone())).into_iter().collect();
    stores.configure(Some(&path), &config);
    for name in names {
        set(&stores.bucket_of("u", name, true).unwrap(), "k", "answered").await.unwrap();
    }
    let flood: Vec<_> = (0..40)
        .map(|number| {
            let mine = stores.bucket_of(&format!("u{}", number % 5), "a", true).unwrap();
            tokio::spawn(async move { set(&mine, &format!("{number}"), vec![1; 1 << 20]).await })
        })
        .collect();
    stores.close().await;
    for answer in flood {
        assert!(matches!(answer.await.unwrap(), Ok(_) | Err(StoreError::Busy | StoreError::Closed)));
    }
    let again = crate::Stores::new(Handle::current(), quiet());
    again.configure(Some(&path), &config);
    for name in names {
        assert_eq!(get(&again.bucket_of("u", name, true).unwrap(), "k").await.unwrap(), "answered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_leaves_the_configuration_is_closed_and_one_that_comes_back_has_its_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let stores = crate::Stores::new(Handle::current(), quiet());
    let config: crate::StoresConfig = [("s".parse().unwrap(), roomy())].into_iter().collect();
    stores.configure(Some(&path), &config);
    let grants = [weir_config::StoreGrant::from("s".parse::<weir_names::StoreName>().unwrap())];
    let mine = stores.bucket("a", &grants, "s").unwrap();
    set(&mine, "k", "1").await.unwrap();
    assert_eq!(stores.bucket("a", &[], "s").unwrap_err(), crate::Unavailable::NotGranted);
    stores.configure(Some(&path), &crate::StoresConfig::default());
    assert_eq!(stores.bucket("a", &grants, "s").unwrap_err(), crate::Unavailable::Unknown);
    mine.store().close().await;
    assert_eq!(set(&mine, "k", "2").await, Err(StoreError::Closed));
    stores.configure(Some(&path), &config);
    let mine = stores.bucket("a", &grants, "s").unwrap();
    // The close of the old configuration may still come: the file is then opened again.
    assert_eq!(tokio::time::timeout(PATIENCE, mine.get("k".into(), 9)).await.unwrap().unwrap().unwrap(), "1");
    stores.close().await;
}
