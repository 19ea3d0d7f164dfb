//! A changed entry of the cache.

use std::{fs, path::PathBuf};

use weir_host::{MainConfig, control::ExtensionState};

use super::{changed, small_component};
use crate::{
    scratch,
    stage::{PATIENCE, Stage, extension},
};

thread_local! {
    static CACHED: Cached = Cached::new();
}

struct Cached {
    stage: Stage,
    /// The path and the content of the entry.
    entry: PathBuf,
    original: Vec<u8>,
}

/// Changes the entry and starts the extension: Main compiles it again, and restores the entry.
pub(super) fn start_changed(changes: &[u8]) {
    CACHED.with(|cached| cached.stage.runtime.block_on(cached.start_changed(changes)));
}

impl Cached {
    fn new() -> Self {
        let dir = scratch();
        let mut fuzz = extension(&dir, "fuzz", &small_component());
        fuzz.limits.ready_timeout = PATIENCE;
        let mut main = MainConfig::default();
        let cache = dir.path().join("cache");
        main.cache_dir = Some(cache.clone());
        let stage = Stage::new(dir, main, vec![fuzz]);
        let hash = stage.main.control().status("fuzz").unwrap().hash.unwrap();
        let entry = fs::read_dir(cache)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.to_str().unwrap().contains(&hash))
            .unwrap();
        Self { stage, original: fs::read(&entry).unwrap(), entry }
    }

    async fn start_changed(&self, changes: &[u8]) {
        fs::write(&self.entry, changed(&self.original, changes)).unwrap();
        let control = self.stage.main.control();
        // A running extension is not read again.
        control.stop("fuzz").await.unwrap();
        control.start("fuzz").await.unwrap();
        assert_eq!(control.status("fuzz").unwrap().state, ExtensionState::Ready);
        assert!(fs::read(&self.entry).unwrap() == self.original, "something else is kept");
        self.stage.check().await;
    }
}
