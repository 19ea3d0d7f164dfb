//! The app beside a real Main, which `weir test` starts.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

struct App(Child);

impl Drop for App {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

#[test]
fn the_app_shows_a_text_that_is_published() {
    // Under plain `cargo test` there is no Main.
    let Ok(weir) = env::var("WEIR") else { return };
    let app = Command::new(env!("CARGO_BIN_EXE_{{name}}")).stdout(Stdio::piped()).spawn();
    let mut app = App(app.unwrap());

    let begun = Instant::now();
    loop {
        let publish = Command::new(&weir).args(["publish", "{{name}}.show", "hello"]).output().unwrap();
        if String::from_utf8_lossy(&publish.stdout).contains("delivered to 1 ") {
            break;
        }
        // It has not subscribed yet.
        assert!(begun.elapsed() < Duration::from_secs(10), "{publish:?}");
        thread::sleep(Duration::from_millis(50));
    }

    let mut line = String::new();
    BufReader::new(app.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "main says hello\n");
}
