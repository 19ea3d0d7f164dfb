//! What the features of this build decide: where `weir` compiles components, and which tables its configurations have.

use std::{path::Path, process::ExitCode, sync::LazyLock};

use weir_host::{
    component::Compilation,
    config::{Config, ConfigErrors, Loader},
};

/// Reads a configuration file and the files that it includes.
pub(crate) fn load(path: &Path) -> Result<Config, ConfigErrors> {
    loader().load(path)
}

/// The loader of configurations with the tables of this program. Reloads use it, too.
#[cfg(feature = "gateway")]
pub(crate) fn loader() -> Loader {
    weir_host::loader().section::<weir_gateway::GatewayConfig>()
}

/// The loader of configurations with the tables of this program. It refuses the gateway's table.
#[cfg(not(feature = "gateway"))]
pub(crate) fn loader() -> Loader {
    weir_host::loader().without("gateway", "gateway")
}

/// The version of this program, and the features that it was built with and without.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let all = [
            ("compiler", cfg!(feature = "compiler")),
            ("cross-compiler", cfg!(feature = "cross-compiler")),
            ("gateway", cfg!(feature = "gateway")),
            ("gateway-tls", cfg!(feature = "gateway-tls")),
            ("http", cfg!(feature = "http")),
            ("otlp", cfg!(feature = "otlp")),
            ("packages", cfg!(feature = "packages")),
            ("pulley", cfg!(feature = "pulley")),
            ("store", cfg!(feature = "store")),
            ("tools", cfg!(feature = "tools")),
        ];
        let line = |word, has| {
            let named = all.iter().filter(|(_, is_in)| *is_in == has).map(|(name, _)| *name);
            let named = named.collect::<Vec<_>>().join(", ");
            if named.is_empty() { named } else { format!("\n{word}: {named}") }
        };
        [env!("CARGO_PKG_VERSION"), &line("with", true), &line("without", false)].concat()
    });
    &VERSION
}

/// The argument with which this program starts itself to compile.
#[cfg(feature = "compiler")]
const HELPER: &str = "compile-helper";

/// Components are compiled in a child process of this program, even if the program's file was replaced after its start.
#[cfg(feature = "compiler")]
pub(crate) fn compilation() -> Compilation {
    Compilation::Child { program: "/proc/self/exe".into(), arguments: vec![HELPER.into()] }
}

/// Components are not compiled: this build runs only artifacts.
#[cfg(not(feature = "compiler"))]
pub(crate) fn compilation() -> Compilation {
    Compilation::PrecompiledOnly
}

/// Returns what to warn of, if a process that compiled was confined less than it should be.
#[cfg(feature = "compiler")]
pub(crate) fn confinement_warning() -> Option<String> {
    weir_host::component::confinement_warning()
}

/// Returns `None`: without the compiler, no process compiles.
#[cfg(not(feature = "compiler"))]
pub(crate) fn confinement_warning() -> Option<String> {
    None
}

/// Compiles and returns the exit code, if this process was started for that. Otherwise returns `None`.
#[cfg(feature = "compiler")]
pub(crate) fn compile_helper() -> Option<ExitCode> {
    let is_helper = std::env::args_os().nth(1).is_some_and(|first| first == HELPER);
    is_helper.then(weir_host::component::compile_helper)
}

/// Returns `None`: without the compiler, no process is started to compile.
#[cfg(not(feature = "compiler"))]
pub(crate) fn compile_helper() -> Option<ExitCode> {
    None
}
