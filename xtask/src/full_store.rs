//! Stores of a process that is killed a thousand times, and on a disk that runs full.
//!
//! What is tested stands in `host/store/tests`. Here is what these tests need.

use std::process::Command;

use anyhow::Result;
use tempfile::TempDir;

use crate::run::{cargo, run};

const KILLS: &str = "1000";

pub(crate) fn check() -> Result<Vec<String>> {
    run(test("kills", "--nocapture")?.env("WEIR_KILLS", KILLS))?;
    let disk = match SmallDisk::mount() {
        Ok(disk) => disk,
        Err(error) => return Ok(vec![format!("a full disk, which only root can mount: {error:#}")]),
    };
    run(test("small_disk", "--ignored")?.env("WEIR_SMALL_DISK", disk.0.path()))?;
    Ok(Vec::new())
}

fn test(name: &str, option: &str) -> Result<Command> {
    cargo(["test", "--workspace", "--test", name, "--", option])
}

/// A disk of 4 MiB in memory. Dropped, it is gone.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "weir"]).arg(dir.path()))?;
        Ok(Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // If it fails, the directory stays, and the tests have been judged.
        let _unmounted = run(Command::new("umount").arg(self.0.path()));
    }
}
