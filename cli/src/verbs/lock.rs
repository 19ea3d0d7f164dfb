//! `weir lock`: the components that a configuration runs, and those that may come back, by their hashes.

use std::path::PathBuf;

use anyhow::Context;
use clap::ValueHint;
use weir_host::{
    component::lock,
    config::{ComponentLock, ComponentLockFault},
};

use crate::{features, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes the lock beside the configuration: weir.lock for weir.toml. It lists the component of each extension,
each hook, and the proven versions in `main.state-dir`. `weir run --locked` runs these and nothing else. It
reads the lock again at each `weir reload` without an id.

Examples:
  weir lock weir.toml
  weir lock weir.toml && weir run --locked weir.toml")]
pub(crate) struct Args {
    /// The configuration
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let config = features::load(&args.file)?;
    let path = ComponentLock::path_of(&args.file);
    let before = match ComponentLock::read(&path) {
        Ok(before) => Some(before),
        Err(error) if matches!(error.fault, ComponentLockFault::Missing) => None,
        Err(error) => {
            output::complain(&format!("warning: {error}; the sources in it are lost"));
            None
        }
    };
    let (lock, warnings) = lock(&config, &path, before.as_ref())?;
    warnings.iter().for_each(|warning| output::complain(&format!("warning: {warning}")));
    lock.write(&path).with_context(|| format!("cannot write `{}`", path.display()))?;
    let (extensions, hooks) = (lock.extensions.len(), lock.hooks.len());
    output::line(&format!("`{}` lists {extensions} extensions and {hooks} hooks", path.display()))
}
