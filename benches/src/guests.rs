//! The extensions and hooks that are measured, and limits under which nothing but slices holds them.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;
use weir_host::{
    ExtensionConfig,
    config::{CpuShare, Limits, RestartPolicy},
};

/// Fuel that outlasts every measurement.
pub(crate) const MUCH_FUEL: u64 = 1_000_000_000_000_000;

/// Where the components are.
#[derive(Debug)]
pub(crate) struct Guests {
    built: PathBuf,
    /// Hooks as programs of this machine.
    native: PathBuf,
    /// Those that are written as text.
    assembled: TempDir,
}

impl Guests {
    /// `built` is where cargo leaves what it builds for Weir, `native` where what it builds for this machine.
    pub(crate) fn new(built: PathBuf, native: PathBuf) -> Result<Self> {
        let assembled = tempfile::tempdir().context("cannot make a directory")?;
        let component = wat::parse_str(include_str!("../guests/wat/table.wat"))?;
        fs::write(assembled.path().join("table.wasm"), component).context("cannot write a component")?;
        Ok(Self { built, native, assembled })
    }

    /// The good one: it answers with what it was sent.
    pub(crate) fn echo(&self) -> Result<ExtensionConfig> {
        let mut echo = extension("echo", &self.component("echo-raw"))?;
        echo.fulfills = vec!["echo@1".parse()?];
        Ok(echo)
    }

    /// One that does what `kind` says (`benches/guests`), in 4 MiB, and is not started with Main.
    pub(crate) fn of_kind(&self, id: &str, kind: &str) -> Result<ExtensionConfig> {
        let mut guest = extension(id, &self.component("bench-guest"))?;
        guest.config.insert("kind".to_owned(), kind.to_owned());
        guest.limits = unhindered(Limits::medium());
        guest.autostart = false;
        Ok(guest)
    }

    /// Any other extension, with the limits of the default class.
    pub(crate) fn extension(&self, id: &str, component: &str) -> Result<ExtensionConfig> {
        extension(id, &self.component(component))
    }

    /// One that gets or sends messages of at most 64 KiB, in 1.25 MiB, of which 1 MiB is its stack; it
    /// starts with Main.
    pub(crate) fn small(&self, id: &str, kind: &str) -> Result<ExtensionConfig> {
        let mut guest = self.of_kind(id, kind)?;
        guest.limits.memory = 1280 * 1024;
        guest.limits.message_size = 64 * 1024;
        guest.autostart = true;
        Ok(guest)
    }

    /// One that says through so many sockets what comes back (`benches/guests/src/sockets.rs`), in 4 MiB; it starts
    /// with Main, and is connected when it is ready.
    pub(crate) fn sockets(&self, id: &str, address: SocketAddr, sockets: u32) -> Result<ExtensionConfig> {
        let mut guest = extension(id, &self.component("sockets"))?;
        guest.config.insert("address".to_owned(), address.to_string());
        guest.config.insert("sockets".to_owned(), sockets.to_string());
        guest.grants.net = vec![address.to_string().parse()?];
        guest.subscribes = vec!["go".parse()?];
        guest.publishes = vec!["done".parse()?];
        // Of all classes it has the most resources of WASI.
        guest.limits = unhindered(Limits::max());
        guest.limits.message_size = 64 * 1024;
        Ok(guest)
    }

    /// The component of that name.
    pub(crate) fn component(&self, name: &str) -> PathBuf {
        self.built.join(format!("{name}.wasm"))
    }

    /// The same as a program of this machine, if it is a hook.
    pub(crate) fn native(&self, name: &str) -> PathBuf {
        self.native.join(name)
    }

    /// One that grows and fills its table; not started with Main either.
    pub(crate) fn table(&self) -> Result<ExtensionConfig> {
        let mut guest = extension("table", &self.assembled.path().join("table.wasm"))?;
        guest.limits = unhindered(Limits::medium());
        guest.autostart = false;
        Ok(guest)
    }
}

fn extension(id: &str, path: &Path) -> Result<ExtensionConfig> {
    let mut extension = ExtensionConfig::new(id.parse()?, path);
    // One that fails must not be measured.
    extension.restart.policy = RestartPolicy::Never;
    Ok(extension)
}

/// That class, in 4 MiB, with more of all else than can be used up: only slices hold it.
fn unhindered(mut limits: Limits) -> Limits {
    limits.memory = 4 * 1024 * 1024;
    limits.fuel_per_message = MUCH_FUEL;
    limits.fuel_to_start = MUCH_FUEL;
    limits.cpu_share = CpuShare::WHOLE;
    limits.ready_timeout = Duration::from_secs(60);
    limits.stop_timeout = Duration::from_millis(1);
    limits
}
