//! Reloads, and the death of Main.

use std::fs;

use super::support::{Device, configure, maker, puppet, put};

#[test]
fn a_new_artifact_replaces_the_old_one_and_a_bad_one_does_not() {
    for mode in ["stop-first", "overlap"] {
        let device = Device::with(&puppet("a", &format!("reload = \"{mode}\"")));
        assert_eq!(device.tell("a", "config word"), "none");
        fs::write(device.path().join("puppet.cwasm"), "neither a component nor an artifact").unwrap();
        let refused = device.weir(&["reload", "a"]);
        assert_eq!(refused.code, 8, "{mode}: {refused:?}");
        assert_eq!(device.tell("a", "echo the old one"), "the old one", "{mode}");

        put(device.path(), "puppet", "puppet.cwasm");
        assert_eq!(device.weir(&["reload", "a"]).good(), "`a` is ready\n");
        let tables = puppet("a", &format!("reload = \"{mode}\"\nconfig.word = \"new\"")) + &puppet("b", "");
        configure(device.path(), &tables);
        let reloaded = device.weir(&["reload"]);
        assert_eq!(reloaded.code, 0, "{mode}: {reloaded:?}");
        assert_eq!(device.tell("a", "config word"), "new", "{mode}");
        assert_eq!(device.tell("b", "own-name"), "b", "{mode}");
    }
}

#[test]
fn after_a_kill_main_starts_again_from_what_is_there_with_nothing_in_the_way() {
    let mut dir = None;
    for _ in 0..3 {
        let device = match dir.take() {
            None => Device::with(&(puppet("a", "wants = [\"b@1\"]") + &puppet("b", ""))),
            Some(dir) => Device::start(dir),
        };
        assert_eq!(device.tell("a", "call b@1 run echo there"), "there");
        dir = Some(device.kill());
    }
    let device = Device::start(dir.unwrap());
    let (code, log) = device.shut_down();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn extensions_stop_and_start_by_order_of_the_operator() {
    let device = Device::with(&puppet("a", ""));
    device.weir(&["stop", "a"]).good();
    assert_eq!(device.ask("a", "echo").code, 8);
    assert_eq!(device.weir(&["start", "a"]).good(), "`a` is ready\n");
    assert_eq!(device.tell("a", "echo there"), "there");
    assert!(maker().key().is_file(), "the key stays where artifacts are made");
}
