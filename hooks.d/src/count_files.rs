//! Warns if the hooks' directory has more than `$MAX_FILES` files and directories, by default 1000.

use std::{env, fs, process::ExitCode};

/// The exit code for too many files. It is a warning, so the next hook still runs.
const TOO_MANY_FILES: u8 = 33;

fn main() -> ExitCode {
    example_hooks::ended(count())
}

fn count() -> Result<(), String> {
    let most: usize = match env::var("MAX_FILES") {
        Ok(most) => most.parse().map_err(|_| format!("`MAX_FILES` is `{most}`: it must be a number"))?,
        Err(_) => 1000,
    };
    let root = example_hooks::root_dir();
    let entries =
        fs::read_dir(&root).map_err(|error| format!("cannot read `{}`: {error}", root.display()))?;
    if entries.take(most.saturating_add(1)).count() > most {
        eprintln!("there are more than {most} files in `{}`", root.display());
        weir_sdk::hook::exit(TOO_MANY_FILES);
    }
    Ok(())
}
