//! The hook as Weir runs it, in its sandbox. `weir test` names the command.

use weir_sdk::testing::running::RunningMain;

#[test]
fn the_hook_counts_the_files_of_the_project() {
    // Under plain `cargo test` there is no command.
    let Some(main) = RunningMain::from_env() else { return };

    let run = main.command().args(["hooks", "run", "--config", "weir.toml", "{{name}}"]).output().unwrap();

    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains(" files\n"), "{said}");
}
