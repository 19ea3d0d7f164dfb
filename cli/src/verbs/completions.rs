//! `weir completions`: the script with which a shell completes `weir`.

use clap_complete::Shell;

use crate::{complete, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The shell completes commands and files, and with a running Main its contracts, operations, arguments,
extensions, queues and topics. A script fits the version of `weir` that printed it.

Examples:
  weir completions fish > ~/.config/fish/completions/weir.fish
  source <(weir completions bash)           in ~/.bashrc
  source <(weir completions zsh)            in ~/.zshrc")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(Args { shell }: Args) -> anyhow::Result<()> {
    output::write(&complete::script(shell)?)
}
