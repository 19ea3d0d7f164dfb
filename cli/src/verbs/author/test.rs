//! `weir test`: tests a project in a Main of its own.

mod cases;
mod junit;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::ValueHint;
use serde_json::Value;
use tokio::sync::mpsc;

use self::cases::{Cases, Outcome};
use super::{
    build::{Descriptions, build},
    group::Group,
    private_main::{PrivateMain, this_command, variables},
    project::Project,
};
use crate::{
    client::{Route, until_interrupted},
    exit::{self, Said, Usage},
    output,
};

const LOG: &str = "main.log";

const MEASURED: &str = "measured.json";

/// The most lines of the test program that wait to be shown. A full channel makes the program wait.
const LINES: usize = 256;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Builds the project, runs its `weir.toml` in a Main of its own, and then the tests: by default `cargo test`,
`npm test`, `python3 -m unittest`, `go test` or `make test`. They find that Main through WEIR_SOCKET, the
`weir` command as WEIR, `main.peer-socket` as WEIR_PEER_SOCKET, and the first address of `gateway.listen`
on this machine as WEIR_HTTP_ADDRESS. Each test that the program reports, as TAP or as `cargo test` does, is
a case; a program that reports none is one case. Exit code 1: a case failed.

`.weir/main.log` has Main's log, and `.weir/measured.json` the limits and what was used of them.

Examples:
  weir test
  weir test --junit report.xml
  weir test --tap -- ./tests/run.sh")]
pub(crate) struct Args {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Write the cases to this file, as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
    /// Print the cases as TAP; the program's output goes to stderr
    #[arg(long)]
    tap: bool,
    /// Time limit for the test program
    #[arg(long, value_name = "TIME", default_value = "10min")]
    timeout: humantime::Duration,
    /// The test program, which runs in the directory of the project
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(in crate::verbs) async fn run(args: Args) -> anyhow::Result<()> {
    this_command()?;
    let project = Project::load(&args.dir)?;
    let mut command = command(&project, &args.command)?;
    let cases = until_interrupted(tested(&project, &mut command, &args)).await?;
    if let Some(file) = &args.junit {
        let name = project.dir.file_name().unwrap_or_default().to_string_lossy();
        fs::write(file, junit::report(&name, &cases))
            .with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    if args.tap {
        output::write(cases.tap().as_bytes())?;
    }
    output::complain(&cases.summary());
    if cases.of(Outcome::Failed) == 0 {
        return Ok(());
    }
    let log = project.own(LOG)?;
    output::complain(&format!("Main's log is `{}`", project.shown(&log)));
    Err(Said.into())
}

fn command(project: &Project, words: &[String]) -> anyhow::Result<Command> {
    if let Some((program, arguments)) = words.split_first() {
        let mut command = project.command(program, &[]);
        command.args(arguments);
        return Ok(command);
    }
    let tests = project.tests();
    Ok(tests.ok_or_else(|| Usage("which program tests it? `weir test -- COMMAND` names it".to_owned()))?)
}

/// Builds and starts the project, and runs its tests.
async fn tested(project: &Project, command: &mut Command, args: &Args) -> anyhow::Result<Cases> {
    build(project, &Descriptions::default()).await?;
    let path = project.own(LOG)?;
    let log = File::create(&path).with_context(|| format!("cannot write `{}`", path.display()))?;
    let started = async {
        let main = PrivateMain::start(project, log.into()).await?;
        main.ready(project).await?;
        Ok::<_, anyhow::Error>(main)
    };
    let main = started
        .await
        .with_context(|| format!("the project does not start; `{}` has the log", project.shown(&path)))?;
    command.envs(variables(project, &main)?);
    let cases = cases_of(command, args.timeout.into(), args.tap).await?;
    if let Err(error) = keep_measured(project, &main).await {
        output::complain(&format!("warning: nothing was measured: {}", exit::chain(&error)));
    }
    Ok(cases)
}

/// Runs the test program, shows its output, and finds the cases in it.
async fn cases_of(command: &mut Command, timeout: Duration, is_tap: bool) -> anyhow::Result<Cases> {
    let started = Instant::now();
    let mut program = Group::spawn(command.stdout(Stdio::piped()))?;
    let stdout = program.child().stdout.take().context("the test program has no stdout")?;
    let (sender, mut lines) = mpsc::channel(LINES);
    // The thread ends with the pipe, or with the receiver.
    thread::Builder::new().name("weir-test-output".to_owned()).spawn(move || {
        for line in BufReader::new(stdout).split(b'\n') {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    let mut cases = Cases::default();
    let end = async {
        while let Some(line) = lines.recv().await {
            show(&line, is_tap)?;
            cases.read(&String::from_utf8_lossy(&line));
        }
        Ok::<_, anyhow::Error>(program.wait().await?)
    };
    let ended = match tokio::time::timeout(timeout, end).await {
        Ok(status) => ended(status?),
        Err(_) => Err(format!("did not end within {}", humantime::format_duration(timeout))),
    };
    let name = command.get_program().to_string_lossy();
    cases.end(&name, ended, started.elapsed());
    Ok(cases)
}

fn ended(status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

fn show(line: &[u8], is_tap: bool) -> anyhow::Result<()> {
    if is_tap {
        output::complain(&String::from_utf8_lossy(line));
        return Ok(());
    }
    output::write(&[line, b"\n"].concat())
}

/// Keeps the limits and what was used of them, for `weir inspect --measured`.
async fn keep_measured(project: &Project, main: &PrivateMain) -> anyhow::Result<()> {
    let limits: Value = main.connect().await?.get(&Route::new(&["limits"])).await?;
    let path = project.own(MEASURED)?;
    fs::write(&path, format!("{limits:#}\n")).with_context(|| format!("cannot write `{}`", path.display()))
}
