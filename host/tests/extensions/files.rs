//! What an extension sees of the machine: what was granted, and nothing else.

use std::{fs, os::unix::fs::symlink};

use weir_host::{config::DirGrant, config::NetGrant};

use super::support::{puppet, puppet_with, start, tell};

#[tokio::test]
async fn a_directory_granted_read_only_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "text").unwrap();
    let grant = DirGrant::read_only(dir.path(), "/data".parse().unwrap());
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = vec![grant])]).await;
    assert_eq!(tell(&main, "a", "read /data/file").await.unwrap(), "text");
    for path in ["/data/file", "/data/new"] {
        assert!(tell(&main, "a", &format!("write {path} changed")).await.is_err());
    }
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "text");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_directory_granted_for_writing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let grant = DirGrant::read_write(dir.path(), "/data".parse().unwrap());
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = vec![grant])]).await;
    tell(&main, "a", "write /data/file new").await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "new");
}

#[tokio::test]
async fn nothing_leads_out_of_a_granted_directory() {
    let dir = tempfile::tempdir().unwrap();
    let granted = dir.path().join("granted");
    fs::create_dir(&granted).unwrap();
    fs::write(dir.path().join("secret"), "secret").unwrap();
    symlink("../secret", granted.join("link")).unwrap();
    symlink(dir.path().join("secret"), granted.join("absolute-link")).unwrap();
    symlink("..", granted.join("up")).unwrap();
    let grant = DirGrant::read_write(&granted, "/data".parse().unwrap());
    let main = start(vec![puppet_with("a", |a| a.grants.dirs = vec![grant])]).await;
    for path in [
        "/data/../secret",
        "/data/link",
        "/data/absolute-link",
        "/data/up/secret",
        "/secret",
        "/etc/hostname",
    ] {
        assert!(tell(&main, "a", &format!("read {path}")).await.is_err(), "{path}");
        assert!(tell(&main, "a", &format!("write {path} x")).await.is_err(), "{path}");
    }
    assert!(tell(&main, "a", "list /").await.is_err());
    assert_eq!(fs::read_to_string(dir.path().join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn an_extension_without_grants_finds_nothing() {
    let main = start(vec![puppet("a")]).await;
    assert_eq!(tell(&main, "a", "env").await.unwrap(), "[]");
    assert_eq!(tell(&main, "a", "args").await.unwrap(), "[\"a\"]");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for command in ["list /", "read /proc/self/environ", "write /tmp/x y"] {
        assert!(tell(&main, "a", command).await.is_err(), "{command}");
    }
    assert!(tell(&main, "a", &format!("connect {}", listener.local_addr().unwrap())).await.is_err());
}

#[tokio::test]
async fn only_the_granted_variables_and_addresses_are_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (granted, other) = (listener.local_addr().unwrap(), other.local_addr().unwrap());
    let puppet = puppet_with("a", |a| {
        a.grants.env.insert("NAME".to_owned(), "value".to_owned());
        a.grants.net = vec![granted.to_string().parse::<NetGrant>().unwrap()];
    });
    let main = start(vec![puppet]).await;
    assert_eq!(tell(&main, "a", "env").await.unwrap(), "[(\"NAME\", \"value\")]");
    assert_eq!(tell(&main, "a", &format!("connect {granted}")).await.unwrap(), "connected");
    assert!(tell(&main, "a", &format!("connect {other}")).await.is_err());
}
