//! The files of a directory's hooks, and their components. A run loads the components. Those that it has no time for
//! are loaded after it, for a later run.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::Arc,
    time::{Instant, SystemTime},
};

use weir_config::ComponentSource;
use weir_guest::{Cut, FileStamp, LoadError, LoadRequest, Loaded, RunsOn, Sandbox};
use weir_names::{chain, harmless};

use crate::{
    hooks::{Dir, Gate},
    told,
};

/// The most hooks of a directory.
pub(super) const MAX_HOOKS: usize = 1000;

#[derive(Clone, Debug)]
pub(super) struct HookFile {
    pub(super) name: OsString,
    /// The state of the file when it was listed. `None` if its metadata could not be read.
    pub(super) stamp: Option<FileStamp>,
}

/// Loaded components of a directory, by the names of their files. Without a stamp the file may have changed since; the
/// component is kept to avoid compiling the same content again.
#[derive(Debug, Default)]
pub(super) struct KnownHooks(BTreeMap<OsString, (Option<FileStamp>, Loaded<Sandbox>)>);

/// Lists the hooks of a directory, sorted by the bytes of their names. Stops after `max` hooks and one more.
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
            // The error is reported when the file is read.
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
    /// The component of a file that has not changed since it was loaded.
    fn get(&self, file: &HookFile) -> Option<Loaded<Sandbox>> {
        self.0
            .get(&file.name)
            .filter(|(stamp, _)| stamp.is_some() && *stamp == file.stamp)
            .map(|(_, loaded)| loaded.clone())
    }

    /// Keeps a component whose loading began at `now`. Keeps its file's stamp only if it is the same `after` loading,
    /// and settled: a file that has just changed could change again unnoticed.
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

    /// Forgets the components of all files but these, which must be sorted by name.
    pub(super) fn retain(&mut self, files: &[HookFile]) {
        self.0.retain(|name, _| files.binary_search_by(|file| file.name.cmp(name)).is_ok());
    }
}

impl Dir {
    /// The component of a file that has not changed since it was loaded, if it may still run.
    pub(crate) fn known(&self, file: &HookFile) -> Option<Loaded<Sandbox>> {
        let Self { config, hooks, .. } = self;
        let loaded = self.known.lock().get(file)?;
        let component = ComponentSource::Path(config.dir.join(&file.name));
        let hook = LoadRequest::of_hook("", &component, &config.dir, &config.limits);
        hooks.0.programs.admits(hook, &loaded).then_some(loaded)
    }

    /// Loads a component, and keeps it for later runs.
    pub(crate) async fn load(&self, runs_on: &RunsOn, file: &HookFile) -> Result<Loaded<Sandbox>, LoadError> {
        let Self { config, hooks, .. } = self;
        let path = || config.dir.join(&file.name);
        let (component, now) = (ComponentSource::Path(path()), SystemTime::now());
        let name = harmless(path().display(), 256);
        let hook = LoadRequest::of_hook(&name, &component, &config.dir, &config.limits);
        let wanted = LoadRequest { may_block: runs_on.may_block(), ..hook };
        let loaded = hooks.0.programs.load(wanted).await?;
        let stamp = {
            let path = path();
            runs_on.blocking(move || FileStamp::of(&path)).await
        };
        if let Ok(Ok(stamp)) = stamp {
            self.known.lock().keep(file, loaded.clone(), stamp, now);
        }
        Ok(loaded)
    }

    /// Starts a task that loads what a run had no time for, so that a later run finds it. Does nothing while such a
    /// task of the directory runs. The task ends early if Main ends, or if the directory is gone, such as when a reload
    /// changes it.
    pub(crate) fn load_later(self: &Arc<Self>, files: Vec<HookFile>, gate: Gate) {
        let Ok(turn) = self.loads.clone().try_acquire_owned() else { return };
        let (configured, runs_on) = (Arc::downgrade(self), self.on_worker());
        let work = async move {
            let _turn = turn;
            for file in files {
                let Some(dir) = configured.upgrade() else { return };
                if dir.known(&file).is_some() {
                    continue;
                }
                // Other components may be compiled before this one.
                let by = Instant::now() + dir.config.limits.compile_timeout + dir.config.total_timeout;
                let load = runs_on.until(by, &gate.closing, dir.load(&runs_on, &file));
                let why = match load.await {
                    Ok(Ok(_)) => continue,
                    Ok(Err(error)) => chain(&error),
                    Err(Cut::TimedOut) => "it took too long".to_owned(),
                    Err(Cut::Interrupted) => return,
                };
                told::not_loaded(&dir.lines, dir.name.as_ref(), &file.name.to_string_lossy(), &why);
            }
        };
        drop(self.hooks.0.worker.spawn(work));
    }
}
