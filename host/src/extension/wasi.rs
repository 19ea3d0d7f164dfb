//! What a guest sees of the machine: what the operator granted, and nothing else.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, sockets::SocketAddrUse};

use super::output::Output;
use crate::{
    config::{DirMode, ExtensionConfig, NetGrant},
    logs::Source,
};

/// The WASI context of one instance.
pub(super) fn context(config: &ExtensionConfig, output: &Output) -> wasmtime::Result<WasiCtx> {
    let mut builder = WasiCtxBuilder::new();
    builder
        .arg(config.id.as_str())
        .stdout(output.stream(Source::Stdout))
        .stderr(output.stream(Source::Stderr))
        .max_random_size(config.limits.fixed().random_bytes)
        .allow_udp(false)
        .allow_tcp(!config.grants.net.is_empty());
    for (name, value) in &config.grants.env {
        builder.env(name, value);
    }
    for dir in &config.grants.dirs {
        let perms = match dir.mode {
            DirMode::Ro => FsPerms::ReadOnly,
            DirMode::Rw => FsPerms::ReadWrite,
        };
        builder.preopened_dir(&dir.host, dir.guest.as_str(), perms).map_err(|error| {
            error.context(format!("cannot open granted directory `{}`", dir.host.display()))
        })?;
    }
    if !config.grants.net.is_empty() {
        let grants: Arc<[NetGrant]> = config.grants.net.clone().into();
        builder.allow_ip_name_lookup(true);
        builder.socket_addr_check(move |address, purpose| {
            let grants = grants.clone();
            Box::pin(async move { is_granted(&grants, address, purpose).await })
        });
    }
    Ok(builder.build())
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
