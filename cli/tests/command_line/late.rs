//! Files that appear only after Main has started, such as a late mount, and stores that are repaired then.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use super::support::{PUPPET, Running, configured, places, until, weir, with_own_component};

#[test]
fn a_directory_or_component_that_comes_late_is_waited_for_and_no_failure() {
    let late = "restart = { backoff = '10ms', max-backoff = '100ms', failures = 1 }\n";
    let config = format!(
        "{PUPPET}{late}grants.dirs = [{{ host = 'disk', guest = '/disk', mode = 'rw' }}]\n\
         [[extension]]\nid = 'other'\npath = 'other/puppet.wasm'\nconfig.contract = 'other@1'\n\
         fulfills = ['other@1']\n{late}"
    );
    let mut main = Running::start(with_own_component(&config));
    for id in ["puppet", "other"] {
        main.until(&format!("[{id}] failed: cannot start: "));
        let status = main.json(&["status", "--json", id]);
        assert_ne!(status["state"], "quarantined", "{status}");
    }
    for _ in 0..5 {
        main.until("[puppet] failed: cannot start: ");
    }

    let dir = main.path();
    let state = |id| main.json(&["status", "--json", id])["state"].clone();
    let until_ready = |id| until("it is ready", || (state(id) == "ready").then_some(()));
    fs::create_dir(dir.join("disk")).unwrap();
    until_ready("puppet");
    fs::create_dir(dir.join("mounted")).unwrap();
    fs::copy(test_guests::path("puppet"), dir.join("mounted/puppet.wasm")).unwrap();
    fs::rename(dir.join("mounted"), dir.join("other")).unwrap();
    until_ready("other");
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "own-name"]).good(), "puppet");
    assert_eq!(main.weir(&["call", "other@1", "run", "--raw", "own-name"]).good(), "other");
}

#[test]
fn a_store_that_cannot_be_opened_is_waited_for_and_no_failure_and_its_user_comes_up_once_it_can() {
    let late = "restart = { backoff = '10ms', max-backoff = '100ms', failures = 1 }\n";
    let config = format!(
        "{PUPPET}{late}grants.stores = ['damaged']\n\
         [[extension]]\nid = 'other'\npath = 'puppet.wasm'\nconfig.contract = 'other@1'\n\
         fulfills = ['other@1']\n{late}grants.stores = ['blocked', 'empty']\n\
         [main]\ndata-dir = 'data'\n[store.damaged]\n[store.blocked]\n[store.empty]\n"
    );
    let dir = with_own_component(&config);
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("damaged.redb"), "this is not a store".repeat(1000)).unwrap();
    fs::create_dir(data.join("blocked.redb")).unwrap();
    fs::write(data.join("empty.redb"), "").unwrap();
    let mut main = Running::start(dir);
    for _ in 0..5 {
        main.until("[puppet] failed: cannot start: store `damaged`: ");
    }
    let status = |id: &str| main.json(&["status", "--json", id]);
    let until_said = |id, text: &str| {
        until(text, || {
            let status = status(id);
            assert_ne!(status["state"], "quarantined", "{status}");
            status.to_string().contains(text).then_some(())
        });
    };
    until_said("puppet", "is damaged");
    until_said("other", "Is a directory");
    // One after the other.
    fs::remove_dir(data.join("blocked.redb")).unwrap();
    until_said("other", "it has no bytes");
    let until_ready = |id| until("it is ready", || (status(id)["state"] == "ready").then_some(()));
    for (file, id) in [("empty.redb", "other"), ("damaged.redb", "puppet")] {
        fs::remove_file(data.join(file)).unwrap();
        until_ready(id);
    }
}

/// A Main that may not write where modes say so, also if root runs the tests.
fn bound_by_modes(dir: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        let mut command = weir(dir);
        command.args(["run", "weir.toml"]);
        return command;
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-dac_override", env!("CARGO_BIN_EXE_weir"), "run", "weir.toml"]);
    command.current_dir(dir).env_clear().envs(places(dir)).stdin(Stdio::null());
    command
}

#[test]
fn a_store_that_is_read_only_is_waited_for_and_its_user_comes_up_with_all_in_it_once_it_is_writable() {
    let config = "data-dir = 'data'\n[store.kept]\n\
         [[extension]]\nid = 'storage'\npath = 'storage.wasm'\nfulfills = ['local.storage@1']\n\
         grants.stores = ['kept']\nconfig.store = 'kept'\n\
         restart = { backoff = '10ms', max-backoff = '100ms', failures = 1 }\n";
    let main = Running::start(configured(config));
    main.weir(&["call", "local.storage@1", "set", "{\"key\":\"a\",\"value\":7}"]).good();
    main.weir(&["shutdown"]).good();

    let dir = main.into_dir();
    let file = dir.path().join("data/kept.redb");
    let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o400);
    let command = bound_by_modes(dir.path());
    let mut main = Running::spawn(dir, command);
    for _ in 0..5 {
        let failed = main.until("[storage] failed: cannot start: store `kept`: ");
        assert!(failed.contains("cannot be opened: Permission denied"), "{failed}");
    }
    let status = || {
        let status = main.json(&["status", "--json", "storage"]);
        assert_ne!(status["state"], "quarantined", "{status}");
        status
    };

    // Nobody restarts it.
    set_mode(0o600);
    until("it is ready", || (status()["state"] == "ready").then_some(()));
    let found = main.weir(&["call", "local.storage@1", "get", "{\"key\":\"a\"}"]).good();
    assert_eq!(found.trim(), "{\"value\":7}");
}
