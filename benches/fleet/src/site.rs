//! The processes of a fleet, in a directory of their own. They end with it.

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::getuid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;
use weir_peer::{Options, Peer};

use crate::Measure;

/// The first Main compiles for all.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) const APP: &str = "app:bench";

/// What one node has beside the others.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Extensions.
    pub(crate) main: &'static str,
    /// Keys of this program's peer at its Main.
    pub(crate) app: &'static str,
    /// Keys of the bridge's peer.
    pub(crate) peer: &'static str,
    /// `[export]` and `[import]`.
    pub(crate) bridge: &'static str,
}

/// A directory and the server.
#[derive(Debug)]
pub(crate) struct Site<'m> {
    measure: &'m Measure,
    directory: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) server: Process,
}

/// A Main and its bridge.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) main: Process,
    pub(crate) bridge: Process,
    directory: PathBuf,
    weir: PathBuf,
}

/// A process that is killed with this.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl<'m> Site<'m> {
    pub(crate) async fn new(measure: &'m Measure) -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a directory")?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = directory.path().join("nats.conf");
        fs::write(&config, format!("listen: \"{address}\"\n"))?;
        let server =
            Process::start(Command::new(&measure.server).arg("-c").arg(config), directory.path(), "nats")?;
        let begun = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            wait(begun, "the server").await?;
        }
        Ok(Self { measure, directory, address, server })
    }

    /// A process that answers as the baseline.
    pub(crate) fn echo(&self) -> Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        Process::start(command.arg("echo").arg(self.address.to_string()), self.directory.path(), "echo")
    }

    /// Starts a Main and its bridge, and waits until the Main answers.
    pub(crate) async fn node(&self, plan: &Plan) -> Result<Node> {
        let Plan { name, main, app, peer, bridge } = plan;
        let directory = self.directory.path().join(name);
        fs::create_dir(&directory)?;
        let (uid, plugins) = (getuid().as_raw(), self.measure.plugins.display());
        let limits = "limits = { in-flight = 1024, message-rate = 1_000_000, inbox = { messages = 10_000, bytes = \"16 MiB\" } }";
        let weir = format!(
            "[main]\nplugin-dir = \"{plugins}\"\ncontrol-socket = \"weir.sock\"\npeer-socket = \"peers.sock\"\n\
             [peer.\"{APP}\"]\nuid = {uid}\n{app}\n{limits}\n[peer.\"node:{name}\"]\nuid = {uid}\n{peer}\n{limits}\n{main}"
        );
        fs::write(directory.join("weir.toml"), weir)?;
        let bridge = format!(
            "node = \"{name}\"\nfleet = \"bench\"\n[main]\nsocket = \"peers.sock\"\n\
             [nats]\nservers = [\"nats://{}\"]\n{bridge}",
            self.address
        );
        fs::write(directory.join("bridge.toml"), bridge)?;
        let mut command = Command::new(&self.measure.weir);
        command.args(["run", "weir.toml"]).env("CACHE_DIRECTORY", self.directory.path().join("cache"));
        let main = Process::start(&mut command, &directory, "main")?;
        let begun = Instant::now();
        while !fs::read_to_string(directory.join("main.log"))?.contains(" extensions are ready") {
            wait(begun, "Main").await?;
        }
        let bridge = Process::start(
            Command::new(&self.measure.bridge).args(["run", "bridge.toml"]),
            &directory,
            "bridge",
        )?;
        Ok(Node { main, bridge, directory, weir: self.measure.weir.clone() })
    }
}

impl Node {
    /// A session of this program.
    pub(crate) async fn peer(&self) -> Result<Peer> {
        let options = Options::new(APP.parse()?).events(10_000);
        Ok(Peer::connect(self.directory.join("peers.sock"), options).await?)
    }

    /// Processor time of an extension, by Main's account.
    pub(crate) fn guest(&self, id: &str) -> Result<Duration> {
        let mut command = Command::new(&self.weir);
        let status = command.args(["status", "--json", id, "--socket"]).arg(self.directory.join("weir.sock"));
        let output = status.output()?;
        let status: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("`weir status` says {}", String::from_utf8_lossy(&output.stderr)))?;
        let seconds = status.get("cpu-seconds").and_then(Value::as_f64);
        Ok(Duration::from_secs_f64(seconds.context("`weir status` says no `cpu-seconds`")?))
    }
}

impl Process {
    fn start(command: &mut Command, directory: &Path, name: &str) -> Result<Self> {
        let log = File::create(directory.join(format!("{name}.log")))?;
        command.current_dir(directory).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // A device's setting, as in packaging/systemd/weir.service.
        command.env("MALLOC_ARENA_MAX", "1");
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self(child))
    }

    /// Processor time of the threads that it has now, by the kernel's account.
    pub(crate) fn processor(&self) -> Result<Duration> {
        let of_threads = self.threads("schedstat")?;
        let times =
            of_threads.iter().map(|text| Ok(text.split(' ').next().unwrap_or_default().parse::<u64>()?));
        Ok(Duration::from_nanos(times.sum::<Result<_>>()?))
    }

    /// How often its threads have waited and woken.
    pub(crate) fn wakeups(&self) -> Result<f64> {
        self.threads("status")?.iter().map(|status| value(status, "voluntary_ctxt_switches:")).sum()
    }

    /// Private memory, in KiB.
    pub(crate) fn private(&self) -> Result<f64> {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0.id()))?;
        Ok(value(&rollup, "Private_Clean:")? + value(&rollup, "Private_Dirty:")?)
    }

    fn threads(&self, file: &str) -> Result<Vec<String>> {
        let tasks =
            fs::read_dir(format!("/proc/{}/task", self.0.id())).context("a process has no threads")?;
        tasks.map(|task| Ok(fs::read_to_string(task?.path().join(file))?)).collect()
    }
}

fn value(text: &str, key: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("the kernel says no `{key}`"))?.parse()?)
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Waits before another look at what began then.
pub(crate) async fn wait(begun: Instant, what: &str) -> Result<()> {
    ensure!(begun.elapsed() < PATIENCE, "{what} does not come up");
    tokio::time::sleep(Duration::from_millis(5)).await;
    Ok(())
}
