//! The program that a Main starts to compile one component: see `Compilation::Child`.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_host::component::compile_helper()
}
