//! The sidecar beside a real Main, which `weir test` starts.

use std::{
    env,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

struct Sidecar(Child);

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

#[test]
fn the_sidecar_answers_through_main() {
    // Under plain `cargo test` there is no Main.
    let Ok(weir) = env::var("WEIR") else { return };
    let _sidecar = Sidecar(Command::new(env!("CARGO_BIN_EXE_{{name}}")).spawn().unwrap());

    let begun = Instant::now();
    loop {
        let call = Command::new(&weir).args(["call", "{{name}}@1", "load"]).output().unwrap();
        let answer = String::from_utf8_lossy(&call.stdout);
        if call.status.success() {
            assert!(answer.starts_with(r#"{"one":"#), "{answer}");
            return;
        }
        // It has not connected yet.
        assert!(begun.elapsed() < Duration::from_secs(10), "{call:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
