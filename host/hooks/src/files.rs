//! The files of a directory that are hooks, and what is loaded of them.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::Path,
    time::SystemTime,
};

use weir_guest::{FileStamp, Loaded, Sandbox};

/// A file that is a hook.
#[derive(Clone, Debug)]
pub(super) struct HookFile {
    pub(super) name: OsString,
    /// None: it cannot be looked at.
    pub(super) stamp: Option<FileStamp>,
}

/// What is loaded of a directory. Without a stamp nobody knows whether the file is still the same: it is kept, so that
/// the same content need not be compiled again.
#[derive(Debug, Default)]
pub(super) struct KnownHooks(BTreeMap<OsString, (Option<FileStamp>, Loaded<Sandbox>)>);

/// The hooks of a directory, sorted by the bytes of their names; one more than `max` of them if there are so many.
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
            // Whoever tries to read it says why.
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
    /// What is loaded of that file, if it is as it was then.
    pub(super) fn get(&self, file: &HookFile) -> Option<Loaded<Sandbox>> {
        self.0
            .get(&file.name)
            .filter(|(stamp, _)| stamp.is_some() && *stamp == file.stamp)
            .map(|(_, loaded)| loaded.clone())
    }

    /// Keeps what was loaded of a file from `now` on that has this stamp `after` as it had before. One that has just been
    /// changed can be changed again without a trace, and is loaded anew the next time.
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

    /// Forgets files that are not among these, which are sorted.
    pub(super) fn retain(&mut self, files: &[HookFile]) {
        self.0.retain(|name, _| files.binary_search_by(|file| file.name.cmp(name)).is_ok());
    }
}
