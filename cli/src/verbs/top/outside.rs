//! What happens to the process while the view is open: signals, and a terminal that goes.

use std::{io, process, thread, time::Duration};

use anyhow::Context;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::Signal,
};
use tokio::signal::unix::{SignalKind, signal};
use weir_top::Outside;

/// For the view to give the terminal back. One that nobody reads takes longer.
const GRACE: Duration = Duration::from_secs(2);

/// From now on tells the view what happens, on threads that end with the process.
pub(super) fn watch(outside: Outside) -> anyhow::Result<()> {
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
    // The view has no room for this while it cannot draw.
    let _told = start("end", move || view.end());
    tokio::time::sleep(GRACE).await;
    weir_top::abandon();
    process::exit(1);
}

/// Whatever reads keys may not notice it, and would ask for the next key again and again.
fn wait_until_it_is_gone() {
    let stdin = io::stdin();
    // Without a timeout, and for no input: only for the end.
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
