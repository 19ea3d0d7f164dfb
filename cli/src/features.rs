//! What the features of this build decide: where `weir` compiles components, and which tables its configurations have.

use std::{path::Path, process::ExitCode};

use weir_host::{
    component::Compilation,
    config::{Config, ConfigErrors, Loader},
};

/// Reads a configuration file and the files that it includes.
pub(crate) fn load(path: &Path) -> Result<Config, ConfigErrors> {
    loader().load(path)
}

/// Reads configurations with the tables of this program, also at a reload.
#[cfg(feature = "gateway")]
pub(crate) fn loader() -> Loader {
    weir_host::loader().section::<weir_gateway::GatewayConfig>()
}

/// Reads configurations with the tables of this program.
#[cfg(not(feature = "gateway"))]
pub(crate) fn loader() -> Loader {
    weir_host::loader().refuse("gateway", "cannot be used: this build of Weir has no gateway")
}

/// The argument with which this program starts itself to compile.
#[cfg(feature = "compiler")]
const HELPER: &str = "compile-helper";

/// Compiles in a child process of this program, even if its file was replaced since.
#[cfg(feature = "compiler")]
pub(crate) fn compilation() -> Compilation {
    Compilation::Child { program: "/proc/self/exe".into(), arguments: vec![HELPER.into()] }
}

/// Only artifacts run.
#[cfg(not(feature = "compiler"))]
pub(crate) fn compilation() -> Compilation {
    Compilation::PrecompiledOnly
}

/// Compiles, if this process was started for that.
#[cfg(feature = "compiler")]
pub(crate) fn compile_helper() -> Option<ExitCode> {
    let is_helper = std::env::args_os().nth(1).is_some_and(|first| first == HELPER);
    is_helper.then(weir_host::component::compile_helper)
}

/// No process is started for that.
#[cfg(not(feature = "compiler"))]
pub(crate) fn compile_helper() -> Option<ExitCode> {
    None
}
