//! The work of the process that compiles one component.

use std::{
    io::{self, BufRead, Read, Write},
    path::Path,
    process::ExitCode,
};

use rustix::{io::Errno, process::Resource};
use wasmparser::{Parser, Payload};
use weir_config::{ArtifactHash, Limits, Traces};
use weir_confinement::{confine, limit};

use super::{
    child::{CompileAnswer, CompileRequest},
    code, packed, symbols,
};
use crate::{
    calibration::MODULE,
    engine::{AddressClass, CompileTarget, EngineKind},
    exports::to_be_compiled,
    features::Uses,
    fit::Fit,
    inspect::{ContractSections, Inspection},
};

/// The most bytes of the first line of standard input.
const MAX_REQUEST: u64 = 1024 * 1024;

/// Compiles one component under limits, for a Main that started this program to do so: see
/// [`Compilation::Child`](crate::Compilation::Child). Reads standard input and writes standard output. The program
/// returns the result from its `main`, does nothing before the call, and has no other thread.
///
/// The process lives no longer than the thread that started it, and gets only the address space and processor time it was
/// told. As far as the kernel can hold it to that, it reads its standard input, writes its standard output and error, and
/// does nothing else.
#[must_use]
pub fn compile_helper() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _nobody = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// Confines and limits this process, reads the request and the component, compiles, and writes the answer.
fn work() -> io::Result<()> {
    let missing = confine()?;
    // Before any byte of the component is here.
    io::stdout().write_all(&[missing.byte()])?;
    io::stdout().flush()?;
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    stdin.by_ref().take(MAX_REQUEST).read_until(b'\n', &mut line)?;
    let request: CompileRequest = serde_json::from_slice(&line)?;
    limit(Resource::Cpu, request.seconds)?;
    limit(Resource::As, request.memory)?;
    let mut component = Vec::new();
    let traces = if request.lines { Traces::Lines } else { Traces::Functions };
    let read = stdin.read_to_end(&mut component).map_err(wasmtime::Error::from);
    let compiled = read.map_err(CompileError::Invalid).and_then(|_| {
        let class = if request.is_small { AddressClass::Small } else { AddressClass::Large };
        compile(&component, &request.fit, request.target.as_deref(), class, traces)
    });
    let said = |text: String| text.chars().take(1000).collect::<String>().into_bytes();
    let (answer, body) = match compiled {
        Ok(code) => (CompileAnswer::Compiled, code),
        Err(CompileError::Contracts(error)) => (CompileAnswer::BadContracts, said(error)),
        Err(CompileError::Misfit(error)) => (CompileAnswer::Misfit, said(error)),
        Err(CompileError::Invalid(error)) if is_out_of_memory(&error) => {
            (CompileAnswer::OutOfMemory, Vec::new())
        }
        Err(CompileError::Invalid(error)) => (CompileAnswer::Invalid, said(format!("{error:#}"))),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&[answer as u8])?;
    stdout.write_all(&(body.len() as u64).to_le_bytes())?;
    stdout.write_all(&body)?;
    stdout.flush()
}

/// Why a component does not compile.
#[derive(Debug)]
pub(super) enum CompileError {
    /// The contracts that the component describes are not valid, for this reason.
    Contracts(String),
    /// The component is not what it must be, for this reason.
    Misfit(String),
    /// The component is not valid, or no engine can be made for the target.
    Invalid(wasmtime::Error),
}

impl From<wasmtime::Error> for CompileError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Invalid(error)
    }
}

/// Compiles a component for an engine of Weir, on this machine or a target, if it is what it must be. Returns the bytes of a
/// [`Code`](super::code::Code).
pub(super) fn compile(
    component: &[u8],
    fit: &Fit,
    target: Option<&str>,
    class: AddressClass,
    traces: Traces,
) -> Result<Vec<u8>, CompileError> {
    let contracts = contracts(component).map_err(CompileError::Contracts)?;
    // What else cannot be read is told by the compiler.
    let found = Inspection::of(Path::new(""), component, ArtifactHash::from_bytes([0; 32]));
    let misfit = match found {
        Ok(found) => found.misfit_of(fit),
        Err(_) => Uses::of(component).misfit(fit.features),
    };
    if let Some(misfit) = misfit {
        return Err(CompileError::Misfit(misfit));
    }
    let mut limits = Limits::default();
    limits.features = fit.features;
    let kind = EngineKind::of(&limits, traces);
    let is_for_others = target.is_some();
    let (target, config) = match target {
        None => (CompileTarget::of_main(class), kind.config(class)?),
        Some(_) => {
            let target = CompileTarget::new(target, Some(class)).map_err(wasmtime::Error::from)?;
            let config = kind.config_for(&target)?;
            (target, config)
        }
    };
    let target = target.bytes().ok_or_else(|| wasmtime::format_err!("the name of its target is too long"))?;
    let engine = wasmtime::Engine::new(&config)?;
    let mut code = engine.precompile_component(component)?;
    symbols::remove(&mut code);
    // A device without the compiler uses the kernel to measure the time that fuel takes.
    let kernel = if is_for_others { packed::pack(&engine.precompile_module(MODULE)?) } else { Vec::new() };
    let declared = declared(component)?.saturating_mul(FOR_DECLARED);
    let footprint = ((code.len() + contracts.len()) as u64).saturating_add(declared);
    code.splice(..0, code::head(footprint, &contracts, &kernel, &target));
    Ok(code)
}

/// Returns the contracts that a component describes, one a line, or what is wrong with them. The interfaces that it exports
/// follow. Returns an empty text for a component that cannot be parsed, because the compiler then tells what is wrong.
fn contracts(component: &[u8]) -> Result<String, String> {
    let (mut sections, mut exports, mut depth) = (ContractSections::default(), Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::CustomSection(section)) => sections.add(section.name(), section.data()),
            Ok(Payload::ComponentExportSection(section)) if depth == 0 => {
                let names = section.into_iter().filter_map(|export| Some(export.ok()?.name.name.to_owned()));
                exports.extend(names);
            }
            Ok(_) => {}
            Err(_) => return Ok(String::new()),
        }
    }
    sections.text(&to_be_compiled(component, &exports))
}

/// Bytes of Main's memory for each byte of declarations, such as types and names. An exported name takes 7 bytes of the
/// file and 169 of Main.
const FOR_DECLARED: u64 = 32;

/// Returns the bytes of a component other than functions, data and custom sections.
fn declared(component: &[u8]) -> wasmtime::Result<u64> {
    let mut bytes = 0;
    for payload in Parser::new(0).parse_all(component) {
        let section = match payload? {
            // The content of these sections follows as payloads of its own.
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
