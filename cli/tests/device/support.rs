//! The device: its directory, its Main, and the artifacts that were made for it.

use std::{
    collections::HashMap,
    env, fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// Long enough for an interpreter in an emulator on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Keys that let a slow device take its time. They come after the table's own keys.
pub(super) const PATIENT: &str = r#"
limits.ready-timeout = "5m"
limits.request-timeout = "5m"
limits.stop-timeout = "5m"
"#;

/// Variables of the device that the tests are for.
pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// `weir` of this machine, which compiles.
pub(super) fn weir_here(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(dir).env_clear().stdin(Stdio::null());
    command
}

/// `weir` of the device.
pub(super) fn weir(dir: &Path) -> Command {
    let binary = variable("WEIR_DEVICE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_weir").to_owned());
    let runner = variable("WEIR_DEVICE_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = match words.next() {
        None => Command::new(binary),
        Some(runner) => {
            let mut command = Command::new(runner);
            command.args(words).arg(binary);
            command
        }
    };
    command.current_dir(dir).env_clear().env("PATH", env::var_os("PATH").unwrap_or_default());
    command.env("XDG_RUNTIME_DIR", dir).env("CACHE_DIRECTORY", dir.join("cache")).stdin(Stdio::null());
    command
}

/// Arguments of `weir compile` for this device.
pub(super) fn target() -> Vec<String> {
    let mut arguments = Vec::new();
    for (option, name) in
        [("--target", "WEIR_DEVICE_TARGET"), ("--address-space", "WEIR_DEVICE_ADDRESS_SPACE")]
    {
        arguments.extend(variable(name).into_iter().flat_map(|value| [option.to_owned(), value]));
    }
    arguments
}

/// Whether the device runs only artifacts.
pub(super) fn has_no_compiler() -> bool {
    !done(weir(Path::new("/")).args(["compile", "--help"])).is_good()
}

pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "there was no end to the wait for {what}");
    }
}

/// What each test's device trusts.
pub(super) struct Maker {
    dir: TempDir,
    /// The line of the configuration.
    pub(super) trusted: String,
}

pub(super) fn maker() -> &'static Maker {
    static MAKER: OnceLock<Maker> = OnceLock::new();
    MAKER.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let trusted = done(weir_here(dir.path()).args(["keygen", "release.key"])).good();
        Maker { dir, trusted }
    })
}

impl Maker {
    pub(super) fn key(&self) -> PathBuf {
        self.dir.path().join("release.key")
    }

    /// Compiles a component for the device and signs it.
    pub(super) fn compile(&self, component: &Path, arguments: &[String], to: &Path) {
        let mut command = weir_here(self.dir.path());
        command.arg("compile").arg(component).arg("--key").arg(self.key()).args(arguments);
        assert_eq!(done(command.arg("--output").arg(to)).good(), "");
    }

    /// The artifact of a guest for this device, made once.
    fn artifact(&self, guest: &str) -> PathBuf {
        static MADE: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let made = made.get_or_insert_default();
        made.entry(guest.to_owned())
            .or_insert_with(|| {
                let artifact = self.dir.path().join(format!("{guest}.cwasm"));
                self.compile(&test_guests::path(guest), &target(), &artifact);
                artifact
            })
            .clone()
    }
}

/// A device with the puppet's artifact, `puppet.cwasm`, and this configuration.
pub(super) fn configured(tables: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "puppet", "puppet.cwasm");
    configure(dir.path(), tables);
    dir
}

/// Puts a guest's artifact on a device.
pub(super) fn put(dir: &Path, guest: &str, name: &str) {
    fs::copy(maker().artifact(guest), dir.join(name)).unwrap();
}

pub(super) fn configure(dir: &Path, tables: &str) {
    let space = variable("WEIR_DEVICE_ADDRESS_SPACE").map(|space| format!("address-space = \"{space}\"\n"));
    let main = format!("[main]\n{}{}", maker().trusted, space.unwrap_or_default());
    fs::write(dir.join("weir.toml"), main + tables).unwrap();
}

/// An extension that runs the puppet and serves a contract of its own name.
pub(super) fn puppet(id: &str, keys: &str) -> String {
    format!(
        r#"
        [[extension]]
        id = "{id}"
        path = "puppet.cwasm"
        fulfills = ["{id}@1"]
        config.contract = "{id}@1"
        {PATIENT}
        {keys}
        "#
    )
}

#[derive(Debug)]
pub(super) struct Done {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Done {
    pub(super) fn is_good(&self) -> bool {
        (self.code, self.stderr.as_str()) == (0, "")
    }

    pub(super) fn good(self) -> String {
        assert!(self.is_good(), "{self:?}");
        self.stdout
    }
}

pub(super) fn done(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Main on the device.
#[derive(Debug)]
pub(super) struct Device {
    dir: TempDir,
    main: Child,
    log: BufReader<ChildStderr>,
}

impl Device {
    /// A device with these extensions, once they are ready.
    pub(super) fn with(tables: &str) -> Self {
        Self::start(configured(tables))
    }

    pub(super) fn start(dir: TempDir) -> Self {
        let mut main = weir(dir.path()).args(["run", "weir.toml"]).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(main.stderr.take().unwrap());
        let mut device = Self { dir, main, log };
        device.until_log(" extensions are ready");
        device
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The next line of Main's log with this text.
    pub(super) fn until_log(&mut self, text: &str) -> String {
        let mut seen = String::new();
        loop {
            let start = seen.len();
            assert!(self.log.read_line(&mut seen).unwrap() > 0, "no line says `{text}`:\n{seen}");
            if seen[start..].contains(text) {
                return seen[start..].to_owned();
            }
        }
    }

    pub(super) fn weir(&self, arguments: &[&str]) -> Done {
        done(weir(self.path()).args(arguments))
    }

    pub(super) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.weir(arguments).good()).unwrap()
    }

    /// Has an extension run a command, and returns what came of it.
    pub(super) fn ask(&self, id: &str, command: &str) -> Done {
        self.weir(&["call", "--timeout", "5m", "--raw", &format!("{id}@1"), "run", command])
    }

    /// Has an extension run a command that is to succeed.
    pub(super) fn tell(&self, id: &str, command: &str) -> String {
        self.ask(id, command).good()
    }

    pub(super) fn state(&self, id: &str) -> String {
        self.json(&["status", "--json", id])["state"].as_str().unwrap().to_owned()
    }

    /// Waits until an extension is in this state.
    pub(super) fn until_state(&self, id: &str, state: &str) {
        until(&format!("`{id}` {state}"), || self.state(id) == state);
    }

    /// The last failure of an extension.
    pub(super) fn failure(&self, id: &str) -> serde_json::Value {
        let status = self.json(&["status", "--json", id]);
        status["failures"].as_array().and_then(|failures| failures.last()).cloned().unwrap_or_default()
    }

    /// Kills Main, which can do nothing about it, and returns what it leaves.
    pub(super) fn kill(mut self) -> TempDir {
        self.main.kill().unwrap();
        self.main.wait().unwrap();
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    /// Ends Main as an operator does, and returns its exit code and the rest of its log.
    pub(super) fn shut_down(mut self) -> (Option<i32>, String) {
        assert_eq!(self.weir(&["shutdown"]).code, 0);
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        (self.main.wait().unwrap().code(), log)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // After a complete test Main may have ended already.
        let _ended = self.main.kill();
        let _ended = self.main.wait();
    }
}
