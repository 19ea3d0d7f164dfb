//! Reads only the path of the control socket from a file.

use std::path::{Path, PathBuf};

use super::{
    ConfigErrors, MainConfig,
    error::{ConfigError, Location},
    file,
    read::Reader,
    section::{Located, nearest},
    sections::{SOCKET, socket_in},
};

const KEY: &str = "control-socket";

/// `main.control-socket` of a file, or the default.
///
/// Fails if the file is unreadable, or its socket wrong or hidden by a syntax error: the caller may be about to
/// stop the Main at that socket.
pub(super) fn of_file(path: &Path) -> Result<PathBuf, ConfigErrors> {
    let mut reader = Reader::new(file::open(path)?);
    let found = reader.read(|file| {
        file.table("main", |main| {
            let dir = main.dir().to_owned();
            main.text(KEY, SOCKET, |text| socket_in(&dir, text))
        })
    });
    let (mut errors, more) = reader.finish();
    errors.retain(|error| concerns(error, found.as_ref()));
    if errors.is_empty() {
        Ok(found.map_or_else(|| MainConfig::default().control_socket, Located::into_value))
    } else {
        Err(ConfigErrors::new(errors, more))
    }
}

/// Whether the error makes the socket uncertain.
fn concerns(error: &ConfigError, found: Option<&Located<PathBuf>>) -> bool {
    match error.key() {
        "" => found.is_none() || error.location().is_some_and(names_it),
        "main" => true,
        key => key.strip_prefix("main.").is_some_and(is_meant_for_it),
    }
}

/// Whether the key is on the line of a syntax error: broken or repeated.
fn names_it(location: &Location) -> bool {
    location.source.text.lines().nth(location.line() - 1).is_some_and(|line| line.contains(KEY))
}

fn is_meant_for_it(key: &str) -> bool {
    nearest(key, [KEY].into_iter()).is_some()
}
