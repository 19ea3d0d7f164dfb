//! Arguments of `weir peers`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueHint};
use weir_host::names::PeerName;

use super::Asked;

#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Peers are programs outside Main: apps and sidecars. A line is a session, one connection of a program. PROOF is
how it proved its name: by its user (uid), by a token, or through the program that embeds Main. IN FLIGHT is
its own calls and jobs under way. WAITING is messages and bytes that wait for it. LOST is messages to it that
found no room, LATE its answers after the deadline. SERVES is the contracts that it serves now.

Examples:
  weir peers
  weir peers end 7
  weir peers token app:player --config /etc/weir/weir.toml
  weir peers --json | jq -r '.peers[] | select(.sessions == []) | .name'"
)]
pub(crate) struct PeersArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PeersCommand>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PeersCommand {
    /// End a session
    End(EndArgs),
    /// Make a token, with which a program proves its name
    Token(TokenArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The program is told `ended`, and may connect again. To keep it out, take its proof or its table out of the
configuration, and reload.

Examples:
  weir peers end 7
  weir peers --json | jq '.peers[].sessions[].id' | xargs -n 1 weir peers end")]
pub(crate) struct EndArgs {
    /// The number of the session, from `weir peers`
    #[arg(value_name = "SESSION")]
    pub(crate) session: u64,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The token goes to stdout, alone on its line, and is kept nowhere. What to do with it goes to stderr: the line
for the configuration, with the token's hash. With --config, the line keeps the newest hash that the file has
for this peer, so that the token before still works. No file is changed, and no Main is needed.

Examples:
  weir peers token app:player --config weir.toml
  (umask 077 && weir peers token app:player > player.token)
  weir peers token app:player --json | jq -r .hash")]
pub(crate) struct TokenArgs {
    /// The peer, as in `app:player`
    #[arg(value_name = "NAME")]
    pub(crate) name: PeerName,
    /// The configuration that has the peer
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Print the token and its hash as JSON, and no explanation
    #[arg(long)]
    pub(crate) json: bool,
}
