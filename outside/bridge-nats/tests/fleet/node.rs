//! One machine of a fleet: a Main and its bridge, each of which can die and live again.

use std::{
    env,
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    client::Client,
    process::{Process, path, until},
};

/// The peer of the tests, which is never killed.
pub(super) const APP: &str = "app:test";

/// What a node is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) name: String,
    /// Tables of Main's file, beside those of the socket and the peers.
    pub(super) main: String,
    /// Keys of the test's own peer there.
    pub(super) app: String,
    /// Keys of the bridge's peer there.
    pub(super) peer: String,
    /// Keys of the bridge's `[main]`.
    pub(super) bridge_main: String,
    /// Keys of the bridge's `[nats]`.
    pub(super) nats: String,
    /// `[limits]`, `[export]` and `[import]` of the bridge's file.
    pub(super) bridge: String,
}

/// A machine.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    directory: PathBuf,
    /// None while it is dead.
    main: Option<Process>,
    bridge: Option<Process>,
}

impl Node {
    /// Writes both files, and starts nothing.
    pub(super) fn new(directory: &Path, plan: &Plan, server: SocketAddr) -> Self {
        let name = plan.name.clone();
        let directory = directory.join(&name);
        fs::create_dir(&directory).unwrap();
        let mut main = String::new();
        writeln!(
            main,
            "[main]\nplugin-dir = \"{}\"\ncontrol-socket = \"weir.sock\"\npeer-socket = \"peers.sock\"\n{}\n\
             [peer.\"{APP}\"]\nuid = {uid}\n{}\n{LIMITS}\n[peer.\"node:{name}\"]\nuid = {uid}\n{}\n{LIMITS}",
            path("WEIR_PLUGINS").display(),
            plan.main,
            plan.app,
            plan.peer,
            uid = own_uid(),
        )
        .unwrap();
        fs::write(directory.join("weir.toml"), main).unwrap();
        let bridge = format!(
            "node = \"{name}\"\nfleet = \"test\"\n\n[main]\nsocket = \"peers.sock\"\n{}\n\n[nats]\n\
             servers = [\"nats://{server}\"]\n{}\n\n{}\n",
            plan.bridge_main, plan.nats, plan.bridge
        );
        fs::write(directory.join("bridge.toml"), bridge).unwrap();
        Self { name, directory, main: None, bridge: None }
    }

    /// Starts Main and the bridge, and waits for neither.
    pub(super) fn start(&mut self) {
        self.start_main();
        self.start_bridge();
    }

    pub(super) fn start_main(&mut self) {
        let mut command = Command::new(path("WEIR_COMMAND"));
        command.args(["run", "weir.toml"]).current_dir(&self.directory).env("CACHE_DIRECTORY", cache());
        self.main = Some(Process::start(&mut command, &self.directory.join("main.log")));
    }

    pub(super) fn start_bridge(&mut self) {
        let mut command = Command::new(bridge_command());
        command.args(["run", "bridge.toml"]).current_dir(&self.directory);
        self.bridge = Some(Process::start(&mut command, &self.directory.join("bridge.log")));
    }

    pub(super) fn kill_main(&mut self) {
        self.main.take().unwrap().kill();
    }

    pub(super) fn kill_bridge(&mut self) {
        self.bridge.take().unwrap().kill();
    }

    /// Ends the bridge as systemd does. Gives its exit code.
    pub(super) async fn end_bridge(&mut self) -> Option<i32> {
        self.bridge.take().unwrap().terminate().await
    }

    pub(super) fn assert_alive(&mut self) {
        for process in self.main.iter_mut().chain(&mut self.bridge) {
            process.assert_alive();
        }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join("peers.sock")
    }

    /// The process of the bridge.
    pub(super) fn bridge_id(&self) -> u32 {
        self.bridge.as_ref().unwrap().id()
    }

    /// What the bridge has logged.
    pub(super) fn bridge_said(&self) -> String {
        fs::read_to_string(self.directory.join("bridge.log")).unwrap()
    }

    /// The test's own session.
    pub(super) async fn client(&self) -> Client {
        Client::connect(&self.socket()).await
    }

    /// Waits for a line of the bridge's log.
    pub(super) async fn until_bridge_says(&self, text: &str) {
        let what = format!("the bridge of `{}` says `{text}`", self.name);
        until(&what, async || self.bridge_said().contains(text).then_some(())).await;
    }
}

/// A session with room for all that a test does at once.
const LIMITS: &str = "limits = { in-flight = 4096, message-rate = 1_000_000, inbox = { messages = 10_000, bytes = \"16 MiB\" } }";

pub(super) fn bridge_command() -> PathBuf {
    match env::var_os("WEIR_NATS_COMMAND") {
        Some(_) => path("WEIR_NATS_COMMAND"),
        None => env!("CARGO_BIN_EXE_weir-nats").into(),
    }
}

/// What is compiled is kept for all tests.
fn cache() -> PathBuf {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet-cache");
    fs::create_dir_all(&cache).unwrap();
    cache
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}
