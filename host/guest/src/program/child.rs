//! The process that compiles one component, as Main sees it.
//!
//! Main gives it the file piece by piece and takes from it at most what the limits allow: what a component
//! takes to be parsed and compiled, only the process has. It is killed when nobody waits for it any more.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs, io,
    path::Path,
    process::{ExitStatus, Stdio},
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    sync::oneshot,
    time::timeout,
};
use weir_config::Traces;
use weir_names::harmless;
use weir_schedule::TimeLimit;

use super::{
    GRACE,
    code::{self, Code, FOOTPRINT},
    compilation::CompileTask,
    error::LoadFault,
    input::ComponentInput,
    load_permit::LoadPermit,
};

/// Bytes of what the process says on stderr that are looked at.
const MAX_STDERR: u64 = 4096;

/// Bytes of what it says is wrong with a component.
const MAX_MESSAGE: u64 = 4096;

/// What Main tells the process in the first line of its standard input; the component follows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CompileRequest {
    /// Bytes of address space.
    pub(super) memory: u64,
    /// Seconds of processor time.
    pub(super) seconds: u64,
    /// The processor that it compiles for. None: this machine's.
    pub(super) target: Option<String>,
    /// Whether traces are to tell lines.
    pub(super) lines: bool,
}

/// What the process answers: the first byte of its standard output. What it says follows after its length, 8
/// bytes in little-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompileAnswer {
    /// The compiled code follows.
    Compiled = 0,
    /// Why it does not compile follows.
    Invalid = 1,
    /// It takes more memory than there is.
    OutOfMemory = 2,
}

impl CompileAnswer {
    fn of(byte: u8) -> Option<Self> {
        [Self::Compiled, Self::Invalid, Self::OutOfMemory].into_iter().find(|answer| *answer as u8 == byte)
    }
}

/// Compiles the file's component in a process of its own. Others load as soon as that has the component. Where nobody waits
/// for it any more, the process is killed, and its permit to compile ends when it has ended.
pub(super) async fn compile(
    program: &Path,
    arguments: &[OsString],
    input: ComponentInput,
    task: CompileTask,
    permit: LoadPermit,
) -> Result<Code, LoadFault> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        // Whoever interrupts Main at a terminal does not mean the compiler.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| LoadFault::Compiler(format!("cannot start `{}`: {error}", program.display())))?;
    let (mut sender, receiver) = oneshot::channel();
    let permit = permit.for_task();
    let compiling = permit.meanwhile();
    tokio::spawn(async move {
        let (feeding, fed) = oneshot::channel();
        let limit = TimeLimit::new(task.timeout);
        let outcome = tokio::select! {
            outcome = limit.within(talk(&mut child, input, &task, permit, feeding)) => outcome,
            () = sender.closed() => Some(Err(LoadFault::CutOff)),
        };
        // It has ended, or is to; and it is waited for, so that nothing of it is left.
        let _ended = child.start_kill();
        let _reaped = child.wait().await;
        let outcome = match outcome {
            Some(outcome) => outcome,
            None if timeout(GRACE, fed).await.is_ok() => Err(LoadFault::CompileTimeout(task.timeout)),
            // It was not the process that took so long: the file is still being read.
            None => Err(LoadFault::late(task.timeout)),
        };
        drop(compiling);
        // It fails only if nobody waits.
        let _gave_up = sender.send(outcome);
    });
    receiver.await.unwrap_or(Err(LoadFault::CutOff))
}

async fn talk(
    child: &mut Child,
    mut input: ComponentInput,
    task: &CompileTask,
    permit: LoadPermit,
    feeding: oneshot::Sender<Infallible>,
) -> Result<Code, LoadFault> {
    let lost = |error: io::Error| LoadFault::Compiler(error.to_string());
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(LoadFault::Compiler("it has no pipes".to_owned()));
    };
    let request = CompileRequest {
        memory: task.memory,
        seconds: task.timeout.as_secs().saturating_add(1),
        target: task.target.clone(),
        lines: task.traces == Traces::Lines,
    };
    let mut stdin = fs::File::from(stdin.into_owned_fd().map_err(lost)?);
    // Ends when the process does, since nobody reads then.
    let feed = move || {
        let _feeding = feeding;
        let mut line =
            serde_json::to_vec(&request).map_err(|error| LoadFault::Compiler(error.to_string()))?;
        line.push(b'\n');
        io::Write::write_all(&mut stdin, &line).map_err(lost)?;
        input.copy_to(&mut stdin)
    };
    // With the permit, which ends with it.
    let feed = async move { permit.read(feed).await };
    let said = async {
        let mut said = Vec::new();
        // What it says beyond that, nobody hears.
        let _lost = stderr.take(MAX_STDERR).read_to_end(&mut said).await;
        String::from_utf8_lossy(&said).into_owned()
    };
    let (fed, answer, said) = tokio::join!(feed, answer(stdout, task), said);
    match answer? {
        // Only with all of it fed is it known that what it got is what was hashed.
        Some(answer) => answer.and_then(|code| fed.map(|()| code)),
        None => Err(died(child.wait().await.map_err(lost)?, &said, task)),
    }
}

/// What the process answers, or nothing if it died over it. Lets go of its output, so that it ends.
async fn answer(
    mut stdout: impl AsyncRead + Unpin,
    task: &CompileTask,
) -> Result<Option<Result<Code, LoadFault>>, LoadFault> {
    let Ok(byte) = stdout.read_u8().await else { return Ok(None) };
    let Ok(bytes) = stdout.read_u64_le().await else { return Ok(None) };
    let answer = CompileAnswer::of(byte)
        .ok_or_else(|| LoadFault::Compiler("it answers what nobody asked".to_owned()))?;
    let mut body = Vec::new();
    if answer == CompileAnswer::Compiled {
        code::check(bytes.saturating_sub(FOOTPRINT as u64), task.code_size)?;
        let Ok(footprint) = stdout.read_u64_le().await else { return Ok(None) };
        code::check(footprint, task.code_size)?;
        body.extend(footprint.to_le_bytes());
    } else if bytes > MAX_MESSAGE {
        return Err(LoadFault::Compiler("it says more than anybody wants to hear".to_owned()));
    }
    let left = bytes.saturating_sub(body.len() as u64);
    body.try_reserve_exact(usize::try_from(left).unwrap_or(usize::MAX))
        .map_err(|error| LoadFault::Compiler(error.to_string()))?;
    match stdout.take(left).read_to_end(&mut body).await {
        Ok(read) if read as u64 == left => {}
        _ => return Ok(None),
    }
    Ok(Some(match answer {
        CompileAnswer::Compiled => Ok(Code::compiled(body)),
        CompileAnswer::Invalid => Err(LoadFault::Compile(harmless(String::from_utf8_lossy(&body), 1024))),
        CompileAnswer::OutOfMemory => Err(LoadFault::CompileMemory(task.memory)),
    }))
}

/// Why the process ended without an answer.
fn died(status: ExitStatus, said: &str, task: &CompileTask) -> LoadFault {
    // Rust's own message where an allocation fails; the process aborts then.
    if said.contains("memory allocation of ") {
        return LoadFault::CompileMemory(task.memory);
    }
    let said = match said.trim() {
        "" => String::new(),
        said => format!(": {}", harmless(said, 512)),
    };
    LoadFault::Compiler(format!("the process that compiles ended with {status}{said}"))
}
