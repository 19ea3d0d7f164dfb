//! A real disk that runs full. `WEIR_SMALL_DISK` names a directory on one of a few MiB, such as a tmpfs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{env, fs, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::runtime::Handle;
use weir_store::{Bucket, StoreConfig, StoreError, Stores, StoresConfig};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a small disk of its own"]
async fn a_full_disk_is_an_error_and_loses_nothing() {
    let disk = PathBuf::from(env::var_os("WEIR_SMALL_DISK").unwrap());
    for durable_within in [None, Some(Duration::from_secs(3600))] {
        let mut config = StoreConfig::default();
        (config.bytes, config.keys, config.durable_within) = (1 << 30, 1_000_000, durable_within);
        let dir = disk.join("data");
        fs::create_dir_all(&dir).unwrap();
        let stores = open(&dir, &config);
        let bucket = stores.bucket_of("a", "s", true).unwrap();
        // Room that comes back later.
        let ballast = disk.join("ballast");
        fs::write(&ballast, vec![1; 512 << 10]).unwrap();
        let mut there = 0;
        let error = loop {
            match set(&bucket, there).await {
                Ok(_) => there += 1,
                Err(error) => break error,
            }
            assert!(there < 100_000, "it was never full");
        };
        assert!(matches!(&error, StoreError::Io(text) if text.contains("No space left")), "{error}");
        assert!(there > 100, "{there}");
        if durable_within.is_none() {
            all_there(&bucket, there).await;
        }
        fs::remove_file(&ballast).unwrap();
        fs::remove_file(disk.join("other")).unwrap_or_default();
        set(&bucket, there).await.unwrap();
        all_there(&bucket, there + 1).await;
        stores.close().await;

        let stores = open(&dir, &config);
        all_there(&stores.bucket_of("a", "s", true).unwrap(), there + 1).await;
        stores.close().await;
        fs::remove_dir_all(&dir).unwrap();
    }
}

fn open(dir: &PathBuf, config: &StoreConfig) -> Stores {
    let stores = Stores::new(Handle::current(), Arc::new(|_| {}));
    let config: StoresConfig = [("s".parse().unwrap(), config.clone())].into_iter().collect();
    stores.configure(Some(dir), &config);
    stores
}

async fn set(bucket: &Bucket, number: usize) -> Result<usize, StoreError> {
    bucket.change(vec![(format!("{number:06}"), Some(vec![7; 700].into()))]).await
}

async fn all_there(bucket: &Bucket, number: usize) {
    for key in 0..number {
        let value = bucket.get(format!("{key:06}"), u64::MAX).await.unwrap();
        assert_eq!(value, Some(Bytes::from(vec![7; 700])), "{key} of {number}");
    }
    let usage = bucket.store().usage().await.unwrap();
    assert_eq!(usage.keys, number as u64);
}
