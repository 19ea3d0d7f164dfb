//! The process that compiles one component, as Main sees it.
//!
//! Main gives it the file piece by piece and takes from it at most what the limits allow: what a component
//! takes to be parsed and compiled, only the process has. It is killed when nobody waits for it any more.

use std::{fs, io, os::unix::process::ExitStatusExt, path::Path, process::ExitStatus, process::Stdio};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::timeout,
};

use super::{code::Code, compilation::Job, error::LoadFault, file::PluginFile};
use crate::logs::harmless;

/// Bytes of what the process says on stderr that are looked at.
const MAX_STDERR: u64 = 4096;

/// Bytes of what it says is wrong with a component.
const MAX_MESSAGE: u64 = 4096;

/// What Main tells the process in the first line of its standard input; the component follows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// Bytes of address space.
    pub(super) memory: u64,
    /// Seconds of processor time.
    pub(super) seconds: u64,
    /// The processor that it compiles for. None: this machine's.
    pub(super) target: Option<String>,
}

/// What the process answers: the first byte of its standard output. What it says follows after its length, 8
/// bytes in little-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The compiled code follows.
    Compiled = 0,
    /// Why it does not compile follows.
    Invalid = 1,
    /// It takes more memory than there is.
    OutOfMemory = 2,
}

impl Answer {
    fn of(byte: u8) -> Option<Self> {
        [Self::Compiled, Self::Invalid, Self::OutOfMemory].into_iter().find(|answer| *answer as u8 == byte)
    }
}

/// Compiles the file's component in a process of its own.
pub(super) async fn compile(
    program: &Path,
    arguments: &[std::ffi::OsString],
    file: PluginFile,
    job: Job,
) -> Result<Code, LoadFault> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| LoadFault::Compiler(format!("cannot start `{}`: {error}", program.display())))?;
    let outcome = timeout(job.timeout, talk(&mut child, file, &job)).await;
    // It has ended, or is to; and it is waited for, so that nothing of it is left.
    let _ended = child.start_kill();
    let _reaped = child.wait().await;
    outcome.unwrap_or(Err(LoadFault::CompileTimeout(job.timeout)))
}

async fn talk(child: &mut Child, mut file: PluginFile, job: &Job) -> Result<Code, LoadFault> {
    let lost = |error: io::Error| LoadFault::Compiler(error.to_string());
    let (Some(stdin), Some(stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(LoadFault::Compiler("it has no pipes".to_owned()));
    };
    let request = Request {
        memory: job.memory,
        seconds: job.timeout.as_secs().saturating_add(1),
        target: job.target.clone(),
    };
    let mut stdin = fs::File::from(stdin.into_owned_fd().map_err(lost)?);
    // Ends when the process does, since nobody reads then.
    let feed = tokio::task::spawn_blocking(move || {
        let mut line =
            serde_json::to_vec(&request).map_err(|error| LoadFault::Compiler(error.to_string()))?;
        line.push(b'\n');
        io::Write::write_all(&mut stdin, &line).map_err(LoadFault::Read)?;
        file.copy_to(&mut stdin)
    });
    let (answer, said) = tokio::join!(answer(stdout, job), async {
        let mut said = Vec::new();
        let read = (&mut stderr).take(MAX_STDERR).read_to_end(&mut said).await;
        // What is more is not kept, but read: else it would wait for that.
        let rest = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        read.and(rest.map(|_| String::from_utf8_lossy(&said).into_owned())).unwrap_or_default()
    });
    let answer = match answer? {
        Some(answer) => answer,
        None => return Err(died(child.wait().await.map_err(lost)?, &said, job)),
    };
    // Only then is it known that what it got is what was hashed.
    feed.await.map_err(|_| LoadFault::CutOff)??;
    answer
}

/// What the process answers, or nothing if it died over it. Lets go of its output, so that it ends.
async fn answer(
    mut stdout: impl AsyncRead + Unpin,
    job: &Job,
) -> Result<Option<Result<Code, LoadFault>>, LoadFault> {
    let Ok(byte) = stdout.read_u8().await else { return Ok(None) };
    let Ok(bytes) = stdout.read_u64_le().await else { return Ok(None) };
    let answer =
        Answer::of(byte).ok_or_else(|| LoadFault::Compiler("it answers what nobody asked".to_owned()))?;
    let allowed = if answer == Answer::Compiled { job.code_size } else { MAX_MESSAGE };
    if bytes > allowed {
        return Err(LoadFault::CodeTooLarge { bytes, allowed });
    }
    let mut body = Vec::new();
    body.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX))
        .map_err(|error| LoadFault::Compiler(error.to_string()))?;
    match stdout.take(bytes).read_to_end(&mut body).await {
        Ok(read) if read as u64 == bytes => {}
        _ => return Ok(None),
    }
    Ok(Some(match answer {
        Answer::Compiled => Ok(Code::compiled(body)),
        Answer::Invalid => Err(LoadFault::Compile(harmless(&String::from_utf8_lossy(&body), 1024))),
        Answer::OutOfMemory => Err(LoadFault::CompileMemory(job.memory)),
    }))
}

/// Why the process ended without an answer.
fn died(status: ExitStatus, said: &str, job: &Job) -> LoadFault {
    // Rust's own message where an allocation fails; the process aborts then.
    if said.contains("memory allocation of ") {
        return LoadFault::CompileMemory(job.memory);
    }
    if status.signal() == Some(Signal::XCPU.as_raw()) {
        return LoadFault::CompileTimeout(job.timeout);
    }
    let said = match said.trim() {
        "" => String::new(),
        said => format!(": {}", harmless(said, 512)),
    };
    LoadFault::Compiler(format!("the process that compiles ended with {status}{said}"))
}
