//! Programs that use generated clients, and what their languages need to read the clients. Each says `ready` when it
//! has done what it does before Main is killed.

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::{Access, place};
use crate::{
    browser::CLIENT,
    files,
    run::{Process, cargo, output, root, run},
    setup::{self, NODE, PYTHON},
};

/// Packages from `npm`: the compiler of TypeScript, and WebSockets for every version of Node.
const NPM: [&str; 2] = ["typescript@5.9.3", "ws@8.18.3"];

const MYPY: &str = "mypy==1.18.2";

/// Time for a program to be ready, and again to end.
const WITHIN: Duration = Duration::from_secs(120);

/// The tools that could be installed.
#[derive(Debug)]
pub(super) struct Tools {
    /// Whether `npm` gave what it should.
    typescript: bool,
    /// The program, if `pip` gave it.
    mypy: Option<PathBuf>,
}

impl Tools {
    /// Installs what is missing, and returns what is skipped without it.
    pub(super) fn install(directory: &Path) -> Result<(Self, Vec<String>)> {
        setup::require(&[&NODE, &PYTHON])?;
        let mut skipped = Vec::new();

        let npm = ["install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix"];
        let fetched = output(Command::new("npm").args(npm).arg(directory).args(NPM));
        if let Err(error) = &fetched {
            eprintln!("going on without TypeScript: {error:#}");
            skipped.push("TypeScript: `npm` cannot get it".to_owned());
        }

        let environment = directory.join("python");
        let pip = environment.join("bin/pip");
        let installed = output(Command::new("python3").args(["-m", "venv"]).arg(&environment))
            .and_then(|_| output(Command::new(pip).args(["install", "--quiet", MYPY])));
        if let Err(error) = &installed {
            eprintln!("going on without the types of Python: {error:#}");
            skipped.push(format!("the types of Python: `pip` cannot get {MYPY}"));
        }
        let mypy = installed.is_ok().then(|| environment.join("bin/mypy"));
        Ok((Self { typescript: fetched.is_ok(), mypy }, skipped))
    }

    /// Compiles and checks all programs.
    pub(super) fn programs(&self, directory: &Path) -> Result<Vec<Program>> {
        let mut programs = python(directory, self.mypy.as_deref())?;
        if self.typescript {
            programs.push(typescript(directory)?);
        }
        programs.extend(rust()?);
        Ok(programs)
    }
}

fn python(directory: &Path, mypy: Option<&Path>) -> Result<Vec<Program>> {
    for name in ["weir_peer.py", "weir_peer.pyi"] {
        let library = root()?.join("examples/peers").join(name);
        files::copy(&library, &directory.join(name))?;
    }
    place(directory, "app.py", include_str!("app.py"))?;
    place(directory, "sidecar.py", include_str!("sidecar.py"))?;
    if let Some(mypy) = mypy {
        run(Command::new(mypy).args(["--strict", "app.py", "sidecar.py"]).current_dir(directory))?;
    }
    let program = |name, file| {
        let mut command = Command::new("python3");
        command.arg(file).current_dir(directory);
        Program { name, command }
    };
    Ok(vec![program("app in Python", "app.py"), program("sidecar in Python", "sidecar.py")])
}

fn typescript(directory: &Path) -> Result<Program> {
    let modules = directory.join("node_modules");
    let client = modules.join("weir-client");
    if !client.exists() {
        symlink(root()?.join(CLIENT), &client)
            .with_context(|| format!("cannot make `{}`", client.display()))?;
    }
    place(directory, "package.json", "{ \"type\": \"module\" }\n")?;
    place(directory, "app.ts", include_str!("app.ts"))?;
    place(directory, "run.js", include_str!("run.js"))?;
    let options = [
        "--strict",
        "--noUncheckedIndexedAccess",
        "--exactOptionalPropertyTypes",
        "--target",
        "es2022",
        "--lib",
        "es2023,dom",
        "--module",
        "nodenext",
    ];
    let mut tsc = Command::new(modules.join(".bin/tsc"));
    run(tsc.args(options).arg("app.ts").current_dir(directory))?;
    let mut command = Command::new("node");
    command.arg("run.js").current_dir(directory);
    Ok(Program { name: "app in TypeScript", command })
}

/// The programs in Rust. They are tests of the workspace, and are built beforehand.
fn rust() -> Result<Vec<Program>> {
    run(cargo(["test", "--workspace", "--test", "running", "--no-run"])?.arg("--quiet"))?;
    let program = |name, test| -> Result<Program> {
        let ran = ["test", "--quiet", "--workspace", "--test", "running", "--", "--ignored", "--nocapture"];
        Ok(Program { name, command: cargo(ran.into_iter().chain(["--exact", test]))? })
    };
    Ok(vec![
        program("app in Rust", "an_app_goes_on_after_a_break_and_knows_of_the_gap")?,
        program("sidecar in Rust", "a_sidecar_has_one_session_and_nothing_after_it")?,
    ])
}

/// A program with a name for messages.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
}

impl Program {
    pub(super) fn start(&mut self, access: &Access) -> Result<Running> {
        access.give(&mut self.command);
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the {}", self.name))?;
        let output = child.stdout.take().context("no output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                eprintln!("{line}");
                // Nobody reads the lines of a program that has failed.
                let _unread = sender.send(line);
            }
        });
        Ok(Running { name: self.name, process: Process(child), lines })
    }
}

/// A program that runs.
#[derive(Debug)]
pub(super) struct Running {
    name: &'static str,
    process: Process,
    lines: Receiver<String>,
}

impl Running {
    pub(super) fn wait_until_ready(&mut self) -> Result<()> {
        let until = Instant::now() + WITHIN;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            if line.with_context(|| format!("the {} failed before Main was killed", self.name))? == "ready" {
                return Ok(());
            }
        }
    }

    /// Waits until the program ends, which closes its output. Fails if the program failed.
    pub(super) fn wait_until_done(mut self) -> Result<()> {
        let until = Instant::now() + WITHIN;
        while self.lines.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        ensure!(Instant::now() < until, "the {} does not end after Main was killed", self.name);
        let status = self.process.0.wait()?;
        ensure!(status.success(), "the {} failed after Main was killed: {status}", self.name);
        eprintln!("the {} went on, and ended well", self.name);
        Ok(())
    }
}
