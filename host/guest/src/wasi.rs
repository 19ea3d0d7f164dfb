//! What a guest sees of the machine: what the operator granted, and nothing else.

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
    imports::counted::CountedFiles,
    output::Output,
    quota::{Quota, Quotas},
};

/// The directories that are granted, opened. Clones are the same: who has one keeps them open.
#[derive(Clone, Default)]
pub struct Dirs {
    opened: WasiFilesystemCtx,
    /// Of those whose size is bounded, by what guests call them.
    quotas: Vec<(String, Quota)>,
}

/// What one guest sees of the machine.
pub(super) struct Machine {
    pub(super) wasi: WasiCtx,
    /// Which of its files are counted.
    pub(super) counted: CountedFiles,
}

impl fmt::Debug for Dirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dirs").finish_non_exhaustive()
    }
}

impl Dirs {
    /// Opens them, which may block. With `may_block`, what is done with files in there blocks whoever polls.
    pub(super) fn open(
        grants: &[DirGrant],
        may_block: bool,
        quotas: &Quotas,
        usage: &Usage,
    ) -> wasmtime::Result<Self> {
        let mut counted = Vec::new();
        let mut builder = WasiCtxBuilder::new();
        // Each directory takes this as it is when it is granted.
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

    /// Counts what is in those whose size is bounded.
    pub(super) async fn count(&self) -> wasmtime::Result<()> {
        for (guest, quota) in &self.quotas {
            let counted = quota.prepare().await.map_err(wasmtime::Error::from);
            counted.map_err(|error| error.context(format!("cannot count what is in `{guest}`")))?;
        }
        Ok(())
    }

    /// What a guest with these directories sees.
    pub(super) fn in_context(self, builder: &mut WasiCtxBuilder) -> Machine {
        let mut wasi = builder.build();
        *wasi.filesystem() = self.opened;
        Machine { wasi, counted: CountedFiles::new(self.quotas) }
    }
}

/// What one instance of an extension sees of the machine.
pub(super) fn context(
    config: &ExtensionConfig,
    net: &Arc<[NetGrant]>,
    output: &Output,
    dirs: Dirs,
) -> Machine {
    let mut builder = granted(&config.limits, net);
    builder
        .arg(config.id.as_str())
        .stdout(output.stream(Source::Stdout))
        .stderr(output.stream(Source::Stderr));
    for (name, value) in &config.grants.env {
        builder.env(name, value);
    }
    dirs.in_context(&mut builder)
}

/// A context with the addresses that are granted.
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

/// The thread's generator of random numbers, which is secure: one for all guests, since two for each take
/// memory that most never use.
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

/// Whether a guest may use `address`. Granted names are looked up by the host, so that a guest which
/// resolves a name by other means gets no further than by this one.
async fn is_granted(grants: &[NetGrant], address: SocketAddr, purpose: SocketAddrUse) -> bool {
    match purpose {
        SocketAddrUse::TcpConnect => {}
        // Implied by every connect.
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
