//! Who compiles: a process of its own, Main itself, or nobody.

#[cfg(feature = "compiler")]
use std::{ffi::OsString, path::PathBuf, time::Duration};

#[cfg(feature = "compiler")]
use weir_config::{Limits, Traces};

#[cfg(feature = "compiler")]
use super::{child, code::Code, error::LoadFault, helper, input::ComponentInput, load_permit::LoadPermit};
#[cfg(feature = "compiler")]
use crate::exit::said;

/// Who turns components into machine code for a Main.
///
/// A valid component can be made so that it takes hours or all memory to compile. Whoever runs components of
/// others chooses a child process, in which that has an end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compilation {
    /// Nobody: only artifacts run, which somebody compiled elsewhere and signed with one of
    /// [`MainConfig::trusted_keys`](weir_config::MainConfig::trusted_keys). Without the feature `compiler` there is
    /// nothing else.
    PrecompiledOnly,
    /// Main itself, each on a thread of its own. [`Limits::file_size`](weir_config::Limits::file_size) and
    /// [`Limits::code_size`](weir_config::Limits::code_size) hold; nothing limits the time and memory that it takes.
    #[cfg(feature = "compiler")]
    InProcess,
    /// A process of its own for each component, with all limits.
    #[cfg(feature = "compiler")]
    Child {
        /// The absolute path of a program that does nothing with these arguments but call
        /// [`compile_helper`](crate::compile_helper), of this same version of Weir. `weir-compile-helper`, which
        /// is built with this library, is such a program, and needs no arguments.
        program: PathBuf,
        /// What it is started with.
        arguments: Vec<OsString>,
    },
}

impl Default for Compilation {
    /// What needs no other program: [`InProcess`](Self::InProcess) with the feature `compiler`, else
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
                        let code = helper::compile(&component, task.target.as_deref(), task.traces);
                        code.map(Code::compiled).map_err(|error| LoadFault::Compile(said(&error)))
                    })
                    .await
            }
            Self::Child { program, arguments } => {
                child::compile(program, arguments, input, task, permit).await
            }
        }
    }
}

/// What one compilation may take, and for which processor it is.
#[cfg(feature = "compiler")]
#[derive(Clone, Debug)]
pub(super) struct CompileTask {
    /// None: this machine's.
    pub(super) target: Option<String>,
    pub(super) traces: Traces,
    pub(super) code_size: u64,
    pub(super) memory: u64,
    pub(super) timeout: Duration,
}

#[cfg(feature = "compiler")]
impl CompileTask {
    pub(super) fn new(limits: &Limits, traces: Traces, target: Option<String>) -> Self {
        let Limits { code_size, compile_memory, compile_timeout, .. } = *limits;
        Self { target, traces, code_size, memory: compile_memory, timeout: compile_timeout }
    }
}
