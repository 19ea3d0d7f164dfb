//! `weir remove`: an extension leaves an operator's file, and its component the plugin directory.

use std::{fs, io};

use anyhow::Context;
use weir_host::{component::Signature, control::ControlError, names::ExtensionId};

use super::{
    OfFile,
    device::{Device, sync_dir},
};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Removes the table of the extension with the comments before it. Its component is removed too if it is as `weir add` or
`weir upgrade` put it into `main.plugin-dir`, and no other extension has it. If another extension requires what this one serves,
nothing is removed. `weir reload --all` stops the extension in a Main that runs.

Examples:
  weir remove echo
  weir remove echo --config /etc/weir/weir.toml")]
pub(crate) struct Args {
    /// The extension
    #[arg(value_name = "ID")]
    id: ExtensionId,
    #[command(flatten)]
    file: OfFile,
}

pub(crate) async fn run(Args { id, file }: Args) -> anyhow::Result<()> {
    let device = Device::open(&file.config).await?;
    let Some(extension) = device.extension(id.as_str()) else {
        return Err(ControlError::Unknown(id.to_string()).into());
    };
    let mut edit = device.edit(id.as_str())?;
    edit.file.remove(id.as_str()).with_context(|| format!("cannot change `{}`", edit.path.display()))?;
    let left = device.checked(&edit)?;
    let lock = device.lock()?;
    edit.prepare()?.persist()?;
    device.relock(lock, |lock| drop(lock.extensions.remove(&id)))?;
    let mut text = format!("removed `{id}` from `{}`\n", edit.path.display());
    let component = extension.component.path().filter(|path| {
        device.has_placed(extension, path)
            && !left.extensions.iter().any(|other| other.component.path() == Some(path))
    });
    if let Some(path) = component {
        for path in [path.to_owned(), Signature::path_of(path)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.with_context(|| format!("cannot remove `{}`", path.display()))?,
            }
        }
        sync_dir(path).with_context(|| format!("cannot remove `{}`", path.display()))?;
        text.push_str(&format!("removed its component `{}`\n", path.display()));
    }
    output::write(text.as_bytes())
}
