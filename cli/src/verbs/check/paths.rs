//! Paths of a configuration on this machine: Main's own directories, and the files of hooks.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use weir_host::{
    Config,
    component::{self, artifact_facts},
    config::ConfigError,
    hooks::{HookDirConfig, HooksConfig},
};

use super::needs;
use crate::exit::chain;

/// Returns errors and warnings about directories that Main could not write to. Of a cache, or of another
/// user's directory for data or state, there is only a warning: Main needs no cache, and may run as that user.
pub(super) fn dirs(config: &Config) -> (Vec<ConfigError>, Vec<String>) {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    if let Some((dir, error, _)) = config.main.cache().and_then(not_writable) {
        warnings.push(format!(
            "in `main.cache-dir`: this user cannot write to `{}`: {error}. `weir run` would compile at each start",
            dir.display()
        ));
    }
    let kept = [
        ("main.data-dir", &config.main.data_dir, "have no stores"),
        ("main.state-dir", &config.main.state_dir, "keep versions in memory, and lose them at its end"),
    ];
    for (key, dir, then) in kept {
        let Some((dir, error, is_ours)) = dir.as_deref().and_then(not_writable) else { continue };
        let message = format!(
            "in `{key}`: this user cannot write to `{}`: {error}. `weir run` would {then}",
            dir.display()
        );
        if is_ours {
            errors.push(ConfigError::new(key, message, None));
        } else {
            warnings.push(message);
        }
    }
    (errors, warnings)
}

/// Returns an error if the certificates of `http.ca-file` cannot be used.
#[cfg(feature = "http")]
pub(super) fn certificates(config: &Config) -> Option<ConfigError> {
    let error = config.section::<weir_host::http::HttpConfig>()?.check_certificates().err()?;
    Some(ConfigError::new("http.ca-file", format!("`weir run` would not start: {error}"), None))
}

/// Returns the directory or its nearest parent that exists, if this user cannot write there; why; and whether it is
/// this user's or on a read-only file system.
fn not_writable(dir: &Path) -> Option<(&Path, io::Error, bool)> {
    let (dir, found) = dir.ancestors().find_map(|dir| Some((dir, fs::metadata(dir).ok()?)))?;
    // The check writes nothing. The dot makes it fail for a file in the place of a directory.
    let access = Access::WRITE_OK | Access::EXEC_OK;
    let error = io::Error::from(accessat(CWD, dir.join("."), access, AtFlags::EACCESS).err()?);
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    let is_ours = is_ours || error.kind() == io::ErrorKind::ReadOnlyFilesystem;
    Some((dir, error, is_ours))
}

/// Returns errors and warnings about the files of hooks: one that is no hook ends every run of its directory. A
/// directory that cannot be read has a warning elsewhere.
pub(super) fn hooks(config: &Config) -> (Vec<ConfigError>, Vec<String>) {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for (name, dir) in config.section::<HooksConfig>().into_iter().flat_map(|hooks| &hooks.0) {
        let key = format!("hooks.{name}");
        for path in dir.files().unwrap_or_default() {
            let shown = path.display();
            match of_file(&path, dir) {
                Ok(found) => {
                    warnings
                        .extend(found.into_iter().map(|text| format!("`{key}`: the hook `{shown}`: {text}")));
                }
                Err(fault) => {
                    let message = format!("in `{key}`: the hook `{shown}` cannot run: {fault}");
                    errors.push(ConfigError::new(format!("{key}.dir"), message, None));
                }
            }
        }
    }
    (errors, warnings)
}

fn of_file(path: &Path, dir: &HookDirConfig) -> Result<Vec<String>, String> {
    if artifact_facts(path).map_err(|error| chain(&error.into()))?.is_some() {
        return Ok(Vec::new());
    }
    let found = component::inspect(path).map_err(|error| chain(&error.into()))?;
    if let Some(misfit) = found.misfit_of_hook(&dir.limits) {
        return Err(misfit);
    }
    Ok(needs::of_imports(&dir.grants, &found).collect())
}
