//! The progress line on a terminal.

use std::{
    fs::{self, File},
    io::Read,
    process::{Command, Stdio},
};

use nix::pty::{Winsize, openpty};
use rustix::process::{Signal, kill_process};

use super::{
    compiling::stop_compiling,
    support::{Killed, PUPPET, weir, with_own_component},
};

const CLEAR: &str = "\r\x1b[2K";

/// A command with a terminal as its stderr.
struct OnTerminal {
    child: Killed,
    terminal: File,
    seen: String,
}

impl OnTerminal {
    fn start(mut command: Command) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(&size, None).unwrap();
        let child = Killed(command.env("TERM", "xterm").stderr(terminal.slave).spawn().unwrap());
        // Closes this process's copy of the command's end.
        drop(command);
        Self { child, terminal: terminal.master.into(), seen: String::new() }
    }

    /// False at the end: everything is read, and the command's end is closed.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // Reading from a terminal without a writer fails.
        let read = self.terminal.read(&mut bytes).unwrap_or(0);
        self.seen.push_str(str::from_utf8(&bytes[..read]).unwrap());
        read > 0
    }

    fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.read(), "never `{text}`: {:?}", self.seen);
        }
    }

    fn end(mut self) -> String {
        while self.read() {}
        assert!(self.child.0.wait().unwrap().success(), "{:?}", self.seen);
        self.seen
    }
}

#[test]
fn a_command_that_takes_long_says_what_it_does_and_for_how_long_already() {
    let dir = with_own_component(PUPPET);
    let command = |args: &[&str]| {
        let mut command = weir(dir.path());
        command.args(args).stdout(Stdio::null());
        command
    };
    assert!(command(&["keygen", "key.pem"]).status().unwrap().success());
    fs::create_dir(dir.path().join("hooks.d")).unwrap();
    for (args, what) in [
        (["check", "weir.toml"].as_slice(), "checking `puppet`"),
        (&["compile", "puppet.wasm", "--key", "key.pem"], "compiling `puppet.wasm`"),
        (&["hooks", "run", "hooks.d"], "running the hooks of `hooks.d`"),
    ] {
        let seen = OnTerminal::start(command(args)).end();
        let first = seen.trim_start_matches(CLEAR);
        assert!(first.starts_with(&format!("  0s {what}")), "{seen:?}");
        assert!(seen.ends_with(CLEAR) && !seen.contains('\n'), "{seen:?}");
    }
}

#[test]
fn main_says_below_its_log_how_far_the_start_is() {
    let dir = with_own_component(&format!("{PUPPET}limits.compile-timeout = '1h'\n"));
    let mut command = weir(dir.path());
    command.args(["run", "weir.toml"]);
    let mut main = OnTerminal::start(command);
    main.until("[puppet] is being compiled");
    let compiler = stop_compiling(main.child.0.id(), 1);
    main.until("0 of 1 extensions are ready; compiling `puppet`");
    main.until("  3s 0 of 1 extensions are ready; compiling `puppet`");
    for process in compiler {
        kill_process(process, Signal::CONT).unwrap();
    }
    main.until("1 of 1 extensions are ready\r\n");
    main.child.signal(Signal::TERM);
    let seen = main.end();
    // Every log line has its own line, without rests of the progress line.
    for line in seen.split_terminator("\r\n") {
        let (_, shown) = line.rsplit_once(CLEAR).unwrap_or(("", line));
        assert!(shown.contains("  INFO ") && !shown.contains('\x1b'), "{line:?} of {seen:?}");
    }
    assert!(seen.ends_with(" INFO stopped\r\n"), "{seen:?}");
}
