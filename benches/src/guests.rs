//! The measured extensions and hooks, and limits that hold them by slices only.

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

#[derive(Debug)]
pub(crate) struct Guests {
    built: PathBuf,
    /// Hooks as programs of this machine.
    native: PathBuf,
    assembled: TempDir,
}

impl Guests {
    /// `built` is cargo's output for Weir, `native` its output for this machine.
    pub(crate) fn new(built: PathBuf, native: PathBuf) -> Result<Self> {
        let assembled = tempfile::tempdir().context("cannot make a directory")?;
        let component = wat::parse_str(include_str!("../guests/wat/table.wat"))?;
        fs::write(assembled.path().join("table.wasm"), component).context("cannot write a component")?;
        Ok(Self { built, native, assembled })
    }

    /// The folder of the components.
    pub(crate) fn dir(&self) -> &Path {
        &self.built
    }

    /// The well-behaved extension: it answers with the payload.
    pub(crate) fn echo(&self) -> Result<ExtensionConfig> {
        let mut echo = extension("echo", &self.component("echo-raw"))?;
        echo.fulfills = vec!["echo@1".parse()?];
        Ok(echo)
    }

    /// An extension of this `kind` (`benches/guests`), in 4 MiB. Main does not start it by itself.
    pub(crate) fn of_kind(&self, id: &str, kind: &str) -> Result<ExtensionConfig> {
        let mut guest = extension(id, &self.component("bench-guest"))?;
        guest.config.insert("kind".to_owned(), kind.to_owned());
        guest.limits = unhindered(Limits::medium());
        guest.autostart = false;
        Ok(guest)
    }

    pub(crate) fn extension(&self, id: &str, component: &str) -> Result<ExtensionConfig> {
        extension(id, &self.component(component))
    }

    /// An extension with messages of at most 64 KiB, in 1.25 MiB with 1 MiB of stack. It starts with Main.
    pub(crate) fn small(&self, id: &str, kind: &str) -> Result<ExtensionConfig> {
        let mut guest = self.of_kind(id, kind)?;
        guest.limits.memory = 1280 * 1024;
        guest.limits.message_size = 64 * 1024;
        guest.autostart = true;
        Ok(guest)
    }

    /// An extension like those of [`Guests::small`] that serves a contract, and calls the operation `echo` of another
    /// contract as often as it is told.
    pub(crate) fn caller(&self, id: &str, serves: &str, calls: &str) -> Result<ExtensionConfig> {
        let mut guest = self.small(id, "caller")?;
        guest
            .config
            .extend([("serves", serves), ("calls", calls)].map(|(k, v)| (k.to_owned(), v.to_owned())));
        guest.fulfills = vec![serves.parse()?];
        guest.wants = vec![calls.parse()?];
        Ok(guest)
    }

    /// An extension that echoes through this many sockets (`benches/guests/src/sockets.rs`), in 4 MiB. It
    /// starts with Main, and is connected when it is ready.
    pub(crate) fn sockets(&self, id: &str, address: SocketAddr, sockets: u32) -> Result<ExtensionConfig> {
        let mut guest = extension(id, &self.component("sockets"))?;
        guest.config.insert("address".to_owned(), address.to_string());
        guest.config.insert("sockets".to_owned(), sockets.to_string());
        guest.grants.net = vec![address.to_string().parse()?];
        guest.subscribes = vec!["go".parse()?];
        guest.publishes = vec!["done".parse()?];
        // This class has the most resources of WASI.
        guest.limits = unhindered(Limits::max());
        guest.limits.message_size = 64 * 1024;
        Ok(guest)
    }

    /// The extension that uses Main's services (`benches/guests/src/services.rs`), in 4 MiB.
    pub(crate) fn services(&self) -> Result<ExtensionConfig> {
        let mut guest = extension("services", &self.component("services"))?;
        guest.fulfills = vec!["services@1".parse()?];
        guest.limits = unhindered(Limits::medium());
        Ok(guest)
    }

    /// An extension that is busy all the time.
    pub(crate) fn busy(&self, id: &str, component: &str) -> Result<ExtensionConfig> {
        let mut guest = extension(id, &self.component(component))?;
        guest.limits = unhindered(Limits::medium());
        Ok(guest)
    }

    pub(crate) fn component(&self, name: &str) -> PathBuf {
        self.built.join(format!("{name}.wasm"))
    }

    /// Puts a hook into a directory of hooks.
    pub(crate) fn copy_hook(&self, name: &str, dir: &Path) -> Result<()> {
        let (built, hook) = (self.component(name), dir.join(name).with_extension("wasm"));
        fs::copy(&built, hook).with_context(|| format!("cannot copy `{}`", built.display()))?;
        Ok(())
    }

    /// A hook as a program of this machine.
    pub(crate) fn native(&self, name: &str) -> PathBuf {
        self.native.join(name)
    }

    /// An extension that grows and fills its table. Main does not start it by itself.
    pub(crate) fn table(&self) -> Result<ExtensionConfig> {
        let mut guest = extension("table", &self.assembled.path().join("table.wasm"))?;
        guest.limits = unhindered(Limits::medium());
        guest.autostart = false;
        Ok(guest)
    }
}

fn extension(id: &str, path: &Path) -> Result<ExtensionConfig> {
    let mut extension = ExtensionConfig::new(id.parse()?, path);
    // An extension that failed and was started again must not be measured.
    extension.restart.policy = RestartPolicy::Never;
    Ok(extension)
}

/// The limits of this class, in 4 MiB, with more of all else than can be used up: only slices hold the extension.
fn unhindered(mut limits: Limits) -> Limits {
    limits.memory = 4 * 1024 * 1024;
    limits.fuel_per_message = MUCH_FUEL;
    limits.fuel_to_start = MUCH_FUEL;
    limits.cpu_share = CpuShare::WHOLE;
    limits.ready_timeout = Duration::from_secs(60);
    limits.stop_timeout = Duration::from_millis(1);
    limits
}
