//! Loads hooks: those that a run wants, and afterwards those for which its time was too short.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use weir_config::{ComponentSource, Traces};
use weir_guest::{Cut, FileStamp, LoadError, LoadRequest, Loaded, RunsOn, Sandbox, chain};
use weir_names::harmless;

use crate::{
    files::HookFile,
    hooks::{Dir, Gate},
    told,
};

impl Dir {
    pub(crate) async fn load(&self, runs_on: &RunsOn, file: &HookFile) -> Result<Loaded<Sandbox>, LoadError> {
        let Self { config, hooks, .. } = self;
        let path = || config.dir.join(&file.name);
        let (component, now) = (ComponentSource::Path(path()), SystemTime::now());
        let name = harmless(path().display(), 256);
        let wanted = LoadRequest {
            name: &name,
            component: &component,
            plugin_dir: Some(&config.dir),
            sha256: None,
            limits: &config.limits,
            traces: Traces::default(),
            may_block: runs_on.may_block(),
        };
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

    /// Loads what a run had no time for, so that a later run finds it. One task for each directory at a time: more calls
    /// that come too early begin none. It ends with the directory, such as when a reload changes that.
    pub(crate) fn load_later(self: &Arc<Self>, files: Vec<HookFile>, gate: Gate) {
        let Ok(turn) = self.loads.clone().try_acquire_owned() else { return };
        let (configured, runs_on) = (Arc::downgrade(self), self.on_worker());
        let work = async move {
            let _turn = turn;
            for file in files {
                let Some(dir) = configured.upgrade() else { return };
                let is_known = dir.known.lock().get(&file).is_some();
                if is_known {
                    continue;
                }
                // Others may be compiled before it.
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
