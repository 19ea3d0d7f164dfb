//! The process that compiles one component, as it sees itself.

use std::{
    fs,
    io::{self, BufRead, Read, Write},
    process::ExitCode,
};

use rustix::{
    io::Errno,
    process::{
        DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
        set_parent_process_death_signal, setrlimit,
    },
};
use wasmparser::{Parser, Payload};
use weir_config::{Limits, Traces};

use super::{
    child::{CompileAnswer, CompileRequest},
    symbols,
};
use crate::engine::EngineKind;

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
    let request: CompileRequest = serde_json::from_slice(&line)?;
    // Should the machine run out of memory, this is what it can do without.
    let _unasked = fs::write("/proc/self/oom_score_adj", "1000");
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Cpu, request.seconds)?;
    limit(Resource::As, request.memory)?;
    let mut component = Vec::new();
    let traces = if request.lines { Traces::Lines } else { Traces::Functions };
    let read = stdin.read_to_end(&mut component).map_err(wasmtime::Error::from);
    let (answer, body) = match read.and_then(|_| compile(&component, request.target.as_deref(), traces)) {
        Ok(code) => (CompileAnswer::Compiled, code),
        Err(error) if is_out_of_memory(&error) => (CompileAnswer::OutOfMemory, Vec::new()),
        Err(error) => {
            (CompileAnswer::Invalid, format!("{error:#}").chars().take(1000).collect::<String>().into_bytes())
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

/// The code that an engine of Weir runs, on this machine or a target, as [`Code`](super::code::Code) has it.
pub(super) fn compile(component: &[u8], target: Option<&str>, traces: Traces) -> wasmtime::Result<Vec<u8>> {
    let mut config = EngineKind::of(&Limits::default(), traces).config();
    if let Some(target) = target {
        config.target(target)?;
    }
    let mut code = wasmtime::Engine::new(&config)?.precompile_component(component)?;
    symbols::remove(&mut code);
    let footprint = (code.len() as u64).saturating_add(declared(component)?.saturating_mul(FOR_DECLARED));
    code.splice(..0, footprint.to_le_bytes());
    Ok(code)
}

/// Bytes of Main's memory for each byte of a component that declares something, such as a type or a name: a
/// name that is exported takes 7 bytes of the file and 169 of Main.
const FOR_DECLARED: u64 = 32;

/// Bytes of a component that are neither functions nor data nor for people to read.
fn declared(component: &[u8]) -> wasmtime::Result<u64> {
    let mut bytes = 0;
    for payload in Parser::new(0).parse_all(component) {
        let section = match payload? {
            // What is inside comes after it.
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => None,
            Payload::CodeSectionStart { .. } | Payload::DataSection(_) | Payload::CustomSection(_) => None,
            payload => payload.as_section(),
        };
        bytes += section.map_or(0, |(_, range)| range.len() as u64);
    }
    Ok(bytes)
}

fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<wasmtime::OutOfMemory>()
            || cause.downcast_ref() == Some(&Errno::NOMEM)
            || cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
    })
}
