//! The component in a real Main. `weir test` starts it, and says where the command is.

use std::{env, process::Command};

/// What `weir call` prints, and whether the call succeeded.
fn greet(arguments: &str) -> Option<(bool, String)> {
    // Under plain `cargo test` there is no Main.
    let weir = env::var_os("WEIR")?;
    let call = Command::new(weir).args(["call", "{{name}}@1", "greet", arguments]).output().unwrap();
    let printed = if call.status.success() { call.stdout } else { call.stderr };
    Some((call.status.success(), String::from_utf8(printed).unwrap()))
}

#[test]
fn the_running_component_greets_by_name() {
    let Some(answer) = greet(r#"{"name":"Grace"}"#) else { return };
    assert_eq!(answer, (true, "\"hello, Grace\"".to_owned()));
}

#[test]
fn a_greeting_needs_a_name() {
    let Some(answer) = greet(r#"{"name":""}"#) else { return };
    assert_eq!(answer, (false, "error: nobody: nobody\n".to_owned()));
}
