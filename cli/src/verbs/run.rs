//! `weir run`: the process that is Main.
//!
//! The main thread waits for signals and for Main's end, reloads at SIGHUP, and informs the service manager. All else
//! runs on Main's worker thread, or on threads that parts of Main start.

mod heap;
mod notify;

use std::{
    collections::HashSet,
    convert::Infallible,
    fs::File,
    future,
    io::{self, IsTerminal},
    mem,
    path::{Path, PathBuf},
    process,
};

use anyhow::Context;
use clap::ValueHint;
use rustix::process::{
    Resource, Rlimit, Signal as ProcessSignal, getrlimit, set_parent_process_death_signal, setrlimit,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_control::ControlSocket;
use weir_host::{
    Control, Main,
    config::{ComponentLock, FileLock},
    control::{ControlError, ExtensionState, ExtensionStatus, ReloadReport},
    events::MainEvent,
    host::Started,
    names::ExtensionId,
};
use weir_peer_socket::PeerSocket;

use self::notify::ServiceManager;
use crate::{
    args,
    client::Signals,
    features::{self, compilation},
    logging::{self, LogFormat},
    output,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The log goes to stderr; RUST_LOG chooses its lines, as in RUST_LOG=debug. SIGTERM and Ctrl-C let extensions
finish what they have in hand, within their stop-timeout. A second signal ends the process at once.

Examples:
  weir run weir.toml
  weir run --log-format json --socket /tmp/weir.sock weir.toml")]
pub(crate) struct Args {
    /// The configuration
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Serve the control interface here instead of at `main.control-socket`; also WEIR_SOCKET
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    socket: Option<PathBuf>,
    /// Run only the components in the lock beside FILE, which `weir lock` makes
    #[arg(long)]
    locked: bool,
    /// Format of the log on stderr
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    log_format: LogFormat,
    /// End as by SIGTERM when the process that started this one ends
    #[arg(long, hide = true)]
    end_with_parent: bool,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    logging::init(args.log_format, None)?;
    if args.end_with_parent {
        set_parent_process_death_signal(Some(ProcessSignal::TERM)).context("cannot end with the parent")?;
    }
    let manager = ServiceManager::from_environment();
    let config = features::load(&args.file)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    allow_all_descriptors();
    heap::return_large_blocks();
    let socket = args::socket_beside_file(args.socket).unwrap_or_else(|| config.main.control_socket.clone());
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for signals")?
        .block_on(async {
            let mut signals = Signals::new().context("cannot wait for signals")?;
            let is_service = !io::stdin().is_terminal();
            let hang_up = is_service.then(|| signal(SignalKind::hangup())).transpose();
            let hang_up = hang_up.context("cannot wait for signals")?;
            let control = ControlSocket::bind(&socket)?;
            let peers = config.main.peer_socket.clone();
            let peer_socket = peers.as_deref().map(PeerSocket::bind).transpose()?;
            #[cfg(feature = "gateway")]
            let gateway = config.section().map(weir_gateway::Gateway::bind).transpose()?.flatten();
            let mut own_file = OwnFile::lock(&args.file)?;
            let main = Main::builder(config).compilation(compilation());
            let main = if args.locked { main.locked(ComponentLock::path_of(&args.file)) } else { main };
            // `control` is dropped last: while its socket is there, no other Main can take the rest of what is
            // bound and locked here.
            let served = control.clone();
            let mut main = main.attach(|attached| served.serve(attached));
            if let Some(peer_socket) = peer_socket {
                main = main.attach(|attached| peer_socket.serve(attached));
            }
            #[cfg(feature = "gateway")]
            if let Some(gateway) = gateway {
                main = main.attach(|attached| gateway.serve(attached));
            }
            let (main, started) = main.launch()?;
            tracing::info!("the control socket is `{}`", socket.display());
            if let Some(peers) = peers {
                tracing::info!("the peer socket is `{}`", peers.display());
            }
            tokio::select! {
                () = watch(main.control(), started, &mut signals, &manager, &mut own_file) => {}
                never = manager.keep_alive(main.control()) => match never {},
                never = reload_at_hang_up(main.control(), hang_up) => match never {},
            }
            logging::show_below(String::new());
            main.shutdown().await?;
            tracing::info!("stopped");
            Ok(())
        })
}

/// Raises the soft limit on open files to the hard one. All extensions share it, and many systems keep it low
/// for programs that use `select`.
fn allow_all_descriptors() {
    let limits = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }) {
        tracing::warn!("cannot raise the limit on open files: {error}");
    }
}

/// Waits until Main ends, and tells the log and the service manager what happens. A signal asks Main to end.
async fn watch(
    control: &Control,
    started: Started,
    signals: &mut Signals,
    manager: &ServiceManager,
    own_file: &mut OwnFile,
) {
    let mut events = control.events();
    let mut started = std::pin::pin!(started.wait());
    let (mut is_started, mut is_told_to_end, mut is_stopping) = (false, false, false);
    let (is_watched, mut tick) = (io::stderr().is_terminal(), tokio::time::interval(output::TICK));
    // Extensions may have been ready before the stream of events began, and are logged at the end of the start.
    let mut seen_ready = HashSet::new();
    loop {
        tokio::select! {
            // The arms are tried in this order, so a shutdown is noticed before the end of the start that it cut short.
            biased;
            name = signals.next() => {
                if is_told_to_end {
                    // A log line before the end would wait for the reader of stderr.
                    process::exit(1);
                }
                is_told_to_end = true;
                control.by(name).begin_shutdown().await;
                tracing::info!("{name}: stopping the extensions; again, to end at once");
            }
            event = events.next() => {
                let Some(event) = event else { return };
                let is_up = is_started && !is_stopping;
                if matches!(event, MainEvent::Reloaded) {
                    heap::give_back_freed();
                    own_file.lock_again();
                }
                match event {
                    MainEvent::State { extension, to: ExtensionState::Ready, .. } => {
                        tracing::info!("`{extension}` is ready");
                        if !is_started {
                            seen_ready.insert(extension);
                        }
                    }
                    MainEvent::Stopping => {
                        is_stopping = true;
                        manager.stopping();
                    }
                    MainEvent::Reloading if is_up => manager.reloading(),
                    // The lost events may include the beginning or the end of a reload, so Main is asked.
                    MainEvent::Lagged { .. } if is_up && control.is_reloading() => manager.reloading(),
                    MainEvent::Reloaded | MainEvent::Lagged { .. } if is_up => {
                        manager.ready(&readiness(&control.extensions()));
                    }
                    _ => {}
                }
            }
            _ = tick.tick(), if is_watched && !is_started => logging::show_below(progress(&control.extensions())),
            () = &mut started, if !is_started => {
                is_started = true;
                logging::show_below(String::new());
                heap::give_back_freed();
                if !is_told_to_end && !is_stopping {
                    let extensions = control.extensions();
                    summarize(&extensions, &mem::take(&mut seen_ready));
                    manager.ready(&readiness(&extensions));
                }
            }
        }
    }
}

/// Logs how each extension came up, unless that was logged already. Failures log their own reason.
fn summarize(extensions: &[ExtensionStatus], seen_ready: &HashSet<ExtensionId>) {
    for ExtensionStatus { id, state, .. } in extensions {
        match state {
            ExtensionState::Ready if seen_ready.contains(id) => {}
            ExtensionState::Ready => tracing::info!("`{id}` is ready"),
            ExtensionState::Loaded => tracing::info!("`{id}` waits for `weir start {id}`"),
            ExtensionState::Failed => tracing::warn!("`{id}` has failed; `weir status {id}` says why"),
            state => tracing::warn!("`{id}` is {state}"),
        }
    }
    tracing::info!("{}", readiness(extensions));
}

fn readiness(extensions: &[ExtensionStatus]) -> String {
    let ready = extensions.iter().filter(|extension| extension.state == ExtensionState::Ready).count();
    format!("{ready} of {} extensions are ready", extensions.len())
}

fn progress(extensions: &[ExtensionStatus]) -> String {
    let compiled = extensions.iter().filter(|extension| extension.compiling.is_some());
    let compiled: Vec<_> = compiled.map(|extension| format!("`{}`", extension.id)).collect();
    match &compiled[..] {
        [] => readiness(extensions),
        compiled => format!("{}; compiling {}", readiness(extensions), compiled.join(", ")),
    }
}

/// Reloads the configuration at each SIGHUP, and again after one during a reload: the file may have changed again.
/// Waits for ever without `hang_up`, as on a terminal, where SIGHUP ends the process by default.
async fn reload_at_hang_up(control: &Control, hang_up: Option<Signal>) -> Infallible {
    let Some(mut hang_up) = hang_up else { return future::pending().await };
    let control = control.by("SIGHUP");
    while hang_up.recv().await.is_some() {
        tracing::info!("SIGHUP: reading the configuration again");
        match reloaded(&control).await {
            Ok(report) => log_reload(&report),
            Err(error) => error.to_string().lines().for_each(|line| tracing::warn!("{line}")),
        }
    }
    future::pending().await
}

/// Waits for a reload that is under way, and then reloads: the other one may have read the file before the signal.
async fn reloaded(control: &Control) -> Result<ReloadReport, ControlError> {
    loop {
        // The stream begins before `is_reloading` is asked, so that no end of a reload is missed.
        let mut events = control.events();
        while control.is_reloading() && events.next().await.is_some() {}
        match control.reload().await {
            // Another reload has begun first.
            Err(ControlError::Reloading(_)) => {}
            outcome => return outcome,
        }
    }
}

fn log_reload(report: &ReloadReport) {
    for warning in &report.warnings {
        tracing::warn!("{warning}");
    }
    for failed in &report.failed {
        tracing::warn!("`{}` was not reloaded: {}", failed.extension, failed.reason);
    }
    let keys = report.needs_restart.iter().map(|key| format!("main.{key}"));
    for changed in keys.chain(report.tables_for_restart.iter().cloned()) {
        tracing::warn!("`{changed}` has changed, which needs Main to be started anew");
    }
    tracing::info!("reloaded: {}", report.summary());
}

/// A lock on the configuration: no two Mains run from the same file, whatever their sockets.
struct OwnFile {
    path: PathBuf,
    lock: FileLock,
}

impl OwnFile {
    fn lock(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot lock `{}`", path.display()))?;
        let lock =
            FileLock::take(file).with_context(|| format!("another Main runs by `{}`", path.display()))?;
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Locks the current file after a reload. An editor may have replaced it.
    fn lock_again(&mut self) {
        let Ok(file) = File::open(&self.path) else { return };
        if self.lock.is_of(&file) {
            return;
        }
        match FileLock::take(file) {
            Ok(lock) => self.lock = lock,
            Err(error) => tracing::warn!("another Main runs by `{}`: {error}", self.path.display()),
        }
    }
}
