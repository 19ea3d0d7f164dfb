//! The directories of the hooks, and of their files.

use std::{
    fs::{self, Permissions},
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use weir_host::{
    config::{CpuShare, DirGrant},
    hooks::HookDirConfig,
};

use super::{HOOKS, node};
use crate::guests::Guests;

/// The hooks as scripts for `/bin/sh`, in the order of [`HOOKS`]. They start no other program, except for the
/// one directory that each round makes.
const SCRIPTS: [&str; 3] = [
    "#!/bin/sh\n[ -d \"$ROOT_DIR\" ] || command -p mkdir \"$ROOT_DIR\"\n",
    "#!/bin/sh\n: >> \"$ROOT_DIR/test-$NODE\"\n",
    "#!/bin/sh\necho \"hello $NODE\"\n",
];

/// The directories of the hooks and of the scripts, and the one that they write to.
#[derive(Debug)]
pub(super) struct Site {
    programs: TempDir,
    data: TempDir,
}

impl Site {
    pub(super) fn new(guests: &Guests) -> Result<Self> {
        // The files are in memory: on a disk, the time for a file depends on other writes and recent deletions.
        let data = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let programs = tempfile::tempdir().context("cannot make a directory")?;
        let site = Self { programs, data: data.context("cannot make a directory")? };
        for dir in [site.hooks(), site.scripts()] {
            fs::create_dir(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        }
        for (hook, script) in HOOKS.into_iter().zip(SCRIPTS) {
            guests.copy_hook(hook, &site.hooks())?;
            let path = site.script(hook);
            fs::write(&path, script).with_context(|| format!("cannot write `{}`", path.display()))?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
        Ok(site)
    }

    pub(super) fn config(&self) -> Result<HookDirConfig> {
        let mut config = HookDirConfig::new(self.hooks());
        config.limits.cpu_share = CpuShare::WHOLE;
        config.grants.dirs.push(DirGrant::read_write(self.data.path(), "/data".parse()?));
        config.grants.env.insert("ROOT_DIR".to_owned(), "/data/files".to_owned());
        Ok(config)
    }

    pub(super) fn script(&self, hook: &str) -> PathBuf {
        self.scripts().join(hook)
    }

    pub(super) fn files(&self) -> PathBuf {
        self.data.path().join("files")
    }

    pub(super) fn clear(&self) -> Result<()> {
        match fs::remove_dir_all(self.files()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("cannot clean up"),
            _ => Ok(()),
        }
    }

    pub(super) fn check(&self, nodes: u32) -> Result<()> {
        let files = self.files();
        for node in (0..nodes).map(node) {
            ensure!(files.join(format!("test-{node}")).is_file(), "`{node}` has no file");
        }
        Ok(())
    }

    fn hooks(&self) -> PathBuf {
        self.programs.path().join("hooks.d")
    }

    fn scripts(&self) -> PathBuf {
        self.programs.path().join("scripts")
    }
}
