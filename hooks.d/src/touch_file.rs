//! Makes the node's file, or sets its time to now.

use std::{fs::File, process::ExitCode, time::SystemTime};

fn main() -> ExitCode {
    example_hooks::ended(touch())
}

fn touch() -> Result<(), String> {
    let path = example_hooks::root_dir().join(format!("test-{}", example_hooks::node()?));
    let file = File::options().create(true).append(true).open(&path);
    file.and_then(|file| file.set_modified(SystemTime::now()))
        .map_err(|error| format!("cannot touch `{}`: {error}", path.display()))
}
