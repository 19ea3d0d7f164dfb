//! The puppet's commands for files.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use test_guests::words::{number, word};
use weir_sdk::FileWriter;

pub(crate) fn run(command: &str, rest: &str) -> Option<Result<String, String>> {
    let (path, more) = word(rest);
    let outcome = match command {
        "read" => fs::read_to_string(rest),
        "write" => none(fs::write(path, more)),
        "append" => none(append(path, more)),
        // `fill PATH N` appends N bytes.
        "fill" => match number(more) {
            Ok(bytes) => none(append(path, &"x".repeat(usize::try_from(bytes).unwrap_or_default()))),
            Err(error) => return Some(Err(error)),
        },
        "set-size" => match number(more) {
            Ok(size) => none(File::options().write(true).open(path).and_then(|file| file.set_len(size))),
            Err(error) => return Some(Err(error)),
        },
        // It stays open for as long as the instance lives.
        "open" => none(File::open(rest).map(std::mem::forget)),
        "list" => fs::read_dir(rest).map(|entries| format!("{} entries", entries.count())),
        "paths" => Ok(test_guests::paths::outcomes(Path::new(rest))),
        "make-dir" => none(fs::create_dir(path)),
        "remove" => none(fs::remove_file(path)),
        "remove-dir" => none(fs::remove_dir(path)),
        "rename" => none(fs::rename(path, more)),
        "symlink" => none(rustix::fs::symlink(path, more).map_err(Into::into)),
        "link" => none(fs::hard_link(path, more)),
        // A file without a name grows: `unlinked PATH N`.
        "unlinked" => match number(more) {
            Ok(bytes) => none(unlinked(path, bytes)),
            Err(error) => return Some(Err(error)),
        },
        _ => return None,
    };
    Some(outcome.map_err(|error| format!("{:?}", error.kind())))
}

fn none(result: io::Result<()>) -> io::Result<String> {
    result.map(|()| String::new())
}

fn append(path: &str, text: &str) -> io::Result<()> {
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    let length = file.metadata()?.len();
    FileWriter::new(file, length).write_all(text.as_bytes())
}

fn unlinked(path: &str, bytes: u64) -> io::Result<()> {
    let file = File::options().write(true).create_new(true).open(path)?;
    fs::remove_file(path)?;
    let text = "x".repeat(usize::try_from(bytes).unwrap_or_default());
    let mut writer = FileWriter::new(file, 0);
    let written = writer.write_all(text.as_bytes());
    std::mem::forget(writer);
    written
}
