//! The extension in a real Main. `weir test` starts it.

use {{crate}}::{GREET, Name};
use weir_sdk::testing::running::RunningMain;

#[test]
fn the_running_extension_greets_by_name() {
    // Under plain `cargo test` there is no Main.
    let Some(main) = RunningMain::from_env() else { return };

    let greeting = main.call(GREET, &Name { name: "Grace".into() }).unwrap();

    assert_eq!(greeting.text, "hello, Grace");
}

#[test]
fn a_greeting_needs_a_name() {
    let Some(main) = RunningMain::from_env() else { return };

    let refused = main.call(GREET, &Name { name: String::new() }).unwrap_err();

    assert!(refused.to_string().contains("there is nobody to greet"), "{refused}");
}
