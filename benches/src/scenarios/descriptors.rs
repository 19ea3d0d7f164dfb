//! The limit of file descriptors, which processes that this one starts inherit.

use anyhow::{Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit of descriptors, if that is too low.
pub(super) fn allow_descriptors(needed: u64) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    ensure!(
        maximum.is_none_or(|maximum| maximum >= needed),
        "{needed} descriptors are needed, and at most {maximum:?} allowed: raise the hard limit of `ulimit -n`"
    );
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })?)
}
