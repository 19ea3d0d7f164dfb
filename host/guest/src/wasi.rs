//! A guest's view of the machine, which has only what the operator granted.

use std::{
    convert::Infallible,
    fmt, mem,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use rand::{Rng, TryRng};
use wasmtime_wasi::{
    FsPerms, WasiCtx, WasiCtxBuilder, filesystem::WasiFilesystemCtx, sockets::SocketAddrUse,
};
use weir_config::{DirGrant, DirMode, ExtensionConfig, Limits, NetGrant};
use weir_logs::Source;
use weir_metrics::Usage;

use super::{
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
    pub(super) fn in_context(self, builder: &mut WasiCtxBuilder) -> Machine {
        let mut wasi = builder.build();
        *wasi.filesystem() = self.opened;
        Machine { wasi, counted: CountedFiles::new(self.quotas), http: None, stores: None }
    }
}

/// Makes the view of an extension's instance.
pub(super) fn context(
    config: &ExtensionConfig,
    net: &Arc<[NetGrant]>,
    output: &Output,
    dirs: Dirs,
) -> Machine {
    let mut builder = granted(&config.limits, net);
    builder
        .arg(config.id.as_str())
        .stdout(GuestOutput(output.stream(Source::Stdout)))
        .stderr(GuestOutput(output.stream(Source::Stderr)));
    for (name, value) in &config.grants.env {
        builder.env(name, value);
    }
    dirs.in_context(&mut builder)
}

/// Returns a builder with what every guest has, and with TCP and look-ups if addresses are granted.
pub(super) fn granted(limits: &Limits, net: &Arc<[NetGrant]>) -> WasiCtxBuilder {
    let mut builder = WasiCtxBuilder::new();
    builder
        .secure_random(OfThread)
        .insecure_random(OfThread)
        .max_random_size(limits.fixed().random_bytes)
        .allow_udp(false)
        .allow_tcp(!net.is_empty());
    if !net.is_empty() {
        let grants = net.clone();
        builder.allow_ip_name_lookup(true);
        builder.socket_addr_check(move |address, purpose| {
            let grants = grants.clone();
            Box::pin(async move { is_granted(&grants, address, purpose).await })
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

/// Whether a guest may use `address` in this way: only to connect to it by TCP. The host looks up granted names itself,
/// so a guest that resolves a name by other means gains nothing.
async fn is_granted(grants: &[NetGrant], address: SocketAddr, purpose: SocketAddrUse) -> bool {
    match purpose {
        SocketAddrUse::TcpConnect => {}
        // Every connect binds its socket to an unspecified address and port first.
        SocketAddrUse::TcpBind => return address.ip().is_unspecified() && address.port() == 0,
        _ => return false,
    }
    for grant in grants.iter().filter(|grant| grant.port == address.port()) {
        let granted = match grant.host.parse::<IpAddr>() {
            Ok(ip) => ip == address.ip(),
            Err(_) => match tokio::net::lookup_host((grant.host.as_str(), grant.port)).await {
                Ok(mut found) => found.any(|found| found == address),
                Err(_) => false,
            },
        };
        if granted {
            return true;
        }
    }
    false
}
