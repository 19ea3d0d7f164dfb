//! Compiles components for other devices, and signs the result.

use std::path::Path;

use weir_config::{AddressSpace, Limits, Traces};

use super::{
    Compilation, Exported, LoadError, LoadFault, SigningKey, apart,
    code::Code,
    compilation::CompileTask,
    input::{ComponentInput, InputKind, InputLimits},
    linked,
    load_permit::LoadPermit,
};
use crate::{
    engine::{AddressClass, CompileTarget, EngineKind, Runtime},
    exit::said,
    fit::{Fit, World},
    instance_state::InstanceState,
};

/// Compiles a component for other devices and signs the result. The devices must know the key's
/// [`TrustedKey`](weir_config::TrustedKey).
///
/// The code uses only what every processor of the target's kind has. Without a target, the component is compiled for
/// this machine's kind, with a large address space if addresses have 64 bits. With [`Traces::Lines`] the artifact is
/// larger, and traces tell lines whatever the extension's configuration says.
///
/// # Errors
///
/// Fails with the error that an extension of this file with these limits would have at its start, also for imports that
/// Weir does not offer. To check these, the component is compiled for this machine, too. Also fails if the file is an
/// artifact, or nothing compiles for the target.
pub fn compile(
    path: &Path,
    target: Option<&CompileTarget>,
    limits: &Limits,
    traces: Traces,
    compilation: &Compilation,
    key: &SigningKey,
) -> Result<Vec<u8>, LoadError> {
    let failed = |hash| move |fault: LoadFault| fault.of(path.into(), hash);
    let open = || {
        let limits_of_file = InputLimits { file_size: limits.file_size, code_size: 0 };
        let input = ComponentInput::in_file(path, None, limits_of_file)?;
        if input.kind == InputKind::Artifact { Err(LoadFault::NotWasm) } else { Ok(input) }
    };
    let compile = |input, target: &CompileTarget, limits: &Limits| {
        let fit = Fit { features: limits.features, ..Fit::ANY };
        let task = CompileTask::new(fit, limits, traces, Some(target.triple()), target.address_class());
        apart(compilation.compile(input, task, LoadPermit::alone(path)))
            .unwrap_or_else(|error| Err(LoadFault::Compiler(error.to_string())))
    };
    let (largest, _) = AddressClass::of(AddressSpace::Large);
    let of_this_machine = CompileTarget::of_main(largest);
    let target = target.unwrap_or(&of_this_machine);
    let input = open().map_err(failed(None))?;
    let hash = input.hash;
    let failed = failed(Some(hash));
    let code = compile(input, target, limits).map_err(&failed)?;
    // The size of code for this machine is not limited, because the limit is for the device.
    let mut limits_here = limits.clone();
    limits_here.code_size = Limits::max().code_size;
    let code_here = if target.fits(&of_this_machine) {
        None
    } else {
        let input = open().map_err(&failed)?;
        if input.hash != hash {
            return Err(failed(LoadFault::Changed));
        }
        Some(compile(input, &of_this_machine, &limits_here).map_err(&failed)?)
    };
    let (checked, limits) = code_here.as_ref().map_or((&code, limits), |here| (here, &limits_here));
    check_links(checked, largest, limits, traces).map_err(&failed)?;
    Ok(key.sign(code.bytes()))
}

/// Checks that a Main of this version can load the code: that its imports are offered, and its exports are there.
fn check_links(code: &Code, class: AddressClass, limits: &Limits, traces: Traces) -> Result<(), LoadFault> {
    let engine = |error: wasmtime::Error| LoadFault::Engine(said(&error));
    let runtime = Runtime::new(class).map_err(engine)?;
    let engines = runtime.engines(EngineKind::of(limits, traces)).map_err(engine)?;
    let links = |world| linked::<InstanceState>(code, &engines, class, limits.code_size, world, None);
    // Each fits one world, and the error of one that fits none is that of a program.
    let Err(fault) = links(World::Program) else { return Ok(()) };
    let is_other = links(World::HttpServer).is_ok()
        || links(World::Exports).is_ok_and(|(component, ..)| !Exported::of(&component).is_empty());
    if is_other { Ok(()) } else { Err(fault) }
}
