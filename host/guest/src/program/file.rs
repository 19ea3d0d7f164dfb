//! Opening a file that may be an extension, without being led astray.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Component, Path},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use super::error::LoadFault;

/// Opens a file to read it. Below `plugin_dir`, if there is one, no symlink is followed.
pub(super) fn open(path: &Path, plugin_dir: Option<&Path>) -> Result<fs::File, LoadFault> {
    // It must not lead elsewhere by a symlink, or hang as a FIFO without a writer.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file_in = |dir: Option<&OwnedFd>, name: &Path| {
        let opened = match dir {
            Some(dir) => openat(dir, name, OFlags::RDONLY | flags, Mode::empty()),
            None => openat(CWD, name, OFlags::RDONLY | flags, Mode::empty()),
        };
        opened.map(fs::File::from).map_err(|error| match error {
            Errno::LOOP | Errno::NXIO => LoadFault::NotAFile,
            error => LoadFault::Read(error.into()),
        })
    };
    let Some(plugin_dir) = plugin_dir else { return file_in(None, path) };
    let inside = path.strip_prefix(plugin_dir).map_err(|_| LoadFault::Outside)?;
    let mut at = plugin_dir.to_owned();
    // The operator's directory may be a symlink itself; others may write inside it.
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir =
        openat(CWD, plugin_dir, directory, Mode::empty()).map_err(|error| LoadFault::Read(error.into()))?;
    let mut parts = inside.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(LoadFault::Outside) };
        if parts.peek().is_none() {
            return file_in(Some(&dir), name.as_ref());
        }
        at.push(name);
        dir =
            openat(&dir, name, directory | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => LoadFault::Detour(at.clone()),
                error => LoadFault::Read(error.into()),
            })?;
    }
    Err(LoadFault::NotAFile)
}
