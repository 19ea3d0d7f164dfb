//! An extension finds only what was granted of the machine, by every call.

use std::{fs, net::TcpListener, os::unix::fs::symlink, path::Path, time::SystemTime};

use weir_host::{
    ExtensionConfig,
    config::{DirGrant, NetGrant},
};

use super::stage::{Stage, hostile, hostile_with};

/// Case 49.
#[tokio::test]
async fn one_to_which_nothing_was_granted_finds_its_name_and_nothing_else() {
    let stage = Stage::start(vec![hostile()]).await;
    assert_eq!(stage.tell("surroundings").await.unwrap(), r#"["hostile"] [] []"#);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for (command, error) in [
        ("tcp".to_owned(), "access-denied"),
        ("udp".to_owned(), "access-denied"),
        (format!("connect {address}"), "access-denied"),
        ("listen 127.0.0.1:0".to_owned(), "access-denied"),
        ("resolve localhost".to_owned(), "access-denied"),
        ("resolve 127.0.0.1".to_owned(), "access-denied"),
        ("file read 0:etc/hostname".to_owned(), "0 directories were granted"),
    ] {
        assert_eq!(stage.tell(&command).await, Err(error.to_owned()), "{command}");
    }
}

/// Case 49: with one granted address.
#[tokio::test]
async fn one_to_which_an_address_was_granted_connects_to_it_and_does_nothing_else() {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [granted, other] = [0, 1].map(|which: usize| listeners[which].local_addr().unwrap());
    let stage = Stage::start(vec![hostile_with(|h| {
        h.grants.net = vec![granted.to_string().parse::<NetGrant>().unwrap()];
    })])
    .await;
    for (command, outcome) in [
        (format!("connect {granted}"), Ok("connected")),
        (format!("connect {other}"), Err("access-denied")),
        (format!("connect 127.0.0.2:{}", granted.port()), Err("access-denied")),
        (format!("connect 0.0.0.0:{}", granted.port()), Err("invalid-argument")),
        ("bind 0.0.0.0:0".to_owned(), Ok("bound")),
        ("bind 127.0.0.1:0".to_owned(), Err("access-denied")),
        (format!("bind 0.0.0.0:{}", other.port()), Err("access-denied")),
        ("listen 0.0.0.0:0".to_owned(), Err("access-denied")),
        ("udp".to_owned(), Err("access-denied")),
        ("resolve localhost".to_owned(), Err("access-denied")),
        ("resolve localhost.".to_owned(), Err("access-denied")),
        ("resolve example.com".to_owned(), Err("access-denied")),
    ] {
        let told = stage.tell(&command).await;
        assert_eq!(told.as_deref().map_err(String::as_str), outcome, "{command}");
    }
}

/// A granted directory beside one that is not.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for dir in ["ro", "rw", "other"] {
            fs::create_dir(place.path().join(dir)).unwrap();
            fs::write(place.path().join(dir).join("file"), dir).unwrap();
        }
        fs::create_dir(place.path().join("ro/inner")).unwrap();
        symlink("file", place.path().join("ro/link")).unwrap();
        Self(place)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The read-only directory, then the writable one.
    fn guest(&self) -> ExtensionConfig {
        let grant = |name: &str| self.path().join(name);
        hostile_with(|h| {
            h.grants.dirs = vec![
                DirGrant::read_only(grant("ro"), "/ro".parse().unwrap()),
                DirGrant::read_write(grant("rw"), "/rw".parse().unwrap()),
            ];
        })
    }

    fn state(&self, dir: &str) -> Vec<(String, String, SystemTime)> {
        let mut entries: Vec<_> = fs::read_dir(self.path().join(dir))
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let text = fs::read_to_string(entry.path()).unwrap_or_default();
                let modified = entry.metadata().unwrap().modified().unwrap();
                (entry.file_name().into_string().unwrap(), text, modified)
            })
            .collect();
        entries.sort();
        entries
    }
}

/// Case 50.
#[tokio::test]
async fn no_path_climbs_out_whoever_made_it() {
    let place = Place::new();
    symlink("../other/file", place.path().join("rw/relative")).unwrap();
    symlink(place.path().join("other/file"), place.path().join("rw/absolute")).unwrap();
    symlink("..", place.path().join("rw/up")).unwrap();
    symlink("/", place.path().join("rw/root")).unwrap();
    let before = place.state("other");
    let stage = Stage::start(vec![place.guest()]).await;
    assert_eq!(stage.tell("file read 1:file").await.unwrap(), "rw");
    // Its own links that lead out cannot be made or followed.
    let own = stage.tell("file symlink 1:own ../other/file").await;
    assert_eq!(own.as_deref(), Ok("done"));
    let absolute =
        stage.tell(&format!("file symlink 1:own-absolute {}/other/file", place.path().display())).await;
    assert_eq!(absolute, Err("not-permitted".to_owned()));
    for path in [
        "1:../other/file",
        "1:relative",
        "1:absolute",
        "1:up/other/file",
        "1:root/etc/hostname",
        "1:own",
        "1:./../rw/../other/file",
        "1:/etc/hostname",
    ] {
        for operation in ["read", "create", "truncate", "overwrite", "set-times-at"] {
            let told = stage.tell(&format!("file {operation} {path}")).await;
            assert_eq!(told, Err("not-permitted".to_owned()), "{operation} {path}");
        }
    }
    for command in [
        "file rename 1:file 1:../other/new",
        "file rename 1:../other/file 1:new",
        "file link 1:file 1:../other/new",
        "file link 1:../other/file 1:new",
        "file unlink 1:../other/file",
        "file unlink 1:up/other/file",
        "file make-dir 1:../other/new",
        "file remove-dir 1:../other",
        "file list 1:..",
        "file list 1:up",
        "file symlink 1:../other/new file",
    ] {
        assert_eq!(stage.tell(command).await, Err("not-permitted".to_owned()), "{command}");
    }
    assert_eq!(place.state("other"), before);
    stage.stands().await;
}

/// Case 51.
#[tokio::test]
async fn nothing_changes_in_a_directory_granted_read_only() {
    let place = Place::new();
    let before = place.state("ro");
    let stage = Stage::start(vec![place.guest()]).await;
    assert_eq!(stage.tell("file read 0:file").await.unwrap(), "ro");
    assert_eq!(stage.tell("file read 0:link").await.unwrap(), "ro");
    for command in [
        "create 0:new",
        "create 0:file",
        "truncate 0:file",
        "overwrite 0:file",
        "overwrite 0:link",
        "make-dir-in 0:inner",
        "set-size 0:file",
        "write-read-only 0:file",
        "append-read-only 0:file",
        "set-times 0:file",
        "set-times-at 0:file",
        "make-dir 0:new",
        "remove-dir 0:inner",
        "unlink 0:file",
        "unlink 0:link",
        "symlink 0:new file",
        "rename 0:file 0:new",
        "rename 0:file 1:new",
        "rename 1:file 0:file",
        "rename 1:file 0:new",
        // A second name in the writable directory would be a way to write.
        "link 0:file 1:new",
        "link 0:file 0:new",
        "link 1:file 0:new",
    ] {
        let told = stage.tell(&format!("file {command}")).await;
        let error = told.expect_err(command);
        assert!(["not-permitted", "read-only", "bad-descriptor"].contains(&&*error), "{command}: {error}");
    }
    assert_eq!(place.state("ro"), before);
    assert_eq!(fs::read_dir(place.path().join("rw")).unwrap().count(), 1);
    // The same calls write where it may.
    for command in ["overwrite 1:file", "make-dir 1:new", "link 1:file 1:second", "rename 1:second 1:third"] {
        assert_eq!(stage.tell(&format!("file {command}")).await.unwrap(), "done", "{command}");
    }
    assert_eq!(fs::read_to_string(place.path().join("rw/third")).unwrap(), "overwritten");
}

/// Case 12, for files.
#[tokio::test]
async fn a_path_or_write_of_any_length_is_an_error() {
    let place = Place::new();
    let mut guest = hostile_with(|h| h.grants.dirs = place.guest().grants.dirs.split_off(1));
    guest.limits.message_size = 64 << 10;
    let stage = Stage::start(vec![guest]).await;
    for bytes in [(16 << 10) + 1, 3_000_000] {
        let told = stage.tell(&format!("long-paths {bytes}")).await.unwrap();
        assert_eq!(told, ["name-too-long"; 14].join(" "));
    }
    // One call carries `message-size` and 64 KiB.
    assert_eq!(stage.tell("large-write 0:file 131072").await.unwrap(), "131072");
    assert_eq!(stage.tell("large-write 0:file 131073").await, Err("message-size".to_owned()));
    assert_eq!(stage.tell("large-write 0:file 3000000").await, Err("message-size".to_owned()));
    // A stream permits less than that.
    assert_eq!(stage.tell("permit 0:file").await.unwrap(), "65536");
    assert_eq!(stage.status("hostile").failures, []);
}
