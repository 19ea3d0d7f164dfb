//! A guest's view of the machine, which has only what the operator granted.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt, mem,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rand::{Rng, TryRng};
use wasmtime_wasi::{
    FsPerms, WasiCtx, WasiCtxBuilder, filesystem::WasiFilesystemCtx, sockets::SocketAddrUse,
};
use weir_config::{DirGrant, DirMode, ExtensionConfig, Limits, NetGrant};
use weir_logs::Source;
use weir_metrics::Usage;

use super::{
    fit::GuestKind,
    http::HttpAccess,
    imports::counted::CountedFiles,
    keyvalue::StoreAccess,
    output::{GuestOutput, Output},
    quota::{Quota, Quotas},
};

/// The granted directories, opened. Clones share them and keep them open.
#[derive(Clone, Default)]
pub struct Dirs {
    opened: WasiFilesystemCtx,
    /// The quotas of bounded directories, by their guest paths.
    quotas: Vec<(String, Quota)>,
}

/// One guest's view of the machine.
pub(super) struct Machine {
    pub(super) wasi: WasiCtx,
    pub(super) counted: CountedFiles,
    pub(super) http: Option<Box<HttpAccess>>,
    pub(super) stores: Option<Box<StoreAccess>>,
    pub(super) net: Arc<Net>,
}

impl fmt::Debug for Dirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dirs").finish_non_exhaustive()
    }
}

impl Dirs {
    /// Opens the granted directories, which may block. With `may_block`, file operations in them block the thread that
    /// polls the guest.
    pub(super) fn open(
        grants: &[DirGrant],
        may_block: bool,
        quotas: &Quotas,
        usage: &Usage,
    ) -> wasmtime::Result<Self> {
        let mut counted = Vec::new();
        let mut builder = WasiCtxBuilder::new();
        // Set first, because each directory takes over this setting when it is added.
        builder.allow_blocking_current_thread(may_block);
        for dir in grants {
            let perms = match dir.mode {
                DirMode::Ro => FsPerms::ReadOnly,
                DirMode::Rw => FsPerms::ReadWrite,
            };
            let with_path = |error: wasmtime::Error| {
                error.context(format!("cannot open granted directory `{}`", dir.host.display()))
            };
            builder.preopened_dir(&dir.host, dir.guest.as_str(), perms).map_err(with_path)?;
            let quota = quotas.open(dir, usage, may_block).map_err(|error| with_path(error.into()))?;
            counted.extend(quota.map(|quota| (dir.guest.as_str().to_owned(), quota)));
        }
        Ok(Self { opened: mem::take(builder.build().filesystem()), quotas: counted })
    }

    /// Counts what is in the bounded directories, unless that was done before.
    pub(super) async fn count(&self) -> wasmtime::Result<()> {
        for (guest, quota) in &self.quotas {
            let counted = quota.prepare().await.map_err(wasmtime::Error::from);
            counted.map_err(|error| error.context(format!("cannot count what is in `{guest}`")))?;
        }
        Ok(())
    }

    /// Makes the guest's view of the machine from these directories and from what the builder has.
    pub(super) fn in_context(self, builder: &mut WasiCtxBuilder, net: Arc<Net>) -> Machine {
        let mut wasi = builder.build();
        *wasi.filesystem() = self.opened;
        Machine { wasi, counted: CountedFiles::new(self.quotas), http: None, stores: None, net }
    }
}

/// Makes the view of an extension's instance.
pub(super) fn context(config: &ExtensionConfig, net: Arc<Net>, output: &Output, dirs: Dirs) -> Machine {
    let mut builder = granted(&config.limits, &net);
    builder
        .arg(config.id.as_str())
        .stdout(GuestOutput(output.stream(Source::Stdout)))
        .stderr(GuestOutput(output.stream(Source::Stderr)));
    for (name, value) in &config.grants.env {
        builder.env(name, value);
    }
    dirs.in_context(&mut builder, net)
}

/// Returns a builder with what every guest has, and with TCP and look-ups if addresses are granted.
pub(super) fn granted(limits: &Limits, net: &Arc<Net>) -> WasiCtxBuilder {
    let mut builder = WasiCtxBuilder::new();
    builder
        .secure_random(OfThread)
        .insecure_random(OfThread)
        .max_random_size(limits.fixed().random_bytes)
        .allow_udp(net.has_any(Protocol::Udp))
        .allow_tcp(net.has_any(Protocol::Tcp));
    if !net.grants.is_empty() {
        let sockets =
            Arc::new(Sockets { net: net.clone(), heard: Mutex::default(), named: Mutex::default() });
        builder.allow_ip_name_lookup(true);
        builder.socket_addr_check(move |address, purpose| {
            let sockets = sockets.clone();
            Box::pin(async move {
                let refused = sockets.why_not(address, purpose).await;
                refused.is_none_or(|refused| {
                    sockets.net.refuse(refused, || sockets.net.why(refused, address));
                    false
                })
            })
        });
    }
    builder
}

/// The thread's random generator, which is secure. All guests share it, because two for each guest would take memory
/// that most never use.
struct OfThread;

impl TryRng for OfThread {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(rand::rng().next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(rand::rng().next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        rand::rng().fill_bytes(bytes);
        Ok(())
    }
}

/// What a socket speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

/// What a guest was refused. Each kind is counted by itself.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    Tcp,
    Udp,
    Listening(Protocol),
    LookUp,
}

/// What an extension or a command is granted of the network. All instances of an extension share it.
pub(super) struct Net {
    pub(super) grants: Arc<[NetGrant]>,
    kind: GuestKind,
    /// How often it was refused something of each kind.
    refused: [AtomicU64; 4],
    /// Reports a refusal to the operator.
    say: Box<dyn Fn(&str) + Send + Sync>,
}

impl Net {
    pub(super) fn new(
        grants: Arc<[NetGrant]>,
        kind: GuestKind,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { grants, kind, refused: Default::default(), say: Box::new(say) })
    }

    fn has_any(&self, protocol: Protocol) -> bool {
        self.grants.iter().any(|grant| grant.udp == (protocol == Protocol::Udp))
    }

    /// Reports a socket that the guest may not even make.
    pub(super) fn refuse_all(&self, protocol: Protocol) {
        let said = match protocol {
            _ if self.has_any(protocol) => return,
            Protocol::Tcp => (Refused::Tcp, "TCP was refused: `grants.net` has no entry for TCP"),
            Protocol::Udp => (Refused::Udp, "UDP was refused: `grants.net` has no entry with `udp = true`"),
        };
        self.refuse(said.0, || said.1.to_owned());
    }

    /// Counts a refusal, and reports the first ones: a guest in a loop is told of ever more rarely.
    pub(super) fn refuse(&self, refused: Refused, text: impl FnOnce() -> String) {
        let [tcp, udp, listening, look_up] = &self.refused;
        let count = match refused {
            Refused::Tcp => tcp,
            Refused::Udp => udp,
            Refused::Listening(_) => listening,
            Refused::LookUp => look_up,
        };
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            (self.say)(&format!("{} ({count} so far)", text()));
        }
    }

    /// What was refused, and the key that would allow it.
    fn why(&self, refused: Refused, address: SocketAddr) -> String {
        let is_no_place = address.ip().is_unspecified() && address.port() == 0;
        match (refused, self.kind) {
            (Refused::Udp, _) if is_no_place => {
                "sending by UDP was refused: each entry of `grants.net` with `udp = true` is for listening"
                    .to_owned()
            }
            (Refused::Udp, _) => format!(
                "UDP to `{address}` was refused: no entry of `grants.net` with `udp = true` is for it{}",
                self.of_names(address, true)
            ),
            (Refused::Listening(_), GuestKind::Command) => {
                format!("listening at `{address}` was refused: a hook cannot listen")
            }
            (Refused::Listening(protocol), GuestKind::Extension) => {
                let udp = if protocol == Protocol::Udp { ", udp = true" } else { "" };
                format!(
                    "listening at `{address}` was refused: no entry of `grants.net` with `listen = true{udp}` is for it"
                )
            }
            (Refused::Tcp | Refused::LookUp, _) => format!(
                "TCP to `{address}` was refused: no entry of `grants.net` is for it{}",
                self.of_names(address, false)
            ),
        }
    }

    /// Says that a granted name may have been meant.
    fn of_names(&self, address: SocketAddr, udp: bool) -> &'static str {
        let is_named = |grant: &NetGrant| {
            !grant.listen
                && grant.udp == udp
                && grant.address.port == address.port()
                && grant.address.ip().is_none()
        };
        match self.grants.iter().any(is_named) {
            true => ", and no name there stands for this address now",
            false => "",
        }
    }
}

/// What one instance may do with addresses.
struct Sockets {
    net: Arc<Net>,
    /// The last senders of datagrams to a guest that may listen: it may answer them. The latest is at the end.
    heard: Mutex<VecDeque<SocketAddr>>,
    /// The last addresses that granted names stood for, and when, so that not each datagram is a look-up.
    named: Mutex<VecDeque<(SocketAddr, Instant)>>,
}

/// The most addresses that are kept of each kind.
const KEPT: usize = 256;

/// For how long an address is taken for that of a name.
const NAMED: Duration = Duration::from_secs(60);

impl Sockets {
    async fn why_not(&self, address: SocketAddr, purpose: SocketAddrUse) -> Option<Refused> {
        // A socket that connects or sends is bound to an unspecified address and port first.
        let is_no_place = address.ip().is_unspecified() && address.port() == 0;
        let mut of_udp = self.net.grants.iter().filter(|grant| grant.udp);
        let (may, refused) = match purpose {
            SocketAddrUse::TcpConnect => (self.is_granted(address, false).await, Refused::Tcp),
            SocketAddrUse::TcpBind if is_no_place => return None,
            SocketAddrUse::UdpBind if is_no_place => (of_udp.any(|grant| !grant.listen), Refused::Udp),
            SocketAddrUse::TcpBind | SocketAddrUse::TcpListen => {
                (self.may_listen(address, false), Refused::Listening(Protocol::Tcp))
            }
            // Only a socket that may listen comes to that.
            SocketAddrUse::TcpAccept => return None,
            SocketAddrUse::UdpBind => (self.may_listen(address, true), Refused::Listening(Protocol::Udp)),
            SocketAddrUse::UdpSend => {
                let is_heard = self.heard.lock().contains(&address);
                (is_heard || self.is_granted(address, true).await, Refused::Udp)
            }
            // As everywhere with UDP, the program looks who has sent it. Here, datagrams of others would be worked off without
            // a pause.
            SocketAddrUse::UdpReceive => {
                if of_udp.any(|grant| grant.listen) {
                    let mut heard = self.heard.lock();
                    heard.retain(|other| *other != address);
                    keep(&mut heard, address);
                }
                return None;
            }
        };
        (!may).then_some(refused)
    }

    fn may_listen(&self, address: SocketAddr, udp: bool) -> bool {
        self.net.grants.iter().any(|grant| grant.udp == udp && grant.listens_at(address))
    }

    /// Whether the guest may connect or send to the address. The host looks up granted names itself, so a guest that
    /// resolves a name by other means gains nothing.
    async fn is_granted(&self, address: SocketAddr, udp: bool) -> bool {
        let is_its =
            |grant: &&NetGrant| !grant.listen && grant.udp == udp && grant.address.port == address.port();
        let is_named = |(named, since): &(SocketAddr, Instant)| *named == address && since.elapsed() < NAMED;
        if udp && self.named.lock().iter().any(is_named) {
            return true;
        }
        for NetGrant { address: granted, .. } in self.net.grants.iter().filter(is_its) {
            let is_found = match granted.ip() {
                Some(ip) => ip == address.ip(),
                None => match tokio::net::lookup_host((granted.host.as_str(), granted.port)).await {
                    Ok(mut found) => found.any(|found| found == address),
                    Err(_) => false,
                },
            };
            if is_found {
                if udp && granted.ip().is_none() {
                    keep(&mut self.named.lock(), (address, Instant::now()));
                }
                return true;
            }
        }
        false
    }
}

/// Puts an item at the end, and drops the first one if there is no room.
fn keep<T>(items: &mut VecDeque<T>, item: T) {
    if items.len() == KEPT {
        items.pop_front();
    }
    items.push_back(item);
}
