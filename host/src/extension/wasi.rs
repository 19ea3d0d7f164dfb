//! What a guest sees of the machine: what the operator granted, and nothing else.

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use rand::{Rng, TryRng};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, sockets::SocketAddrUse};

use super::output::Output;
use crate::{
    config::{DirMode, ExtensionConfig, Grants, Limits, NetGrant},
    logs::Source,
};

/// The WASI context of one instance of an extension.
pub(super) fn context(
    config: &ExtensionConfig,
    net: &Arc<[NetGrant]>,
    output: &Output,
) -> wasmtime::Result<WasiCtx> {
    let mut builder = granted(&config.limits, &config.grants, net, false)?;
    builder
        .arg(config.id.as_str())
        .stdout(output.stream(Source::Stdout))
        .stderr(output.stream(Source::Stderr));
    for (name, value) in &config.grants.env {
        builder.env(name, value);
    }
    Ok(builder.build())
}

/// A context with the directories and addresses that are granted. With `may_block`, what is done with files blocks
/// whoever polls.
pub(super) fn granted(
    limits: &Limits,
    grants: &Grants,
    net: &Arc<[NetGrant]>,
    may_block: bool,
) -> wasmtime::Result<WasiCtxBuilder> {
    let mut builder = WasiCtxBuilder::new();
    builder
        .secure_random(OfThread)
        .insecure_random(OfThread)
        .max_random_size(limits.fixed().random_bytes)
        .allow_udp(false)
        .allow_tcp(!net.is_empty())
        // Each directory takes this as it is when it is granted.
        .allow_blocking_current_thread(may_block);
    for dir in &grants.dirs {
        let perms = match dir.mode {
            DirMode::Ro => FsPerms::ReadOnly,
            DirMode::Rw => FsPerms::ReadWrite,
        };
        builder.preopened_dir(&dir.host, dir.guest.as_str(), perms).map_err(|error| {
            error.context(format!("cannot open granted directory `{}`", dir.host.display()))
        })?;
    }
    if !net.is_empty() {
        let grants = net.clone();
        builder.allow_ip_name_lookup(true);
        builder.socket_addr_check(move |address, purpose| {
            let grants = grants.clone();
            Box::pin(async move { is_granted(&grants, address, purpose).await })
        });
    }
    Ok(builder)
}

/// The thread's generator of random numbers, which is secure: one for all guests, since two for each take memory
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
