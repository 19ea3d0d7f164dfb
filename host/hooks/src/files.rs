//! The hooks' files of a directory, and their loaded components.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::Path,
    time::SystemTime,
};

use weir_guest::{FileStamp, Loaded, Sandbox};

/// Hooks that a directory may have.
pub(super) const MAX_HOOKS: usize = 1000;

#[derive(Clone, Debug)]
pub(super) struct HookFile {
    pub(super) name: OsString,
    /// `None` if its metadata cannot be read.
    pub(super) stamp: Option<FileStamp>,
}

/// Loaded components of a directory. Without a stamp the file may have changed; the component is kept to avoid
/// compiling the same content again.
#[derive(Debug, Default)]
pub(super) struct KnownHooks(BTreeMap<OsString, (Option<FileStamp>, Loaded<Sandbox>)>);

/// The hooks of a directory, sorted by the bytes of their names. At most `max` and one more.
pub(super) fn list(dir: &Path, suffixes: &[String], max: usize) -> io::Result<Vec<HookFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if files.len() > max {
            break;
        }
        if !is_hook(&name, suffixes) {
            continue;
        }
        match FileStamp::of(&dir.join(&name)) {
            Ok(stamp) => files.push(HookFile { name, stamp: Some(stamp) }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Reading the file reports the error.
            Err(_) => files.push(HookFile { name, stamp: None }),
        }
    }
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn is_hook(name: &OsStr, suffixes: &[String]) -> bool {
    let name = name.as_bytes();
    !name.starts_with(b".") && suffixes.iter().any(|suffix| name.ends_with(suffix.as_bytes()))
}

impl KnownHooks {
    pub(super) fn get(&self, file: &HookFile) -> Option<Loaded<Sandbox>> {
        self.0
            .get(&file.name)
            .filter(|(stamp, _)| stamp.is_some() && *stamp == file.stamp)
            .map(|(_, loaded)| loaded.clone())
    }

    /// Keeps a component; its loading began at `now`. Keeps the stamp only if it is still `after` and settled: a file
    /// that has just changed could change again unnoticed.
    pub(super) fn keep(
        &mut self,
        file: &HookFile,
        loaded: Loaded<Sandbox>,
        after: FileStamp,
        now: SystemTime,
    ) {
        let stamp = (file.stamp == Some(after) && after.is_settled(now)).then_some(after);
        self.0.insert(file.name.clone(), (stamp, loaded));
    }

    /// Forgets other files. `files` is sorted.
    pub(super) fn retain(&mut self, files: &[HookFile]) {
        self.0.retain(|name, _| files.binary_search_by(|file| file.name.cmp(name)).is_ok());
    }
}
