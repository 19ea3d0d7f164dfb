//! `weir run`: the process that is Main.
//!
//! Its own thread waits for signals and for Main to end; all else happens on Main's worker thread.

use std::process;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_host::{Config, Control, ExtensionStatus, Main, Started, State};

use crate::{args::RunArgs, locate, logging};

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<()> {
    logging::init(args.log_format)?;
    let config = Config::load(&args.file)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    allow_all_descriptors();
    let socket =
        locate::overridden(args.socket.as_deref()).unwrap_or_else(|| config.main.control_socket.clone());
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .context("cannot wait for signals")?
        .block_on(async {
            let mut signals = Signals::new().context("cannot wait for signals")?;
            let (main, started) = Main::builder(config).control_socket(&socket).launch()?;
            tracing::info!("the control socket is `{}`", socket.display());
            watch(main.control(), started, &mut signals).await;
            main.shutdown().await;
            tracing::info!("stopped");
            Ok(())
        })
}

/// Raises the soft limit on open files to the hard one: all extensions share it, and many systems set
/// it for programs that still use `select`.
fn allow_all_descriptors() {
    let limits = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits }) {
        tracing::warn!("cannot raise the limit on open files: {error}");
    }
}

/// Ends when Main has ended, which a signal asks it to.
async fn watch(control: &Control, started: Started, signals: &mut Signals) {
    let mut started = std::pin::pin!(started.wait());
    let (mut is_started, mut is_stopping) = (false, false);
    loop {
        tokio::select! {
            () = control.ended() => return,
            name = signals.next() => {
                if is_stopping {
                    // Saying so first would wait for whoever reads stderr.
                    process::exit(1);
                }
                is_stopping = true;
                control.begin_shutdown().await;
                tracing::info!("{name}: stopping the extensions; again, to end at once");
            }
            () = &mut started, if !is_started => {
                is_started = true;
                if !is_stopping {
                    summarize(&control.extensions());
                }
            }
        }
    }
}

/// Says how each extension came up. Why one failed has been said when it did.
fn summarize(extensions: &[ExtensionStatus]) {
    for ExtensionStatus { id, state, .. } in extensions {
        match state {
            State::Ready => tracing::info!("`{id}` is ready"),
            State::Loaded => tracing::info!("`{id}` waits for `weir start {id}`"),
            State::Failed => tracing::warn!("`{id}` has failed; `weir status {id}` says why"),
            state => tracing::warn!("`{id}` is {}", format!("{state:?}").to_lowercase()),
        }
    }
    let ready = extensions.iter().filter(|extension| extension.state == State::Ready).count();
    tracing::info!("{ready} of {} extensions are ready", extensions.len());
}

/// The signals that end a service, and a program on a terminal.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
