//! systemd's side of `weir run`: what a service manager is told, as sd_notify(3) says.
//!
//! Without `NOTIFY_SOCKET` in the environment nothing is told, and without `WATCHDOG_USEC` nothing ticks.

#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::{
    convert::Infallible,
    env,
    ffi::OsStr,
    future, io,
    os::unix::{
        ffi::OsStrExt,
        net::{SocketAddr, UnixDatagram},
    },
    time::Duration,
};

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use weir_host::Control;

use super::readiness;

const SOCKET: &str = "NOTIFY_SOCKET";

/// How long a service manager that does not read may hold up this thread: long enough for one that is
/// loading its units anew, since one that misses `READY=1` ends the process.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The service manager that runs this process, if one does that wants to be told.
#[derive(Debug)]
pub(super) struct ServiceManager {
    socket: Option<Socket>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub(super) fn from_environment() -> Self {
        let name = env::var_os(SOCKET);
        let watchdog = sd_notify::watchdog_enabled().filter(|time| !time.is_zero());
        let socket = name.and_then(|name| {
            let opened = Socket::open(&name);
            opened.inspect_err(|error| tracing::warn!("cannot use {SOCKET}={}: {error}", name.display())).ok()
        });
        Self { socket, watchdog }
    }

    /// Every extension that starts with Main is ready or has failed; or a reload has ended.
    pub(super) fn ready(&self, status: &str) {
        self.tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// A reload has begun, which ends when Main is ready again.
    pub(super) fn reloading(&self) {
        // It fails only without a clock, and older versions of systemd ask for none.
        let time = NotifyState::monotonic_usec_now().ok();
        self.tell(&Vec::from_iter([NotifyState::Reloading].into_iter().chain(time)));
    }

    /// Main has begun to end.
    pub(super) fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// Pings the watchdog, if there is one: each time that Main has answered, so never while its worker
    /// thread is stuck. Says with a ping what has changed since the one before.
    pub(super) async fn keep_alive(&self, control: &Control) -> Infallible {
        if let (Some(_), Some(time)) = (&self.socket, self.watchdog) {
            let mut ticks = interval(time / 2);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut said = String::new();
            loop {
                ticks.tick().await;
                if control.ping().await.is_err() {
                    break;
                }
                let status = readiness(&control.extensions());
                if status == said {
                    self.tell(&[NotifyState::Watchdog]);
                } else {
                    self.tell(&[NotifyState::Watchdog, NotifyState::Status(&status)]);
                    said = status;
                }
            }
        }
        future::pending().await
    }

    fn tell(&self, states: &[NotifyState]) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(states) {
            tracing::warn!("cannot tell the service manager {states:?}: {error}");
        }
    }
}

/// Where a service manager listens. Unlike `sd_notify::notify` it takes names in the abstract
/// namespace, which some containers use, and does not wait for ever.
#[derive(Debug)]
struct Socket {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Socket {
    fn open(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            #[cfg(target_os = "linux")]
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(Self { socket, address })
    }

    /// Looks for the socket anew each time: it may have been made again.
    fn send(&self, states: &[NotifyState]) -> io::Result<()> {
        let message: String = states.iter().map(|state| format!("{state}\n")).collect();
        self.socket.send_to_addr(message.as_bytes(), &self.address).map(|_sent_whole| ())
    }
}
