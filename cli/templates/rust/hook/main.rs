//! Warns if there are too many files in `/data`.

use std::{fs, process::ExitCode};

/// An exit code from 32 to 63 is a warning: the next hook runs.
const TOO_MANY: u8 = 33;

fn main() -> ExitCode {
    let code = match fs::read_dir("/data").map(Iterator::count) {
        Ok(files) => {
            println!("{files} files");
            judge(files)
        }
        Err(error) => {
            eprintln!("cannot read `/data`: {error}");
            1
        }
    };
    weir_sdk::hook::exit(code)
}

fn judge(files: usize) -> u8 {
    if files > 1000 { TOO_MANY } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_a_thousand_files_are_a_warning() {
        assert_eq!(judge(1000), 0);
        assert_eq!(judge(1001), TOO_MANY);
    }
}
