//! Finds the control socket of Main.

use std::{
    env,
    path::{Path, PathBuf},
};

use weir_host::MainConfig;

use crate::args::Target;

const VARIABLE: &str = "WEIR_SOCKET";

/// The socket for a command: from its arguments, else the environment, else the default. Of a configuration
/// only this key is read, since the file may have changed after Main read it.
pub(crate) fn socket(target: &Target) -> anyhow::Result<PathBuf> {
    match target {
        Target { socket: Some(socket), .. } => Ok(socket.clone()),
        Target { config: Some(file), .. } => Ok(MainConfig::control_socket_of(file)?),
        Target { socket: None, config: None } => Ok(overridden(None).unwrap_or_else(default)),
    }
}

pub(crate) fn overridden(argument: Option<&Path>) -> Option<PathBuf> {
    let variable = || env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    argument.map(Path::to_owned).or_else(variable)
}

fn default() -> PathBuf {
    MainConfig::default().control_socket
}
