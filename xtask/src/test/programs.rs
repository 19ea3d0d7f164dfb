//! The tests of the workspace, and steps beside them, with as many programs at once as there are processors.
//!
//! `cargo test` runs one program after the other. Where its last test is a long one, or it waits, the other processors
//! have nothing to do.

use std::{
    fmt,
    io::{Read, Seek},
    iter,
    num::NonZero,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::run::{cargo, output, root, run, set_environment, target_dir};

/// Programs that take over a minute. They begin first, so that none is left over at the end.
const LONG: [&str; 4] = ["hostile", "extensions", "killed_at_random", "command_line"];

/// Programs that measure shares of the processors. They run one by one, after all others.
const ALONE: [&str; 1] = ["share"];

/// Builds the tests of the workspace, and runs them with these steps beside them.
pub(super) fn test(steps: &[&str]) -> Result<()> {
    let messages = ["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"];
    let messages = output(cargo(messages)?.stderr(Stdio::inherit()))?;
    let mut programs: Vec<_> = messages.lines().filter_map(Program::of_message).collect();
    ensure!(!programs.is_empty(), "`cargo test` has built nothing");
    for step in steps {
        programs.push(Program::of_step(step)?);
    }
    programs.sort_by_key(|program| (!LONG.contains(&&*program.name), program.is_test));
    let (alone, programs): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| ALONE.contains(&&*program.name));
    // The first that needs guests builds them, and tells the others, and processes of theirs, what there is.
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let guests = directory.path().join("guests");
    let lanes = thread::available_parallelism().map_or(1, NonZero::get);
    let mut failed = run_all(&programs, lanes, &guests);
    failed.extend(run_all(&alone, 1, &guests));
    ensure!(failed.is_empty(), "tests failed: {}", failed.join(", "));
    run(&mut cargo(["test", "--workspace", "--doc", "--quiet"])?)
}

/// Runs programs in so many threads. Returns the names of those that failed.
fn run_all(programs: &[Program], lanes: usize, guests: &Path) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let take = || programs.get(next.fetch_add(1, Ordering::Relaxed));
    let (sender, failed) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                iter::from_fn(take)
                    .filter(|program| !program.passes(guests))
                    .try_for_each(|it| sender.send(it.to_string()))
            });
        }
    });
    drop(sender);
    failed.into_iter().collect()
}

/// A program of tests, or this program with a step.
struct Program {
    name: String,
    is_test: bool,
    path: PathBuf,
    arguments: Vec<String>,
    /// The directory of the package, where `cargo test` would run the program.
    package: PathBuf,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_test {
            return write!(f, "step {}", self.name);
        }
        let package =
            root().ok().and_then(|root| self.package.strip_prefix(root).ok()).unwrap_or(&self.package);
        write!(f, "{} of {}", self.name, package.display())
    }
}

impl Program {
    fn of_step(name: &str) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            is_test: false,
            path: target_dir()?.join("debug/xtask"),
            arguments: ["test", "--only", name].map(str::to_owned).into(),
            package: root()?.to_owned(),
        })
    }

    /// Returns the program that this message of Cargo's is about, if it is about one.
    fn of_message(message: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        let text = |value: &Value| Some(value.as_str()?.to_owned());
        let is_test = message.pointer("/profile/test")?.as_bool()?;
        let package = Path::new(message.get("manifest_path")?.as_str()?).parent()?.to_owned();
        let path = text(message.get("executable")?)?.into();
        let (name, arguments) = (text(message.pointer("/target/name")?)?, vec!["--quiet".to_owned()]);
        is_test.then_some(Self { name, is_test, path, arguments, package })
    }

    /// Runs it to its end. Prints its output if it is a step, which may say that it left something out, or if it fails.
    fn passes(&self, guests: &Path) -> bool {
        eprintln!("{self} begins");
        let start = Instant::now();
        let (passed, said) = self.run(guests).unwrap_or_else(|error| (false, format!("{error:#}\n")));
        let seconds = start.elapsed().as_secs_f64();
        let (said, ended) = match passed {
            true if self.is_test => ("", "passed"),
            true => (&*said, "passed"),
            false => (&*said, "failed"),
        };
        eprintln!("{said}{self}: {ended} in {seconds:.0} s");
        passed
    }

    /// Returns whether it passed, and its output.
    fn run(&self, guests: &Path) -> Result<(bool, String)> {
        // Not a pipe: a process that a failed test has left behind would keep it open.
        let mut said = tempfile::tempfile()?;
        let mut program = Command::new(&self.path);
        program
            .args(&self.arguments)
            .current_dir(&self.package)
            .env("WEIR_TEST_GUESTS", guests)
            // Not the cache of the developer.
            .env("XDG_CACHE_HOME", target_dir()?.join("test-cache"))
            .stdout(said.try_clone()?)
            .stderr(said.try_clone()?);
        set_environment(&mut program)?;
        let status = program.status().with_context(|| format!("cannot run `{}`", self.path.display()))?;
        said.rewind()?;
        let mut bytes = Vec::new();
        said.read_to_end(&mut bytes)?;
        Ok((status.success(), format!("{}{status}\n", String::from_utf8_lossy(&bytes))))
    }
}
