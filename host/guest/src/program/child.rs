//! The process that compiles one component, as Main sees it.
//!
//! Main feeds the process the file piece by piece, and takes at most what the limits allow. Only the process bears the
//! cost of parsing and compiling. The process is killed when nobody waits for it any more.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs, io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::OnceLock,
};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    sync::oneshot,
    time::timeout,
};
use weir_config::Traces;
use weir_confinement::Missing;
use weir_names::harmless;
use weir_schedule::TimeLimit;

use super::{
    GRACE,
    code::{self, Code, HEADER},
    compilation::CompileTask,
    error::LoadFault,
    input::ComponentInput,
    load_permit::LoadPermit,
};
use crate::{engine::AddressClass, fit::Fit};

/// How many bytes of the process's standard error are read.
const MAX_STDERR: u64 = 4096;

/// How many bytes the process's message about a component may have.
const MAX_MESSAGE: u64 = 4096;

/// Says why the process got SIGSYS before it was confined.
const FORBIDDEN: &str = "the process that compiles was ended with signal 31 (SIGSYS) while it gave up its rights: a policy \
                         of this machine, such as `SystemCallFilter=` of systemd, forbids a call for that and must \
                         refuse it with an error instead, as `SystemCallErrorNumber=EPERM` does";

/// The first line of the process's standard input; the component follows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CompileRequest {
    /// What the component must be.
    pub(super) fit: Fit,
    /// How many bytes of address space the process may use.
    pub(super) memory: u64,
    /// How many seconds of processor time the process may use.
    pub(super) seconds: u64,
    /// The target to compile for. Without it, the process compiles for this machine.
    pub(super) target: Option<String>,
    /// Whether the address space is the small one.
    pub(super) is_small: bool,
    /// Whether traces are to tell lines.
    pub(super) lines: bool,
}

/// The process's answer: the second byte of its standard output, after the [`Missing`] restrictions. The body follows
/// after its length, 8 bytes in little-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompileAnswer {
    /// The compiled code follows.
    Compiled = 0,
    /// The reason why the component does not compile follows.
    Invalid = 1,
    /// Compiling takes more memory than allowed, and nothing follows.
    OutOfMemory = 2,
    /// The fault in the contracts that the component describes follows.
    BadContracts = 3,
    /// The reason why the component is not what it must be follows. Nothing was compiled.
    Misfit = 4,
}

impl CompileAnswer {
    fn of(byte: u8) -> Option<Self> {
        [Self::Compiled, Self::Invalid, Self::OutOfMemory, Self::BadContracts, Self::Misfit]
            .into_iter()
            .find(|answer| *answer as u8 == byte)
    }
}

/// Compiles a component in a process of its own. The permit to load is free once the process has the component. When
/// nobody waits any more, the process is killed, and the permit to compile ends with it.
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
        // An interrupt at Main's terminal is not for the compiler.
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
        // The process is killed if it still runs, and reaped, so that nothing of it is left.
        let _ended = child.start_kill();
        if timeout(GRACE, child.wait()).await.is_err() {
            tracing::warn!("the process that compiles does not end: it goes on until its time is up");
        }
        let outcome = match outcome {
            Some(outcome) => outcome,
            None if timeout(GRACE, fed).await.is_ok() => Err(LoadFault::CompileTimeout(task.timeout)),
            // The process is not to blame for the time, because the file is still being read.
            None => Err(LoadFault::late(task.timeout)),
        };
        drop(compiling);
        // Fails only if nobody waits for the code any more.
        let _gave_up = sender.send(outcome);
    });
    receiver.await.unwrap_or(Err(LoadFault::CutOff))
}

/// Feeds the process and reads its answer, and returns the code. Fails if the process dies without an answer.
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
        fit: task.fit.clone(),
        memory: task.memory,
        seconds: task.timeout.as_secs().saturating_add(1),
        target: task.target.clone(),
        is_small: task.class == AddressClass::Small,
        lines: task.traces == Traces::Lines,
    };
    let mut stdin = fs::File::from(stdin.into_owned_fd().map_err(lost)?);
    // Writing ends when the process does, because the pipe then has no reader.
    let feed = move || {
        let _feeding = feeding;
        let mut line =
            serde_json::to_vec(&request).map_err(|error| LoadFault::Compiler(error.to_string()))?;
        line.push(b'\n');
        io::Write::write_all(&mut stdin, &line).map_err(lost)?;
        input.copy_to(&mut stdin)
    };
    // The permit to load is held until the component is written.
    let feed = async move { permit.read(feed).await };
    let said = async {
        let mut said = Vec::new();
        // A failed read only makes the text shorter.
        let _lost = stderr.take(MAX_STDERR).read_to_end(&mut said).await;
        String::from_utf8_lossy(&said).into_owned()
    };
    let mut is_confined = false;
    let (fed, answer, said) = tokio::join!(feed, answer(stdout, task, &mut is_confined), said);
    match answer? {
        // Only a complete feed proves that the process got the hashed bytes.
        Some(answer) => answer.and_then(|code| fed.map(|()| code)),
        None => Err(died(child.wait().await.map_err(lost)?, &said, task, is_confined)),
    }
}

/// Reads the process's answer, and notes when the process has been confined. Returns none if the process died first. Fails
/// if the answer is larger than the limits allow or cannot be understood. Closes its output at the end, so that the
/// process ends.
async fn answer(
    mut stdout: impl AsyncRead + Unpin,
    task: &CompileTask,
    is_confined: &mut bool,
) -> Result<Option<Result<Code, LoadFault>>, LoadFault> {
    let Ok(missing) = stdout.read_u8().await else { return Ok(None) };
    let missing = Missing::of(missing).ok_or_else(|| {
        LoadFault::Compiler("the program that compiles is of another version of Weir".to_owned())
    })?;
    *is_confined = true;
    warn_once(missing);
    let Ok(byte) = stdout.read_u8().await else { return Ok(None) };
    let Ok(bytes) = stdout.read_u64_le().await else { return Ok(None) };
    let answer = CompileAnswer::of(byte)
        .ok_or_else(|| LoadFault::Compiler("its answer is of no known kind".to_owned()))?;
    let mut body = Vec::new();
    if answer == CompileAnswer::Compiled {
        code::check(bytes.saturating_sub(HEADER as u64), task.code_size)?;
        let Ok(footprint) = stdout.read_u64_le().await else { return Ok(None) };
        code::check(footprint, task.code_size)?;
        body.extend(footprint.to_le_bytes());
    } else if bytes > MAX_MESSAGE {
        return Err(LoadFault::Compiler("its message is too long".to_owned()));
    }
    let left = bytes.saturating_sub(body.len() as u64);
    body.try_reserve_exact(usize::try_from(left).unwrap_or(usize::MAX))
        .map_err(|error| LoadFault::Compiler(error.to_string()))?;
    match stdout.take(left).read_to_end(&mut body).await {
        Ok(read) if read as u64 == left => {}
        _ => return Ok(None),
    }
    let said = |body: &[u8]| harmless(String::from_utf8_lossy(body), 1024);
    Ok(Some(match answer {
        CompileAnswer::Compiled => Ok(Code::compiled(body)),
        CompileAnswer::Invalid => Err(LoadFault::Compile(said(&body))),
        CompileAnswer::BadContracts => Err(LoadFault::Contracts(said(&body))),
        CompileAnswer::Misfit => Err(task.misfit(said(&body))),
        CompileAnswer::OutOfMemory => Err(LoadFault::CompileMemory(task.memory)),
    }))
}

/// What the first process lacked that was confined less than it should be.
static LACKS: OnceLock<Missing> = OnceLock::new();

/// Returns a warning if a process that this one started to compile was confined less than it should be, because the
/// machine lacks or forbids a restriction.
///
/// The first time, the warning also goes to the log. This is for programs that do not show `tracing`'s events.
pub fn confinement_warning() -> Option<String> {
    LACKS.get().map(|missing| {
        format!(
            "the process that compiles goes without {missing}, which this machine does not have or does not allow: an \
             attack on the compiler would get further"
        )
    })
}

/// Logs the first time that a process is confined less than it should be.
fn warn_once(missing: Missing) {
    let is_first = !missing.is_empty() && LACKS.set(missing).is_ok();
    if let Some(warning) = confinement_warning().filter(|_| is_first) {
        tracing::warn!("{warning}");
    }
}

/// Returns the fault for a process that ended without an answer, judged by its status, what it wrote to standard error,
/// and whether it was confined by then. It gets nothing of the component to see before.
fn died(status: ExitStatus, said: &str, task: &CompileTask, is_confined: bool) -> LoadFault {
    if status.signal() == Some(Signal::SYS.as_raw()) {
        return if is_confined { LoadFault::Attack } else { LoadFault::Compiler(FORBIDDEN.to_owned()) };
    }
    // Rust writes this message when an allocation fails, and then aborts the process.
    if said.contains("memory allocation of ") {
        return LoadFault::CompileMemory(task.memory);
    }
    let said = match said.trim() {
        "" => String::new(),
        said => format!(": {}", harmless(said, 512)),
    };
    LoadFault::Compiler(format!("the process that compiles ended with {status}{said}"))
}
