//! A Main of one project, as a child process. Only this user reaches its socket.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, bail};
use tempfile::TempDir;
#[cfg(feature = "gateway")]
use weir_gateway::{GatewayConfig, Listen};

use super::{group::Group, project::Project};
use crate::client::{Client, Route};

/// How long Main may take from its start until it accepts a connection. It reads the configuration meanwhile.
const UP_WITHIN: Duration = Duration::from_secs(30);

const UP_PAUSE: Duration = Duration::from_millis(10);

pub(super) struct PrivateMain {
    // Fields are dropped in this order: Main ends before the directory with its socket is removed.
    pub(super) group: Group,
    directory: TempDir,
}

impl PrivateMain {
    /// Starts Main with the project's `weir.toml`, and returns once Main accepts connections. Its log goes to `log`.
    pub(super) async fn start(project: &Project, log: Stdio) -> anyhow::Result<Self> {
        let directory = TempDir::with_prefix("weir-").context("cannot make a directory for Main's socket")?;
        let mut command = weir()?;
        command.arg("run").arg(project.file()).arg("--socket").arg(socket_in(&directory));
        command.arg("--end-with-parent").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut main = Self { group: Group::spawn(&mut command)?, directory };
        main.until_it_answers().await?;
        Ok(main)
    }

    pub(super) fn socket(&self) -> PathBuf {
        socket_in(&self.directory)
    }

    pub(super) async fn connect(&self) -> anyhow::Result<Client> {
        Client::connect_to(&self.socket()).await
    }

    /// Waits until all extensions that start with Main are ready. Fails if one does not start.
    pub(super) async fn ready(&self, project: &Project) -> anyhow::Result<()> {
        let mut client = self.connect().await?;
        for extension in project.config.extensions.iter().filter(|extension| extension.autostart) {
            let route = Route::new(&["extensions", extension.id.as_str(), "start"]);
            client.post(&route).await?;
        }
        Ok(())
    }

    async fn until_it_answers(&mut self) -> anyhow::Result<()> {
        let socket = self.socket();
        let answers = async {
            while Client::connect_to(&socket).await.is_err() {
                tokio::time::sleep(UP_PAUSE).await;
            }
        };
        tokio::select! {
            () = answers => Ok(()),
            ended = self.group.wait() => bail!("Main ended before it answered: {}", ended?),
            () = tokio::time::sleep(UP_WITHIN) => bail!("Main does not answer within {UP_WITHIN:?}"),
        }
    }
}

/// Returns environment variables for programs of the project: the sockets of its Main, the address of its gateway, and the
/// path of this command.
pub(super) fn variables(
    project: &Project,
    main: &PrivateMain,
) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let peers = project.config.main.peer_socket.clone().map(|path| ("WEIR_PEER_SOCKET", path));
    let own = [("WEIR_SOCKET", main.socket()), ("WEIR", this_command()?.to_owned())];
    let gateway = gateway(project).map(|address| ("WEIR_HTTP_ADDRESS", PathBuf::from(address)));
    Ok(own.into_iter().chain(peers).chain(gateway).collect())
}

/// Returns the first address of the gateway that this machine alone reaches by a port, if there is one.
#[cfg(feature = "gateway")]
pub(super) fn gateway(project: &Project) -> Option<String> {
    let listen = &project.config.section::<GatewayConfig>()?.listen;
    listen
        .iter()
        .find(|address| matches!(address, Listen::Tcp(it) if it.port() != 0) && address.is_loopback())
        .map(ToString::to_string)
}

#[cfg(not(feature = "gateway"))]
pub(super) fn gateway(_project: &Project) -> Option<String> {
    None
}

/// Makes a command that runs this program itself.
pub(super) fn weir() -> anyhow::Result<Command> {
    Ok(Command::new(this_command()?))
}

/// Returns the path of this program as it was at the first call. After the file was replaced, the system no longer
/// tells that path.
pub(super) fn this_command() -> anyhow::Result<&'static Path> {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(command) = COMMAND.get() {
        return Ok(command);
    }
    let command = env::current_exe().context("cannot find the file of this command")?;
    Ok(COMMAND.get_or_init(|| command))
}

fn socket_in(directory: &TempDir) -> PathBuf {
    Path::join(directory.path(), "weir.sock")
}
