//! Secrets and other values that an extension reads through `wasi:config/store`, and their change at a reload.

use std::{fs, path::Path};

use weir_host::{
    ExtensionConfig,
    config::{QueueConfig, SecretSource},
    control::ExtensionState,
};

use super::{
    reload::write,
    support::{config, puppet_with, reached, set, start, tell},
};

/// Reads the secret `token` from a file, and listens for changes if told so.
fn keeper(file: &Path, start: &str) -> ExtensionConfig {
    puppet_with("a", |a| {
        a.secrets.insert("token".to_owned(), SecretSource::File(file.to_owned()));
        a.subscribes = vec!["config.*".parse().unwrap()];
        set(a, "start", start);
    })
}

#[tokio::test]
async fn a_changed_secret_reaches_an_extension_that_listens_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    write(&file, b"first\n");
    let mut a = keeper(&file, "subscribe config.changed");
    set(&mut a, "color", "red");
    let main = start(vec![a.clone()]).await;
    assert_eq!(tell(&main, "a", "config token").await.unwrap(), "first");

    let report = main.control().reload_with(config(vec![a.clone()])).await.unwrap();
    assert!(report.changed.is_empty(), "{report:?}");

    write(&file, b"second\n");
    set(&mut a, "color", "blue");
    let report = main.control().reload_with(config(vec![a.clone()])).await.unwrap();
    assert_eq!((report.changed.len(), report.failed.len()), (1, 0));
    assert_eq!(tell(&main, "a", "config token").await.unwrap(), "second");
    assert_eq!(tell(&main, "a", "config color").await.unwrap(), "blue");
    // Requests and events have lanes of their own.
    let mut heard = String::new();
    while heard.is_empty() {
        heard = tell(&main, "a", "heard").await.unwrap();
    }
    assert_eq!(heard, r#"event:  0 0 ["color","token"]"#);
    assert_eq!(tell(&main, "a", "sender").await.unwrap(), "main");
    let status = main.control().status("a").unwrap();
    assert_eq!((status.restarts, status.state), (0, ExtensionState::Ready));
    // A change that it cannot hear of by this event replaces it as before.
    a.puts.push("q".parse().unwrap());
    let mut with_queue = config(vec![a]);
    with_queue.queues.insert("q".parse().unwrap(), QueueConfig::default());
    main.control().reload_with(with_queue).await.unwrap();
    assert_eq!(main.control().status("a").unwrap().restarts, 1);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_extension_that_does_not_listen_starts_anew_with_a_changed_secret() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    write(&file, b"first");
    let a = keeper(&file, "ready");
    let main = start(vec![a.clone()]).await;
    write(&file, b"second");
    let report = main.control().reload_with(config(vec![a])).await.unwrap();
    assert_eq!(report.changed.len(), 1);
    assert_eq!(tell(&main, "a", "config token").await.unwrap(), "second");
    assert_eq!(main.control().status("a").unwrap().restarts, 1);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn instances_that_share_an_inbox_start_anew() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    write(&file, b"first");
    let mut a = keeper(&file, "subscribe config.changed");
    a.instances = 2;
    let main = start(vec![a.clone()]).await;
    write(&file, b"second");
    let report = main.control().reload_with(config(vec![a])).await.unwrap();
    assert_eq!(report.changed.len(), 2, "{report:?}");
    for _ in 0..4 {
        assert_eq!(tell(&main, "a", "config token").await.unwrap(), "second");
    }
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_keeps_the_version_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    write(&file, b"first");
    let a = keeper(&file, "subscribe config.changed");
    let main = start(vec![a.clone()]).await;
    fs::write(&file, b"s3cret\xff").unwrap();
    let report = main.control().reload_with(config(vec![a])).await.unwrap();
    let reason = report.failed[0].reason.replace(dir.path().to_str().unwrap(), "DIR");
    let expected = "cannot start: cannot read `config.token` from { from-file = \"DIR/token\" }: it is not UTF-8; \
                    the version before serves on";
    assert_eq!(reason, expected);
    assert_eq!(tell(&main, "a", "config token").await.unwrap(), "first");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_extension_without_its_secret_does_not_start_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    let main = start(vec![keeper(&file, "ready")]).await;
    let reason = reached(&main, "a", ExtensionState::Failed).await.unwrap();
    assert!(reason.contains("token\" }: No such file or directory"), "{reason}");
    write(&file, b"first");
    main.control().start("a").await.unwrap();
    assert_eq!(tell(&main, "a", "config token").await.unwrap(), "first");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_secret_shows_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    write(&file, b"s3cret");
    let a = keeper(&file, "subscribe config.changed");
    let main = start(vec![a.clone()]).await;
    assert_eq!(tell(&main, "a", "config token").await.unwrap(), "s3cret");
    let shown = [
        format!("{a:?}"),
        format!("{main:?}"),
        format!("{:?}", main.control().status("a")),
        format!("{:?}", main.control().history("a")),
        format!("{:?}", main.control().limits_now(None, None)),
    ];
    assert!(shown.iter().all(|text| !text.contains("s3cret")), "{shown:?}");
    main.shutdown().await.unwrap();
}
