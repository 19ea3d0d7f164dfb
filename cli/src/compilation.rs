//! Where `weir` compiles components: in a child process, or nowhere in a build without the compiler.

use std::process::ExitCode;

use weir_host::component::Compilation;

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
pub(crate) fn help() -> Option<ExitCode> {
    let is_helper = std::env::args_os().nth(1).is_some_and(|first| first == HELPER);
    is_helper.then(weir_host::component::compile_helper)
}

/// No process is started for that.
#[cfg(not(feature = "compiler"))]
pub(crate) fn help() -> Option<ExitCode> {
    None
}
