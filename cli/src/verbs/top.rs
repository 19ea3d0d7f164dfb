//! `weir top`: asks Main for the view of `weir-top`, and gives its orders.

use std::{
    env,
    io::{self, IsTerminal},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use nix::unistd::{getpgid, getppid, getsid};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Signal, kill_current_process_group},
};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use weir_host::control::ExtensionStatus;
use weir_top::{Answers, Fault, Looks, Options, Order, Orders, Outside, SortKey, Top};

use crate::{
    args::Target,
    client::{self, Client, Patience, Route, read, unless},
    exit::{self, Usage},
    output,
};

/// The number of lines that are asked for of an extension's log.
const LOG_LINES: &str = "100";

/// The permitted times between two looks. A shorter time costs Main too much, and a longer one shows too little.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The key ? shows all keys. R, S and L restart, stop and reload the selected extension, after a question. Figures
are of the time between two looks; LOST and RESTARTS are counted since Main started. Main is asked only while
the view is open. On what is no terminal, `weir ps` and `weir limits` show the same figures once.

Examples:
  weir top
  weir top --sort limit --interval 5s
  weir top --filter backing-off --no-color")]
pub(crate) struct Args {
    /// Time between two looks at Main, from 100ms to 1min
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Sort by this, largest first
    #[arg(long, value_name = "WHAT", default_value = "cpu")]
    sort: SortKey,
    /// Show only extensions and peers with this text in their name or state
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// Use no colours; also NO_COLOR
    #[arg(long)]
    no_color: bool,
    #[command(flatten)]
    target: Target,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if INTERVALS.contains(&interval) {
        Ok(interval)
    } else {
        let [least, most] =
            [INTERVALS.start(), INTERVALS.end()].map(|time| humantime::format_duration(*time));
        Err(format!("it is not from {least} to {most}"))
    }
}

pub(super) fn run(Args { interval, sort, filter, no_color, target }: Args) -> anyhow::Result<()> {
    refuse_what_is_no_screen()?;
    let socket = target.socket()?;
    // A Main that is not there is an error of the command here. Later, the view says it and tries again.
    client::block_on(async { Client::connect_to(&socket).await.map(drop) })?;
    let color = !no_color && output::wants_color();
    let top = Top::new(Options { interval, sort, filter, color });
    watch(top.outside())?;
    // The view gives the terminal back before it calls this. `TSTP` would stop nothing, since it is handled here, too.
    let suspend = || {
        if has_shell() {
            let _stopped = kill_current_process_group(Signal::STOP);
        }
    };
    top.run(Main { socket: socket.clone() }, Main { socket }, suspend).context("cannot use the terminal")
}

/// Whether a shell would let the stopped process go on: its parent is of the same session and another group.
///
/// In a container, the leader of the session or of a group can be outside. The kernel then answers 0, which `rustix`
/// does not take as an id, and `nix` does.
fn has_shell() -> bool {
    let parent = Some(getppid());
    getsid(parent) == getsid(None) && getpgid(parent) != getpgid(None)
}

fn refuse_what_is_no_screen() -> anyhow::Result<()> {
    let why = if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        "stdin or stdout is no terminal"
    } else if env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        "TERM names no terminal that can move its cursor"
    } else {
        return Ok(());
    };
    Err(Usage(format!("{why}: use `weir ps` or `weir limits`, which print the figures once")).into())
}

/// The running Main that the view asks. Each look and each order has a connection of its own, so that Main does nothing
/// for the view in between.
struct Main {
    socket: PathBuf,
}

impl Looks for Main {
    fn look(&mut self, log: Option<&str>) -> Result<Answers, Fault> {
        client::block_on(look(&self.socket, log)).map_err(|error| Fault(exit::chain(&error)))
    }
}

impl Orders for Main {
    fn give(&mut self, order: Order, id: &str) -> Result<String, Fault> {
        client::block_on(give(&self.socket, order, id)).map_err(|error| Fault(exit::chain(&error)))
    }
}

#[derive(Deserialize)]
struct Version {
    pid: Option<u64>,
}

async fn look(socket: &Path, log: Option<&str>) -> anyhow::Result<Answers> {
    let mut client = Client::connect_to(socket).await?;
    let mut answers = Answers::of(get(&mut client, &Route::new(&["extensions"])).await?);
    answers.pid = client.get::<Version>(&Route::new(&["version"])).await?.pid;
    answers.operations = unless(&["no-such-route"], get(&mut client, &Route::new(&["operations"])).await)?;
    answers.peers = unless(&["no-such-route"], get(&mut client, &Route::new(&["peers"])).await)?;
    if let Some(id) = log {
        let route = Route::new(&["logs"]).with("extension", Some(id)).with("lines", Some(LOG_LINES));
        // A reload may have removed the extension.
        let lines = unless(&["unknown-extension"], get(&mut client, &route).await)?;
        answers.log = lines.unwrap_or_default();
    }
    Ok(answers)
}

async fn get(client: &mut Client, route: &Route) -> anyhow::Result<Vec<u8>> {
    Ok(client.ask(Method::GET, route, Bytes::new(), Patience::Query).await?.into())
}

async fn give(socket: &Path, order: Order, id: &str) -> anyhow::Result<String> {
    let mut client = Client::connect_to(socket).await?;
    let route = Route::named(&["extensions", id, order.verb()])?;
    let now: ExtensionStatus = read(&client.post(&route).await?)?;
    Ok(now.state.to_string())
}

/// How long the view may take to give the terminal back. Then the process ends without that, since the terminal takes
/// nothing more.
const GRACE: Duration = Duration::from_secs(2);

/// Starts threads that tell the view of signals and of a terminal that goes. They end with the process.
fn watch(outside: Outside) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Signals count from here on, before the terminal is taken over.
    let entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut stop = signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
    let mut go_on = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    drop(entered);
    let terminal = outside.clone();
    start("signals", move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => break,
                    _ = terminate.recv() => break,
                    _ = hang_up.recv() => break,
                    _ = quit.recv() => break,
                    _ = stop.recv() => outside.suspend(),
                    _ = go_on.recv() => outside.go_on(),
                }
            }
            end(&outside).await;
        });
    })?;
    start("terminal", move || {
        wait_until_it_is_gone();
        terminal.end();
    })
}

/// Ends the view. If it cannot end, because the terminal takes nothing more, ends the process.
async fn end(outside: &Outside) {
    let view = outside.clone();
    // A thread sends this, since the channel to the view has no room while the view cannot draw.
    let _told = start("end", move || view.end());
    tokio::time::sleep(GRACE).await;
    weir_top::abandon();
    process::exit(1);
}

/// Waits until the terminal is gone. The code that reads keys may not notice that, and would try again and again.
fn wait_until_it_is_gone() {
    let stdin = io::stdin();
    // The poll waits for no input and without a timeout: only for the end.
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    loop {
        match poll(&mut fds, None) {
            Ok(_) if fds.iter().all(|fd| fd.revents().is_empty()) => {}
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).context("cannot start a thread")
}
