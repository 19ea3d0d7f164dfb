//! Where components are compiled: in a process of their own, in Main, or not at all. Also lists the compilations under
//! way.

use std::collections::HashMap;
#[cfg(feature = "compiler")]
use std::{
    ffi::OsString,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
#[cfg(feature = "compiler")]
use weir_config::{Limits, Traces};
use weir_reports::BeingCompiled;

#[cfg(feature = "compiler")]
use super::{
    child,
    code::Code,
    error::LoadFault,
    helper::{self, CompileError},
    input::ComponentInput,
    load_permit::LoadPermit,
};
#[cfg(feature = "compiler")]
use crate::{engine::AddressClass, exit::said, fit::Fit};

/// Where a Main has components compiled to machine code.
///
/// A valid component can be made so that compiling it takes hours or all memory. To run components of others, choose a
/// child process, which bounds both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compilation {
    /// Components are compiled nowhere: only artifacts run, compiled elsewhere and signed with one of
    /// [`MainConfig::trusted_keys`](weir_config::MainConfig::trusted_keys). This is the only choice without the feature
    /// `compiler`.
    PrecompiledOnly,
    /// Components are compiled in Main, each on a thread of its own.
    /// [`Limits::file_size`](weir_config::Limits::file_size) and [`Limits::code_size`](weir_config::Limits::code_size)
    /// hold; nothing limits time and memory.
    #[cfg(feature = "compiler")]
    InProcess,
    /// Each component is compiled in a process of its own, with all limits. The process can only read the component and
    /// write its answer, as far as the kernel has the means.
    #[cfg(feature = "compiler")]
    Child {
        /// The absolute path of a program that with these arguments only calls
        /// [`compile_helper`](crate::compile_helper), of this same version of Weir. `weir-compile-helper`, built with
        /// this library, is one and needs no arguments.
        program: PathBuf,
        /// The arguments of the program.
        arguments: Vec<OsString>,
    },
}

impl Default for Compilation {
    /// The choice that needs no other program: [`InProcess`](Self::InProcess) with the feature `compiler`, or else
    /// [`PrecompiledOnly`](Self::PrecompiledOnly).
    fn default() -> Self {
        #[cfg(feature = "compiler")]
        return Self::InProcess;
        #[cfg(not(feature = "compiler"))]
        Self::PrecompiledOnly
    }
}

#[cfg(feature = "compiler")]
impl Compilation {
    pub(super) async fn compile(
        &self,
        mut input: ComponentInput,
        task: CompileTask,
        permit: LoadPermit,
    ) -> Result<Code, LoadFault> {
        match self {
            Self::PrecompiledOnly => Err(LoadFault::NotCompiled),
            Self::InProcess => {
                let component = permit.read(move || input.read()).await?;
                let compiling = permit.meanwhile().for_long();
                drop(permit);
                compiling
                    .blocking(move || {
                        let CompileTask { target, class, traces, fit, .. } = &task;
                        let code = helper::compile(&component, fit, target.as_deref(), *class, *traces);
                        code.map(Code::compiled).map_err(|error| match error {
                            CompileError::Contracts(error) => LoadFault::Contracts(error),
                            CompileError::Misfit(error) => task.misfit(error),
                            CompileError::Invalid(error) => LoadFault::Compile(said(&error)),
                        })
                    })
                    .await
            }
            Self::Child { program, arguments } => {
                child::compile(program, arguments, input, task, permit).await
            }
        }
    }
}

/// The limits and the target of one compilation.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug)]
pub(super) struct CompileTask {
    /// What the component must be, judged before it is compiled.
    pub(super) fit: Fit,
    /// The target to compile for. None for this machine.
    pub(super) target: Option<String>,
    pub(super) class: AddressClass,
    pub(super) traces: Traces,
    pub(super) code_size: u64,
    pub(super) memory: u64,
    pub(super) timeout: Duration,
}

#[cfg(feature = "compiler")]
impl CompileTask {
    pub(super) fn new(
        fit: Fit,
        limits: &Limits,
        traces: Traces,
        target: Option<String>,
        class: AddressClass,
    ) -> Self {
        let Limits { code_size, compile_memory, compile_timeout, .. } = *limits;
        Self { fit, target, class, traces, code_size, memory: compile_memory, timeout: compile_timeout }
    }

    /// The fault of a component that is not what it must be.
    pub(super) fn misfit(&self, reason: String) -> LoadFault {
        LoadFault::World { world: self.fit.world_name(), reason }
    }
}

/// The compilations under way, by the name of the extension or hook that each is for.
#[derive(Debug, Default)]
pub struct Compilations(Mutex<HashMap<String, BeingCompiled>>);

/// Keeps a compilation in the list. The compilation leaves the list when this is dropped.
#[cfg(feature = "compiler")]
pub(super) struct UnderWay {
    compilations: Arc<Compilations>,
    name: String,
}

impl Compilations {
    /// Returns the compilation for this extension or hook, if one is under way.
    pub fn of(&self, name: &str) -> Option<BeingCompiled> {
        self.0.lock().get(name).copied()
    }

    /// Lists a compilation until what is returned is dropped.
    #[cfg(feature = "compiler")]
    pub(super) fn begin(self: &Arc<Self>, name: &str, bytes: u64) -> UnderWay {
        self.0.lock().insert(name.to_owned(), BeingCompiled { bytes, since: SystemTime::now() });
        UnderWay { compilations: self.clone(), name: name.to_owned() }
    }
}

#[cfg(feature = "compiler")]
impl Drop for UnderWay {
    fn drop(&mut self) {
        self.compilations.0.lock().remove(&self.name);
    }
}
