//! Notifies systemd of Main's state, as sd_notify(3) says.
//!
//! Does nothing without `NOTIFY_SOCKET` in the environment. Nothing ticks without `WATCHDOG_USEC`.

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

use rustix::time::{ClockId, clock_gettime};
use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use weir_host::Control;

use super::readiness;

const SOCKET: &str = "NOTIFY_SOCKET";

/// The longest wait for a service manager that does not read. It outlasts a reload of systemd's units, because a lost
/// `READY=1` would make systemd kill Main.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The service manager of this process, if it wants notifications.
#[derive(Debug)]
pub(super) struct ServiceManager {
    socket: Option<Socket>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    pub(super) fn from_environment() -> Self {
        let name = env::var_os(SOCKET);
        let watchdog = sd_notify::watchdog_enabled().filter(|time| !time.is_zero());
        let socket = name.and_then(|name| {
            let opened = Socket::open(&name);
            opened.inspect_err(|error| tracing::warn!("cannot use {SOCKET}={}: {error}", name.display())).ok()
        });
        Self { socket, watchdog }
    }

    /// Says that every extension that starts with Main is ready or has failed, or that a reload has ended.
    pub(super) fn ready(&self, status: &str) {
        self.tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// Says that a reload has begun. `ready` ends it.
    pub(super) fn reloading(&self) {
        // `sd_notify` would overflow where the platform's seconds have 32 bits, so the time is computed here. A time
        // before the clock's zero is left out: older systemd needs none.
        let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).ok();
        let time = now.and_then(|now| i128::try_from(now.as_micros()).ok()).map(NotifyState::MonotonicUsec);
        self.tell(&Vec::from_iter([NotifyState::Reloading].into_iter().chain(time)));
    }

    pub(super) fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// Pings the watchdog after each answer of Main, so never while its worker thread is stuck. A status that has
    /// changed is sent with the ping.
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

/// The socket of the service manager. Unlike `sd_notify::notify` it takes abstract names, which some containers
/// use, and its writes time out.
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

    /// Sends to the path, which is resolved each time: the socket may have been replaced.
    fn send(&self, states: &[NotifyState]) -> io::Result<()> {
        let message: String = states.iter().map(|state| format!("{state}\n")).collect();
        self.socket.send_to_addr(message.as_bytes(), &self.address).map(|_sent_whole| ())
    }
}
