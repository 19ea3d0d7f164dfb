//! `weir lock`, and `weir run --locked`.

use std::fs;

use super::support::{Running, done, weir, with_own_component};

const PUPPET: &str = "[[extension]]\nid = \"puppet\"\npath = \"puppet.wasm\"\nfulfills = [\"puppet@1\"]\n";

#[test]
fn a_locked_main_runs_what_was_locked_and_fails_by_name_without_a_lock() {
    let dir = with_own_component(PUPPET);
    let locked = ["run", "--locked", "weir.toml"];
    let missing = done(weir(dir.path()).args(locked));
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("the lock `weir.lock` is missing: make it with `weir lock`"),
        "{}",
        missing.stderr
    );
    let made = done(weir(dir.path()).args(["lock", "weir.toml"])).good();
    assert_eq!(made, "`weir.lock` lists 1 extensions and 0 hooks\n");
    let text = fs::read_to_string(dir.path().join("weir.lock")).unwrap();
    assert!(text.contains("id = \"puppet\"\nsha256 = \""), "{text}");
    let mut command = weir(dir.path());
    command.args(locked);
    let mut main = Running::spawn(dir, command);
    main.until("1 of 1 extensions are ready");
    // A custom section named `v`.
    let component = main.path().join("puppet.wasm");
    let mut other = fs::read(&component).unwrap();
    other.extend([0, 3, 1, b'v', 2]);
    fs::write(&component, other).unwrap();
    let plan = main.weir(&["plan"]).stdout;
    assert!(plan.contains("which `weir.lock` does not list for it"), "{plan}");
    let refused = main.weir(&["reload", "puppet"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("which `weir.lock` does not list for it"), "{}", refused.stderr);
    assert_eq!(main.weir(&["lock", "weir.toml"]).code, 0);
    assert_eq!(main.weir(&["reload"]).code, 0);
    assert_eq!(main.weir(&["reload", "puppet"]).code, 0);
}
