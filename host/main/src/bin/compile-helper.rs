//! The child process that compiles one component for Main: see `Compilation::Child`.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_host::component::compile_helper()
}
