//! Where the control socket of Main is.

use std::{
    env,
    path::{Path, PathBuf},
};

use weir_host::MainConfig;

use crate::args::Target;

/// Overrides what the configuration says.
const VARIABLE: &str = "WEIR_SOCKET";

/// The socket of the Main that a command is for: what its arguments say, else the environment, else
/// the default. Of a file only this is read: it may have changed since Main did.
pub(crate) fn socket(target: &Target) -> anyhow::Result<PathBuf> {
    match target {
        Target { socket: Some(socket), .. } => Ok(socket.clone()),
        Target { config: Some(file), .. } => Ok(MainConfig::control_socket_of(file)?),
        Target { socket: None, config: None } => Ok(overridden(None).unwrap_or_else(default)),
    }
}

/// The socket that is to be used instead of the one of the configuration.
pub(crate) fn overridden(argument: Option<&Path>) -> Option<PathBuf> {
    let variable = || env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    argument.map(Path::to_owned).or_else(variable)
}

fn default() -> PathBuf {
    MainConfig::default().control_socket
}
