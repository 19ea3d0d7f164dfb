//! How much an extension may write into a granted directory.

use std::{fs, path::Path};

use weir_host::{
    Main,
    config::{DirGrant, ExtensionConfig},
    limits::DirLimits,
};

use super::support::{puppet_with, start, tell};

const BLOCK: u64 = 4096;

fn bounded(host: &Path, max_blocks: u64, max_files: Option<u64>) -> DirGrant {
    DirGrant {
        max_bytes: Some(max_blocks * BLOCK),
        max_files,
        ..DirGrant::read_write(host, "/data".parse().unwrap())
    }
}

fn with(id: &str, grant: DirGrant) -> ExtensionConfig {
    puppet_with(id, |it| it.grants.dirs = vec![grant])
}

async fn usage(main: &Main, id: &str) -> DirLimits {
    let report = main.control().limits_of(id).await.unwrap();
    report.extensions.first().and_then(|extension| extension.dirs.first()).unwrap().clone()
}

/// Blocks, files, peak of blocks.
async fn used(main: &Main, id: &str) -> (u64, u64, u64) {
    let dir = usage(main, id).await;
    (dir.used_bytes.unwrap() / BLOCK, dir.used_files.unwrap(), dir.peak_bytes.unwrap() / BLOCK)
}

fn there(path: &Path) -> (u64, u64) {
    let mut found = (0, 0);
    for entry in fs::read_dir(path).unwrap() {
        let data = entry.as_ref().unwrap().metadata().unwrap();
        let bytes = if data.is_dir() { 0 } else { data.len() };
        found = (found.0 + bytes.max(1).div_ceil(BLOCK), found.1 + 1);
        if data.is_dir() {
            let below = there(&entry.unwrap().path());
            found = (found.0 + below.0, found.1 + below.1);
        }
    }
    found
}

#[tokio::test]
async fn nothing_makes_a_directory_larger_than_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let main = start(vec![with("a", bounded(dir.path(), 8, None))]).await;
    for command in ["make-dir /data/d", "fill /data/d/f 8192", "write /data/g hello", "fill /data/h 10000"] {
        tell(&main, "a", command).await.unwrap();
    }
    assert_eq!((used(&main, "a").await, there(dir.path())), ((7, 4, 7), (7, 4)));
    tell(&main, "a", "fill /data/g 4091").await.unwrap();
    for command in [
        "fill /data/g 4097",
        "fill /data/h 6385",
        "set-size /data/g 8193",
        "set-size /data/g 1099511627776",
        "fill /data/new 4097",
    ] {
        assert_eq!(tell(&main, "a", command).await.unwrap_err(), "StorageFull", "{command}");
    }
    // The last one exists, and is empty.
    assert_eq!(there(dir.path()), (8, 5));
    for command in ["write /data/other x", "make-dir /data/e", "fill /data/other 1"] {
        assert_eq!(tell(&main, "a", command).await.unwrap_err(), "StorageFull", "{command}");
    }
    // The C library turns a stream's error into another one.
    tell(&main, "a", "remove /data/new").await.unwrap();
    tell(&main, "a", &format!("write /data/new {}", "x".repeat(5000))).await.unwrap_err();
    assert_eq!((used(&main, "a").await, there(dir.path())), ((8, 5, 8), (8, 5)));

    // Freed room can be used again, and files be overwritten.
    tell(&main, "a", "fill /data/h 2288").await.unwrap();
    tell(&main, "a", "write /data/h short").await.unwrap();
    assert_eq!(used(&main, "a").await.0, 6);
    tell(&main, "a", "rename /data/new /data/h").await.unwrap();
    tell(&main, "a", "remove /data/d/f").await.unwrap();
    tell(&main, "a", "remove-dir /data/d").await.unwrap();
    assert_eq!((used(&main, "a").await, there(dir.path())), ((2, 2, 8), (2, 2)));
    tell(&main, "a", "fill /data/f 24576").await.unwrap();
    assert_eq!((used(&main, "a").await, there(dir.path())), ((8, 3, 8), (8, 3)));
    let written = usage(&main, "a").await.written_bytes.unwrap();
    assert!(written > 8192 + 5 + 10000 + 4091 + 24576, "{written}");
}

#[tokio::test]
async fn entries_are_bounded_by_their_number() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    let main = start(vec![with("a", bounded(dir.path(), 100, Some(3)))]).await;
    tell(&main, "a", "write /data/d/a x").await.unwrap();
    tell(&main, "a", "write /data/b x").await.unwrap();
    for command in ["write /data/c x", "make-dir /data/c", "write /data/d/c x", "symlink b /data/c"] {
        assert_eq!(tell(&main, "a", command).await.unwrap_err(), "StorageFull", "{command}");
    }
    tell(&main, "a", "write /data/b again").await.unwrap();
    assert_eq!(tell(&main, "a", "make-dir /data/b").await.unwrap_err(), "AlreadyExists");
    assert_eq!(tell(&main, "a", "remove /data/c").await.unwrap_err(), "NotFound");
    tell(&main, "a", "rename /data/b /data/d/b").await.unwrap();
    assert_eq!((used(&main, "a").await, there(dir.path())), ((3, 3, 3), (3, 3)));
    tell(&main, "a", "remove /data/d/b").await.unwrap();
    tell(&main, "a", "symlink d/a /data/c").await.unwrap();
    assert_eq!(used(&main, "a").await.1, 3);
    // A file with two names could count under either.
    assert_eq!(tell(&main, "a", "link /data/d/a /data/d/b").await.unwrap_err(), "PermissionDenied");
}

#[tokio::test]
async fn a_file_without_a_name_counts_as_long_as_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let main = start(vec![with("a", bounded(dir.path(), 4, None))]).await;
    tell(&main, "a", "unlinked /data/x 8192").await.unwrap();
    assert_eq!((used(&main, "a").await, there(dir.path())), ((2, 0, 2), (0, 0)));
    assert_eq!(tell(&main, "a", "unlinked /data/x 12288").await.unwrap_err(), "StorageFull");
    assert_eq!(used(&main, "a").await.0, 3);
    // A replaced file has no name either.
    tell(&main, "a", "write /data/old x").await.unwrap();
    tell(&main, "a", "open /data/old").await.unwrap();
    assert_eq!(tell(&main, "a", "write /data/new x").await.unwrap_err(), "StorageFull");
    tell(&main, "a", "remove /data/old").await.unwrap();
    assert_eq!(tell(&main, "a", "write /data/new x").await.unwrap_err(), "StorageFull");
    main.control().restart("a").await.unwrap();
    assert_eq!(used(&main, "a").await, (0, 0, 4));
    tell(&main, "a", "fill /data/f 16384").await.unwrap();
}

#[tokio::test]
async fn what_others_write_and_remove_counts() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("before"), vec![0; 3 * 4096]).unwrap();
    let main =
        start(vec![with("a", bounded(dir.path(), 4, None)), with("b", bounded(dir.path(), 3, None))]).await;
    assert_eq!(used(&main, "a").await, (3, 1, 3));
    assert_eq!(tell(&main, "b", "write /data/b x").await.unwrap_err(), "StorageFull");
    tell(&main, "a", "write /data/a x").await.unwrap();
    assert_eq!(used(&main, "b").await, (4, 2, 4));
    fs::remove_file(dir.path().join("before")).unwrap();
    // Recounted before a refusal, at most once a second.
    while tell(&main, "b", "fill /data/b 8192").await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!((used(&main, "a").await, there(dir.path())), ((3, 2, 4), (3, 2)));
}

#[tokio::test]
async fn what_lies_outside_is_not_moved_in_uncounted() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["free", "bounded"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("free/large"), vec![0; 100_000]).unwrap();
    let free = DirGrant::read_write(dir.path().join("free"), "/free".parse().unwrap());
    let grants = vec![bounded(&dir.path().join("bounded"), 4, None), free];
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = grants)]).await;
    for command in ["rename /free/large /data/large", "rename /free /data/free"] {
        tell(&main, "a", command).await.unwrap_err();
    }
    let refused = tell(&main, "a", "link /free/large /data/large").await.unwrap_err();
    assert_eq!(refused, "PermissionDenied");
    assert_eq!(there(&dir.path().join("bounded")), (0, 0));
    tell(&main, "a", "fill /free/large 100000").await.unwrap();
    tell(&main, "a", "link /free/large /free/again").await.unwrap();
}

#[tokio::test]
async fn a_directory_that_cannot_be_counted_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut deep = dir.path().to_owned();
    for _ in 0..70 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let main = start(vec![with("a", bounded(dir.path(), 1000, None))]).await;
    let status = main.control().status("a").unwrap();
    let failure = format!("{:?}", status.failures);
    assert!(failure.contains("nested deeper than 64"), "{failure}");
}
