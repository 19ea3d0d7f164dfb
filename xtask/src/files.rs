//! Files and directories, with errors that name them.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::run::root;

/// The text of a file, which is named by an absolute path or by one from the root of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(root()?.join(path)).with_context(|| format!("cannot read `{}`", path.display()))
}

pub(crate) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Copies a file, and makes the directory that it belongs in.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    make_directory(to.parent().context("a file lies in no directory")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy `{}` to `{}`", from.display(), to.display()))?;
    Ok(())
}

pub(crate) fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make `{}`", path.display()))
}

/// Removes a directory and all that is in it, if it is there.
pub(crate) fn clear(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot clear `{}`", path.display()))?;
    }
    Ok(())
}
