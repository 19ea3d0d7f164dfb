//! The commands of `docs/shipping.md`, as the page has them: an author and a device, which have nothing in common but the
//! registry, and another user where this one is root.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::Registry;
use crate::{
    demo::weir,
    files, guests,
    run::{Process, output, root, run, until},
};

const PAGE: &str = "docs/shipping.md";

/// The registry that the page shows.
const SHOWN_REGISTRY: &str = "registry.example.com";

/// The package that the page carries by hand.
const PACKAGE: &str = "echo-0.1.0.tar";

/// The user and the group of the devices, where this one is root: `nobody`.
const USER: &str = "65534";

/// The pause between two looks at a Main.
const PACE: Duration = Duration::from_millis(500);

/// Time for an extension to be ready. Main compiles it meanwhile.
const WITHIN: Duration = Duration::from_secs(120);

/// Follows the page. Returns what it skipped.
pub(super) fn follow(registry: &Registry, oras: &Path) -> Result<Vec<String>> {
    guests::add_target()?;
    let weir = weir::build_with(&weir::AS_TESTED, &["--bin", "weir", "--bin", "weir-registry"])?;
    let site = Site::make(&weir, registry)?;
    let page = files::read(PAGE)?.replace(SHOWN_REGISTRY, &registry.authority);
    let printed = site.run("author", &block(&page, "author")?)?;
    site.run("author/echo", &block(&page, "push")?)?;
    let key = printed.lines().find(|line| line.starts_with("trusted-keys = "));
    let key = key.context("`weir keygen` printed no line for the device")?;
    let config = block(&page, "weir.toml")?;
    let shown = config.lines().find(|line| line.starts_with("trusted-keys = "));
    let config = config.replace(shown.context("the page trusts no key")?, key);

    let device = block(&page, "device")?;
    let after = device.split_inclusive('\n').skip_while(|line| !line.starts_with("weir add ")).skip(1);
    let through_registry = block(&page, "add")? + &after.collect::<String>();
    site.run_on("device", &config, &through_registry)?;
    files::copy(&site.directory("author/echo").join(PACKAGE), &site.directory("other-device").join(PACKAGE))?;
    site.run_on("other-device", &config, &device)?;

    site.copy(registry, oras)?;
    let skipped = "another user on the device, which takes root".to_owned();
    Ok(if site.is_root { Vec::new() } else { vec![skipped] })
}

/// The block of the page after the line `<!-- NAME -->`, without the indent of the list that it is in.
fn block(page: &str, name: &str) -> Result<String> {
    let mut lines =
        page.lines().map(str::trim).skip_while(|line| *line != format!("<!-- {name} -->")).skip(1);
    let begins = lines.next().is_some_and(|line| line.starts_with("```"));
    let block: String = lines.take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
    ensure!(begins && !block.is_empty(), "`{PAGE}` has no block `{name}`");
    Ok(block)
}

/// Directories of the author and of devices, and the programs on the path.
struct Site {
    root: TempDir,
    path: OsString,
    is_root: bool,
}

impl Site {
    fn make(weir: &Path, registry: &Registry) -> Result<Self> {
        let root = TempDir::with_prefix("weir-shipping-").context("cannot make a directory")?;
        let is_root = fs::metadata(root.path()).map(|found| found.uid() == 0)?;
        // The other user passes through, to the programs and to its own directory.
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755))?;
        let programs = root.path().join("bin");
        for name in ["weir", "weir-registry"] {
            files::copy(&weir.with_file_name(name), &programs.join(name))?;
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([programs].into_iter().chain(env::split_paths(&path)))?;
        let site = Self { root, path, is_root };
        for (home, user) in [("author", 0), ("device", 1), ("other-device", 1)] {
            site.log_in(home, registry, user)?;
        }
        Ok(site)
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Makes a home with the registry's certificate and credentials for it.
    fn log_in(&self, home: &str, registry: &Registry, user: usize) -> Result<()> {
        let home = self.directory(home);
        let settings = home.join(".config/containers");
        let certificates = settings.join("certs.d").join(&registry.authority);
        fs::create_dir_all(&certificates)?;
        fs::copy(&registry.ca, certificates.join("ca.crt"))?;
        fs::write(settings.join("auth.json"), registry.log_in(user)?)?;
        Ok(())
    }

    /// Gives what is in a home to the user of the device.
    fn own(&self, home: &str) -> Result<()> {
        if !self.is_root {
            return Ok(());
        }
        let user = format!("{USER}:{USER}");
        run(Command::new("chown").args(["--recursive", &user]).arg(self.directory(home)))
    }

    /// Runs commands of somebody in their directory, and returns what they print.
    fn run(&self, of: &str, commands: &str) -> Result<String> {
        println!("{of}$ {}", commands.trim_end().replace('\n', &format!("\n{of}$ ")));
        let printed = output(&mut self.shell(of, commands)?)?;
        print!("{printed}");
        Ok(printed)
    }

    fn shell(&self, of: &str, commands: &str) -> Result<Command> {
        let directory = self.directory(of);
        let home = self.directory(of.split('/').next().unwrap_or_default());
        let is_other = self.is_root && !of.starts_with("author");
        let mut command = Command::new(if is_other { "setpriv" } else { "sh" });
        if is_other {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "sh"]);
        }
        command.args(["-ec", commands]).current_dir(directory).stdin(Stdio::null()).env("PATH", &self.path);
        command.env("XDG_CONFIG_HOME", home.join(".config")).env("XDG_RUNTIME_DIR", &home);
        for name in ["DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "WEIR_SOCKET"] {
            command.env_remove(name);
        }
        // Nothing is published yet, so an author names the clone.
        if of.starts_with("author") {
            command.env("WEIR_SDK", root()?);
        } else {
            command.env("HOME", &home).env("CACHE_DIRECTORY", home.join("cache"));
        }
        Ok(command)
    }

    /// Runs a Main on a device with this configuration, and the commands beside it, until the last says that the extension
    /// is ready.
    fn run_on(&self, device: &str, config: &str, commands: &str) -> Result<()> {
        fs::write(self.directory(device).join("weir.toml"), config)?;
        self.own(device)?;
        let mut main = Process(self.shell(device, "exec weir run weir.toml")?.spawn()?);
        self.until_said(device, &mut main, "weir ps", "")?;
        let (before, last) = commands.trim_end().rsplit_once('\n').context("there are no commands")?;
        self.run(device, before)?;
        self.until_said(device, &mut main, last, "ready")?;
        self.run(device, "weir shutdown")?;
        ensure!(main.0.wait()?.success(), "Main did not end as it should");
        Ok(())
    }

    /// Runs a command again and again, until it succeeds and says this.
    fn until_said(&self, device: &str, main: &mut Process, command: &str, text: &str) -> Result<()> {
        println!("{device}$ {command}");
        let mut last = None;
        let said = until(WITHIN, PACE, || {
            ensure!(main.0.try_wait()?.is_none(), "Main has ended");
            let said = last.insert(output(&mut self.shell(device, command)?));
            Ok(said.as_ref().ok().filter(|said| said.contains(text)).cloned())
        })?;
        print!("{}", said.with_context(|| format!("`{command}` is to say `{text}`, and says {last:?}"))?);
        Ok(())
    }

    /// Has others read what was pushed, and a device read what they have copied.
    fn copy(&self, registry: &Registry, oras: &Path) -> Result<()> {
        let (host, oras, ca) = (&registry.authority, oras.display(), registry.ca.display());
        let certificates = format!("$XDG_CONFIG_HOME/containers/certs.d/{host}");
        let credentials = "$XDG_CONFIG_HOME/containers/auth.json";
        let commands = format!(
            "skopeo copy --src-cert-dir {certificates} --authfile {credentials} docker://{host}/plugins/echo:0.1.0 oci:copy\n\
             weir-registry push copy {host}/plugins/copy:0.1.0\n\
             {oras} pull --ca-file {ca} --registry-config {credentials} --output pulled {host}/plugins/echo:0.1.0\n\
             cmp pulled/echo.wasm echo/target/wasm32-wasip2/release/echo.wasm"
        );
        self.run("author", &commands)?;
        self.run("device", &format!("weir verify oci://{host}/plugins/copy:0.1.0 --config weir.toml"))?;
        Ok(())
    }
}
