//! Makes the directory for the hooks that follow.

use std::{fs, io::ErrorKind, process::ExitCode};

fn main() -> ExitCode {
    let root = example_hooks::root_dir();
    example_hooks::ended(match fs::create_dir(&root) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(format!("cannot make `{}`: {error}", root.display()))
        }
        _ => Ok(()),
    })
}
