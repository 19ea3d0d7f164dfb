//! Processes to measure from outside (`benches/device`), with their artifacts and configurations.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fmt::Display,
    fs,
    io::{BufRead, BufReader, Write},
    ops::Range,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use weir_host::{
    component::{self, Compilation, SigningKey},
    config::{Limits, Traces},
};

use super::Bench;
use crate::{machine::Emulator, process::Process};

/// What takes longer has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Time until a process is idle: threads for blocking work, such as loading extensions, end after 10 s
/// without any.
pub(super) const SETTLING: Duration = Duration::from_millis(10_500);

/// An extension that waits. Main is told how many of it to have.
const IDLE: &str = r#"
[[extension]]
id = "idle"
path = "answering.cwasm"
class = "min"
"#;

/// The directory with the files of the measured processes.
#[derive(Debug)]
pub(super) struct Site<'a> {
    bench: &'a Bench,
    dir: TempDir,
    key: SigningKey,
    compiled: RefCell<BTreeSet<String>>,
    /// Gives each process its own program file, so that it does not share that file's pages.
    apart: bool,
    processes: Cell<u32>,
}

/// A measured process. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Device {
    child: Child,
    /// `None` once the process is told to end.
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    /// The addresses of the device in an emulator's process. `None` if it is the whole process.
    addresses: Option<Range<u64>>,
}

impl<'a> Site<'a> {
    pub(super) fn new(bench: &'a Bench, apart: bool) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let key = SigningKey::generate()?;
        Ok(Self { bench, dir, key, compiled: RefCell::default(), apart, processes: Cell::new(0) })
    }

    pub(super) fn idle(&self, count: u32) -> Result<Device> {
        self.weir(&["answering"], IDLE, &[&count])
    }

    /// Main with these `extensions` and components. `DIR` in the text is a directory of its own.
    pub(super) fn weir(
        &self,
        components: &[&str],
        extensions: &str,
        rest: &[&dyn Display],
    ) -> Result<Device> {
        for component in components {
            self.compile(component)?;
        }
        let number = self.processes.get();
        let own = self.dir.path().join(format!("dir-{number}"));
        fs::create_dir(&own)?;
        let main = format!(
            "[main]\nplugin-dir = \".\"\ncontrol-socket = \"{number}.sock\"\ntrusted-keys = [\"{}\"]\n\
             data-dir = \"{}\"\n",
            self.key.trusted_key(),
            own.display()
        );
        let file = self.dir.path().join(format!("{number}.toml"));
        fs::write(&file, main + &extensions.replace("DIR", &own.to_string_lossy()))?;
        let file = file.display();
        self.start("weir", &[&[&file as &dyn Display], rest].concat())
    }

    pub(super) fn native(&self, way: &str, count: u32) -> Result<Device> {
        self.start(way, &[&count])
    }

    fn start(&self, what: &str, rest: &[&dyn Display]) -> Result<Device> {
        let number = self.processes.replace(self.processes.get() + 1);
        let mut program = self.bench.device.clone();
        if self.apart {
            let own = self.dir.path().join(format!("device-{number}"));
            fs::copy(&program, &own).with_context(|| format!("cannot copy `{}`", program.display()))?;
            // The copy must be on disk: until then, the kernel counts its pages as written.
            fs::File::open(&own)?.sync_all()?;
            program = own;
        }
        let emulator = self.bench.emulator.as_ref();
        let mut command = match emulator {
            Some(emulator) => emulator.command(&program),
            None => Command::new(&program),
        };
        // The variable is set as in `packaging/systemd/weir.service`.
        command.env("MALLOC_ARENA_MAX", "1");
        command.arg(what).args(rest.iter().map(ToString::to_string));
        let mut device = Device::start(&mut command)?;
        device.addresses = emulator.map(Emulator::addresses);
        Ok(device)
    }

    fn compile(&self, component: &str) -> Result<()> {
        if !self.compiled.borrow_mut().insert(component.to_owned()) {
            return Ok(());
        }
        let file = self.bench.guests.component(component);
        let artifact = component::compile(
            &file,
            self.bench.emulator.as_ref().map(|emulator| &emulator.target),
            &Limits::max(),
            Traces::default(),
            &Compilation::InProcess,
            &self.key,
        )?;
        let path: PathBuf = self.dir.path().join(format!("{component}.cwasm"));
        fs::write(&path, artifact).with_context(|| format!("cannot write `{}`", path.display()))
    }
}

impl Device {
    /// Starts a process, and waits until it is ready.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let program = || format!("cannot start `{}`", command.get_program().display());
        Self::of(child.with_context(program)?)
    }

    fn of(mut child: Child) -> Result<Self> {
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.context("it says nothing")?);
        let (tell, lines) = mpsc::sync_channel(1);
        let _reader = thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let device = Self { child, input, lines, addresses: None };
        let said = device.hear()?;
        ensure!(said == "ready", "it says `{said}`");
        Ok(device)
    }

    pub(super) fn process(&self) -> Process {
        Process::new(self.child.id(), self.addresses.clone())
    }

    pub(super) fn call(&mut self, contract: &str, operation: &str, argument: &str) -> Result<String> {
        self.ask(format_args!("{contract} {operation} {argument}"))
    }

    /// The answer of the process to a line.
    pub(super) fn ask(&mut self, line: impl Display) -> Result<String> {
        let input = self.input.as_mut().context("it hears nothing")?;
        writeln!(input, "{line}")?;
        self.hear()
    }

    /// The answer of the process to a line, which must be numbers.
    pub(super) fn numbers(&mut self, line: impl Display) -> Result<Vec<u64>> {
        self.ask(line)?.split_whitespace().map(|number| Ok(number.parse()?)).collect()
    }

    /// Fails unless the last waiting extension answers with the payload.
    pub(super) fn ensure_answers(&mut self, count: u32) -> Result<()> {
        let said = self.call(&format!("idle.n{}@1", count - 1), "echo", "sixteen bytes ok")?;
        ensure!(said == "sixteen bytes ok", "it answers `{said}`");
        Ok(())
    }

    fn hear(&self) -> Result<String> {
        self.lines.recv_timeout(PATIENCE).context("a process ended, or says nothing")
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The process ends when its input does, and its output ends with it.
        drop(self.input.take());
        while self.lines.recv_timeout(PATIENCE).is_ok() {}
        // This fails if the process has ended already.
        let _ended = self.child.kill();
        // The process has ended in any case.
        let _status = self.child.wait();
    }
}

/// Waits on this thread. The token of an old waker ends a park at once.
pub(super) fn wait_until(end: Instant) {
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

/// The processor time that `used` gives, once it no longer grows.
pub(super) fn at_rest(mut used: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    const LOOK: Duration = Duration::from_millis(30);
    const REST: Duration = Duration::from_millis(1);

    let end = Instant::now() + PATIENCE;
    let mut before = used()?;
    while Instant::now() < end {
        wait_until(Instant::now() + LOOK);
        let now = used()?;
        if now.saturating_sub(before) < REST {
            return Ok(now);
        }
        before = now;
    }
    anyhow::bail!("it does not come to rest")
}

/// Raises the limit of descriptors so that there is room for this many connections, in this process or in those that it
/// starts.
pub(super) fn allow_connections(number: u64) -> Result<()> {
    /// Descriptors of a process beside those of connections.
    const OTHERS: u64 = 1000;

    let (needed, Rlimit { current, maximum }) = (number + OTHERS, getrlimit(Resource::Nofile));
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    ensure!(
        maximum.is_none_or(|maximum| maximum >= needed),
        "{needed} descriptors are needed, and at most {maximum:?} allowed: raise the hard limit of `ulimit -n`"
    );
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })?)
}
