//! `fork` and `exec`.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use super::{EMPTY, each};
use crate::{guests::Guests, scale::Scale};

#[derive(Debug)]
pub(super) struct Processes(PathBuf);

impl Processes {
    pub(super) fn new(guests: &Guests) -> Self {
        Self(guests.native(EMPTY))
    }

    /// Microseconds for one. Its output is not read, which would add to its time.
    pub(super) fn round(&self, scale: Scale) -> Result<f64> {
        let count = scale.pick(500, 200, 5);
        let start = Instant::now();
        for _ in 0..count {
            let mut command = Command::new(&self.0);
            command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let status = command.status().with_context(|| format!("cannot run `{}`", self.0.display()))?;
            ensure!(status.success(), "`{}` ended with {status}", self.0.display());
        }
        Ok(each(start.elapsed(), count))
    }
}
