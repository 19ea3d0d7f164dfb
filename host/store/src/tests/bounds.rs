//! Keys, values and lists that a hostile user may ask for.

use super::*;
use crate::{MAX_KEY, MAX_KEYS_AT_ONCE, MAX_PAGE};

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_any_text_of_bounded_length() {
    let store = on_disk(&Disk::new(), roomy());
    let mine = bucket(&store, "a");
    let hostile = ["../../etc/passwd", "/", "a\0b", "\u{202e}", " ", &"k".repeat(MAX_KEY)];
    for key in hostile {
        set(&mine, key, key.to_owned()).await.unwrap();
        assert_eq!(get(&mine, key).await.unwrap(), key);
    }
    assert_eq!(keys(&mine).await.len(), hostile.len());
    for key in ["", &"k".repeat(MAX_KEY + 1)] {
        let refused = StoreError::Key(key.len());
        assert_eq!(set(&mine, key, "").await, Err(refused.clone()));
        assert_eq!(mine.get(key.into(), 10).await, Err(refused.clone()));
        assert_eq!(mine.exists(key.into()).await, Err(refused.clone()));
        assert_eq!(mine.increment(key.into(), 1, 0..=9).await, Err(refused.clone()));
        assert_eq!(mine.swap(key.into(), None, None).await, Err(refused));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_and_answers_are_bounded() {
    let store = on_disk(&Disk::new(), roomy());
    let mine = bucket(&store, "a");
    let allowed = roomy().value_size;
    set(&mine, "a", vec![1; 1 << 20]).await.unwrap();
    let refused = set(&mine, "b", vec![1; (1 << 20) + 1]).await;
    assert_eq!(refused, Err(StoreError::ValueTooLarge { bytes: allowed + 1, allowed }));
    set(&mine, "c", "").await.unwrap();
    assert_eq!(mine.get("a".into(), allowed).await, Err(StoreError::AnswerTooLarge { allowed }));
    assert_eq!(mine.get("a".into(), allowed + 1).await.unwrap().unwrap().len() as u64, allowed);
    let many = vec!["a".to_owned(); MAX_KEYS_AT_ONCE];
    let refused = mine.get_many(many, 3 * allowed).await;
    assert_eq!(refused, Err(StoreError::AnswerTooLarge { allowed: 3 * allowed }));
    let many: Vec<_> = (0..100_000).map(|number| format!("{number}")).collect();
    assert_eq!(mine.get_many(many.clone(), 9).await, Err(StoreError::KeysAtOnce(100_000)));
    let changes = many.into_iter().map(|key| (key, Some(Bytes::new()))).collect();
    assert_eq!(mine.change(changes).await, Err(StoreError::KeysAtOnce(100_000)));
    assert_eq!(mine.get_many(vec!["c".into(), "none".into()], 9).await, Ok(vec![Some("".into()), None]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_refuses_only_what_takes_more_and_a_smaller_quota_keeps_what_is_there() {
    let config = StoreConfig { bytes: 262_144, keys: 10, ..StoreConfig::default() };
    let store = on_disk(&Disk::new(), config.clone());
    let mine = bucket(&store, "a");
    // A value of half the quota, but for its owner, its key and what an entry takes: it has a page of its own.
    let largest = 131_072 - 2 - usize::try_from(ENTRY_BYTES).unwrap();
    set(&mine, "a", vec![1; largest]).await.unwrap();
    let too_large = Err(StoreError::Bytes { used: 393_216, allowed: 262_144 });
    assert_eq!(mine.change(vec![("b".into(), Some(vec![2; largest + 1].into()))]).await, too_large);
    set(&mine, "a", vec![2; largest + 1]).await.unwrap();
    let used = 262_144 + 2 + ENTRY_BYTES;
    assert_eq!(set(&mine, "b", "").await, Err(StoreError::Bytes { used, allowed: 262_144 }));
    assert_eq!(
        set(&mine, "a", vec![2; 300_000]).await,
        Err(StoreError::Bytes { used: 524_288, allowed: 262_144 })
    );
    store.configure(StoreConfig { bytes: 64, keys: 1, ..config.clone() });
    set(&mine, "a", vec![2; 1000]).await.unwrap();
    assert!(set(&mine, "a", vec![2; 1001]).await.is_err());
    assert_eq!(mine.change(vec![("a".into(), None), ("b".into(), Some("1".into()))]).await, Ok(1));
    store.configure(StoreConfig { bytes: 1000, keys: 1, ..config });
    let all = vec![("b".into(), None), ("c".into(), Some("1".into())), ("d".into(), Some("1".into()))];
    assert_eq!(mine.change(all).await, Err(StoreError::Keys { used: 2, allowed: 1 }));
    assert_eq!(keys(&mine).await, ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn increments_are_of_whole_numbers_within_their_range() {
    let store = on_disk(&Disk::new(), roomy());
    let mine = bucket(&store, "a");
    let range = 0..=i128::from(u64::MAX);
    assert_eq!(mine.increment("n".into(), 5, range.clone()).await, Ok(5));
    assert_eq!(mine.increment("n".into(), -5, range.clone()).await, Ok(0));
    assert_eq!(mine.increment("n".into(), -1, range.clone()).await, Err(StoreError::OutOfRange));
    assert_eq!(mine.increment("n".into(), i128::MAX, i128::MIN..=i128::MAX).await, Ok(i128::MAX));
    assert_eq!(mine.increment("n".into(), 1, i128::MIN..=i128::MAX).await, Err(StoreError::OutOfRange));
    for text in ["", "a", "1.5", " 1", "1e3", "99999999999999999999999999999999999999999"] {
        set(&mine, "t", text.to_owned()).await.unwrap();
        assert_eq!(mine.increment("t".into(), 1, range.clone()).await, Err(StoreError::NotANumber));
        assert_eq!(get(&mine, "t").await.unwrap(), text);
    }
    set(&mine, "t", vec![255]).await.unwrap();
    assert_eq!(mine.increment("t".into(), 1, range).await, Err(StoreError::NotANumber));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_in_pages_and_goes_on_where_it_was_while_keys_come_and_go() {
    let store = on_disk(&Disk::new(), roomy());
    let (mine, other) = (bucket(&store, "b"), bucket(&store, "a"));
    let last = bucket(&store, "c");
    for owner in [&other, &last] {
        set(owner, "0000", "theirs").await.unwrap();
    }
    let all: Vec<String> = (0..2500).map(|number| format!("{number:04}")).collect();
    let changes = all.iter().map(|key| (key.clone(), Some(Bytes::new()))).collect();
    mine.change(changes).await.unwrap();
    let first = mine.list(String::new(), None, usize::MAX).await.unwrap();
    assert_eq!(first.keys, all[..MAX_PAGE]);
    // The key where the page ended goes, one behind it goes, one before it comes.
    let gone = vec![("0999".into(), None), ("1000".into(), None), ("0000a".into(), Some(Bytes::new()))];
    mine.change(gone).await.unwrap();
    let second = mine.list(String::new(), first.next, 10).await.unwrap();
    assert_eq!(second.keys, all[1001..1011]);
    let third = mine.list(String::new(), Some("2498".into()), 10).await.unwrap();
    assert_eq!((third.keys, third.next), (vec!["2499".to_owned()], None));
    let prefix = mine.list("12".into(), None, 1000).await.unwrap();
    assert_eq!((prefix.keys.len(), prefix.next), (100, None));
    let after_prefix = mine.list("12".into(), Some("13".into()), 1000).await.unwrap();
    assert_eq!(after_prefix, Page::default());
    assert_eq!(mine.list("12".into(), Some("0".into()), 1).await.unwrap().keys, ["1200"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_all_owners_come_in_pages_with_their_values() {
    let store = on_disk(&Disk::new(), roomy());
    let rows = [("", "x", "1"), ("a", "x", "2"), ("a", "y", "3"), ("hooks/h", "x", "4")];
    let owned = |rows: &[(&str, &str, &str)]| {
        rows.iter().map(|(o, k, v)| ((*o).into(), (*k).into(), Bytes::from((*v).to_owned()))).collect()
    };
    store.import(owned(&rows)).await.unwrap();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.rows(None, after, String::new(), 3, true).await.unwrap();
        found.extend(page.rows.into_iter().map(|row| (row.owner, row.key, row.value.unwrap())));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, owned(&rows));
    let x = store.rows(None, None, "x".into(), 10, false).await.unwrap();
    assert_eq!(x.rows.iter().map(|row| &*row.owner).collect::<Vec<_>>(), ["", "a", "hooks/h"]);
    let a = store.rows(Some("a".into()), None, String::new(), 10, false).await.unwrap();
    assert_eq!(a.rows.len(), 2);
    let usage = store.compact().await.unwrap();
    assert_eq!((usage.keys, usage.bytes), (4, 17 + 4 * ENTRY_BYTES));
}

#[tokio::test]
async fn a_grant_to_read_does_not_write() {
    let store = on_disk(&Disk::new(), roomy());
    let reader = Bucket::new(store, "a".into(), false);
    assert_eq!(set(&reader, "k", "1").await, Err(StoreError::ReadOnly));
    assert_eq!(get(&reader, "k").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_by_hash_swaps_only_what_was_seen() {
    let store = on_disk(&Disk::new(), roomy());
    let mine = bucket(&store, "a");
    assert_eq!(mine.hash("k".into()).await, Ok(None));
    assert_eq!(mine.swap_seen("k".into(), None, Some("1".into())).await, Ok(Ok(())));
    let one = mine.hash("k".into()).await.unwrap();
    assert_eq!(mine.swap_seen("k".into(), None, Some("2".into())).await, Ok(Err(one)));
    assert_eq!(mine.swap_seen("k".into(), one, Some("2".into())).await, Ok(Ok(())));
    assert_eq!(get(&mine, "k").await.unwrap(), "2");
    assert_ne!(mine.hash("k".into()).await, Ok(one));
}
