//! Files that appear only after Main has started, such as a late mount.

use std::fs;

use super::support::{PUPPET, Running, until, with_own_component};

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
