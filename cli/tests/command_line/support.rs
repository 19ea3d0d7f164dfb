//! Each test has its own Main and directory.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{fs::DirBuilderExt, net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The puppet, which serves `puppet@1`, an extension that does not start by itself, and one that cannot start.
pub(super) const PUPPETS: &str = r#"
[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
publishes = ["told.>"]
restart = { policy = "never" }

[[extension]]
id = "spare"
path = "puppet.wasm"
fulfills = ["spare@1"]
config.contract = "spare@1"
autostart = false

[[extension]]
id = "absent"
path = "absent.wasm"
autostart = false
restart = { policy = "never" }
"#;

/// The puppet, with a long request timeout.
pub(super) const PUPPET: &str = r#"
[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
limits.request-timeout = "1h"
"#;

/// An extension that calls the puppet when it starts or ends, and waits: the puppet forgets the request.
pub(super) fn slow(when: &str) -> String {
    format!(
        r#"
        [[extension]]
        id = "slow"
        path = "puppet.wasm"
        fulfills = ["slow@1"]
        requires = ["puppet@1"]
        config = {{ contract = "slow@1", {when} = "call puppet@1 run forget" }}
        limits.ready-timeout = "1h"
        limits.stop-timeout = "1h"
        "#
    )
}

/// Lets the slow extension go on. Its request has one of the first numbers.
pub(super) fn let_go(main: &Running) {
    let answer = |id| main.weir(&["call", "puppet@1", "run", "--raw", &format!("respond {id}")]);
    while main.json(&["status", "--json", "puppet"])["received"] == 0 {}
    assert!((1..=4).any(|id| answer(id).stdout == "()"));
}

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `look` returns a value.
pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
    }
}

pub(super) fn assert_golden(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../golden", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// A process that is killed on drop, also if it is stopped.
#[derive(Debug)]
pub(super) struct Killed(pub(super) Child);

impl Killed {
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // After a complete test it has ended already.
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[derive(Debug)]
pub(super) struct Done {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Done {
    pub(super) fn good(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }
}

pub(super) fn weir(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(dir).env_clear().envs(places(dir)).stdin(Stdio::null());
    command
}

/// Variables that keep Main's files in the directory of the test. What is compiled is kept for all tests, if the test
/// has no `own_cache`.
pub(super) fn places(dir: &Path) -> [(&'static str, PathBuf); 2] {
    let own = dir.join("cache");
    let cache = if own.exists() { own } else { concat!(env!("CARGO_TARGET_TMPDIR"), "/cache").into() };
    [("XDG_RUNTIME_DIR", dir.to_owned()), ("CACHE_DIRECTORY", cache)]
}

/// Makes a cache that only the Mains in this directory have.
pub(super) fn own_cache(dir: &Path) -> PathBuf {
    let cache = dir.join("cache");
    fs::DirBuilder::new().mode(0o700).create(&cache).unwrap();
    cache
}

pub(super) fn done(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(super) fn configured(extensions: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let plugins = test_guests::path("puppet");
    let plugins = plugins.parent().unwrap().display();
    fs::write(dir.path().join("weir.toml"), format!("[main]\nplugin-dir = \"{plugins}\"\n{extensions}"))
        .unwrap();
    dir
}

/// A configuration in a new directory with a copy of the component, `puppet.wasm`, and a cache for it.
pub(super) fn with_own_component(extensions: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    own_cache(dir.path());
    fs::copy(test_guests::path("puppet"), dir.path().join("puppet.wasm")).unwrap();
    fs::write(dir.path().join("weir.toml"), extensions).unwrap();
    dir
}

#[derive(Debug)]
pub(super) struct Running {
    // Before the directory: Main ends first.
    child: Killed,
    pub(super) dir: TempDir,
    log: BufReader<ChildStderr>,
}

impl Running {
    /// Starts Main with these extensions and waits until they are up.
    pub(super) fn with(extensions: &str) -> Self {
        Self::start(configured(extensions))
    }

    /// Starts Main in a configured directory and waits until its extensions are up.
    pub(super) fn start(dir: TempDir) -> Self {
        let mut running = Self::begin(dir);
        running.until("extensions are ready");
        running
    }

    pub(super) fn begin(dir: TempDir) -> Self {
        let mut command = weir(dir.path());
        command.args(["run", "weir.toml"]);
        Self::spawn(dir, command)
    }

    /// Starts Main with this command, without waiting.
    pub(super) fn spawn(dir: TempDir, mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child: Killed(child), dir, log }
    }

    /// The next line of the log that contains `text`.
    pub(super) fn until(&mut self, text: &str) -> String {
        let mut seen = String::new();
        loop {
            let start = seen.len();
            assert!(self.log.read_line(&mut seen).unwrap() > 0, "no line says `{text}`:\n{seen}");
            if seen[start..].contains(text) {
                return seen[start..].to_owned();
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path().join("weir/weir.sock")
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = weir(self.path());
        command.args(args);
        command
    }

    pub(super) fn weir(&self, args: &[&str]) -> Done {
        done(&mut self.command(args))
    }

    pub(super) fn weir_with_stdin(&self, args: &[&str], stdin: &[u8]) -> Done {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        let output = child.wait_with_output().unwrap();
        Done {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(super) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.weir(args).good()).unwrap()
    }

    /// Sends a raw request. Returns the head and the body of the answer.
    pub(super) fn http(&self, request: &str) -> (String, String) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Waits for Main's end. Returns the rest of its log, too.
    pub(super) fn wait(&mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        (self.child.0.wait().unwrap(), log)
    }

    /// Waits for Main's end with a limit, without reading its log.
    pub(super) fn wait_unread(&mut self) -> Option<ExitStatus> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return Some(status);
            }
        }
        None
    }

    pub(super) fn into_dir(mut self) -> TempDir {
        self.wait();
        self.dir
    }
}
