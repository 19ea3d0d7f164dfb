//! The process that compiles one component, as it sees itself.

use std::{
    io::{self, BufRead, Read, Write},
    process::ExitCode,
};

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};

use super::child::{Answer, Request};
use crate::{config::Limits, extension::engine::Stack};

/// Bytes of the first line of what it is told.
const MAX_REQUEST: u64 = 4096;

/// Compiles one component under limits, for a Main that started this program to do so: see
/// [`Compilation::Child`](crate::Compilation::Child). Reads standard input and writes standard output. Return
/// what it returns from `main`, and do nothing before it.
///
/// The process lives no longer than the thread that started it, writes no file, and gets no more address space
/// and processor time than it is told.
#[must_use]
pub fn compile_helper() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nobody else to tell.
            let _nobody = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn work() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // What it is given may be nobody else's business.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    stdin.by_ref().take(MAX_REQUEST).read_until(b'\n', &mut line)?;
    let request: Request = serde_json::from_slice(&line)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Cpu, request.seconds)?;
    limit(Resource::As, request.memory)?;
    let mut component = Vec::new();
    stdin.read_to_end(&mut component)?;
    let (answer, body) = match compile(&component, request.target.as_deref()) {
        Ok(code) => (Answer::Compiled, code),
        Err(error) if is_out_of_memory(&error) => (Answer::OutOfMemory, Vec::new()),
        Err(error) => {
            (Answer::Invalid, format!("{error:#}").chars().take(1000).collect::<String>().into_bytes())
        }
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[answer as u8])?;
    stdout.write_all(&(body.len() as u64).to_le_bytes())?;
    stdout.write_all(&body)?;
    stdout.flush()
}

/// Sets a limit for good, unless a lower one is set already.
fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    Ok(())
}

/// The code that an engine of Weir runs, on this machine or a target.
pub(super) fn compile(component: &[u8], target: Option<&str>) -> wasmtime::Result<Vec<u8>> {
    let mut config = Stack::of(&Limits::default()).config();
    if let Some(target) = target {
        config.target(target)?;
    }
    wasmtime::Engine::new(&config)?.precompile_component(component)
}

fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
    })
}
