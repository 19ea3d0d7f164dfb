//! Main's own directories: whether it could write there, on this machine and as this user.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use weir_host::{Config, config::ConfigError};

/// Faults and warnings. Without its cache Main compiles at each start; without its data it has no stores. A directory of
/// another user is for a Main of that user.
pub(super) fn check(config: &Config) -> (Vec<ConfigError>, Vec<String>) {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    if let Some((dir, error, _)) = config.main.cache_dir.as_deref().and_then(not_writable) {
        warnings.push(format!(
            "in `main.cache-dir`: this user cannot write to `{}`: {error}. `weir run` would compile at each start",
            dir.display()
        ));
    }
    if let Some((dir, error, is_ours)) = config.main.data_dir.as_deref().and_then(not_writable) {
        let message = format!(
            "in `main.data-dir`: this user cannot write to `{}`: {error}. `weir run` would have no stores",
            dir.display()
        );
        if is_ours {
            errors.push(ConfigError::new("main.data-dir", message, None));
        } else {
            warnings.push(message);
        }
    }
    (errors, warnings)
}

/// The directory, or the one in which it would be made, if this user cannot write there; why; and whether it is this
/// user's, or nobody's to write to.
fn not_writable(dir: &Path) -> Option<(&Path, io::Error, bool)> {
    let (dir, found) = dir.ancestors().find_map(|dir| Some((dir, fs::metadata(dir).ok()?)))?;
    // Nothing is made there. A file in a directory's place is told by the dot.
    let access = Access::WRITE_OK | Access::EXEC_OK;
    let error = io::Error::from(accessat(CWD, dir.join("."), access, AtFlags::EACCESS).err()?);
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    let is_ours = is_ours || error.kind() == io::ErrorKind::ReadOnlyFilesystem;
    Some((dir, error, is_ours))
}
