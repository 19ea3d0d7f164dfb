//! A Debian package in a clean Debian of its processor, by the commands of `docs/operators.md`; and two builds in two
//! directories, which are to be the same.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    EPOCH_VARIABLE, VERSION,
    build::{self, Build},
    epoch, make,
    target::Target,
};
use crate::{
    demo::weir,
    files,
    run::{Process, cargo, output, root, run, target_dir, until},
    setup::{self, DEBOOTSTRAP, FOREIGN_PROGRAMS},
};

const PAGE: &str = "docs/operators.md";

const RELEASE: &str = "bookworm";

pub(super) const GNU: &str = "x86_64-unknown-linux-gnu";

/// Time for the extension to be ready. Main compiles it meanwhile, perhaps under an emulator.
const WITHIN: Duration = Duration::from_secs(600);

/// Beginnings of paths that do not count as left behind by a package: `/proc`, and files that Debian's tools leave at
/// each change of a user.
const KEPT_BY_DEBIAN: [&str; 8] = [
    "/etc/.pwd.lock",
    "/etc/group-",
    "/etc/gshadow-",
    "/etc/passwd-",
    "/etc/shadow-",
    "/etc/subgid-",
    "/etc/subuid-",
    "/proc/",
];
/// Beginnings of further paths that do not count: there, apt and dpkg keep packages, records and logs.
const KEPT_BY_APT: [&str; 5] =
    ["/var/cache/apt/", "/var/cache/ldconfig/", "/var/lib/apt/", "/var/lib/dpkg/", "/var/log/"];

pub(super) fn check(build: Build) -> Result<()> {
    let needs = [&DEBOOTSTRAP, &FOREIGN_PROGRAMS];
    setup::require(if build.target.emulator.is_some() { &needs } else { &needs[..1] })?;
    let made = make(build, true, true)?;
    let package = made.iter().find(|file| file.extension().is_some_and(|end| end == "deb"));
    installs(&build, package.context("there is no package")?)?;
    if build.target.triple == GNU { are_the_same() } else { Ok(()) }
}

/// Installs the package as the page says, uses it, and removes it.
fn installs(build: &Build, package: &Path) -> Result<()> {
    let mut page = files::read(PAGE)?;
    let debian = Debian::make(build.target)?;
    debian.take(package)?;
    let name = package.file_name().context("the package has no name")?.to_string_lossy();
    let (heading, count, on_page) =
        if build.compiles() { ("## Install", 3, "amd64") } else { ("### Without a compiler", 5, "armhf") };
    page = page.replace(&format!("weir_{VERSION}-1_{on_page}.deb"), &name);
    if !build.compiles() {
        page = page.replace(r#"trusted-keys = ["…"]"#, &debian.take_artifact(build.target)?);
    }
    let commands = commands(&page, heading);
    ensure!(commands.len() == count, "`{PAGE}` promises {count} commands and shows {commands:?}");
    let [install, configure @ .., start] = &commands[..] else { bail!("`{PAGE}` shows no commands") };
    let before = debian.files()?;

    debian.run(install)?;
    debian.run("test -e /etc/systemd/system/multi-user.target.wants/weir.service")?;
    debian.run("su --shell /bin/sh weir --command 'weir check /etc/weir/weir.toml'")?;
    for (_, program) in build.programs() {
        debian.run(&format!("{program} --version"))?;
    }
    debian.run("test -s /usr/share/man/man1/weir-run.1.gz")?;
    debian.run("bash -c '. /usr/share/bash-completion/completions/weir && complete -p weir'")?;
    debian.run("! su --shell /bin/sh nobody --command 'cat /etc/weir/weir.toml'")?;
    for command in configure {
        debian.run(command)?;
    }
    let mut main = debian.start(start)?;
    debian.wait_until_ready(&mut main.0)?;
    let os = debian.run("weir call device.info@1 os --config /etc/weir/weir.toml")?;
    let os: Value = serde_json::from_str(&os).context("`os` answered no JSON")?;
    ensure!(os.get("id").is_some_and(|id| id == "debian"), "`os` answers {os}");
    debian.run("weir shutdown --config /etc/weir/weir.toml")?;
    ensure!(main.0.wait()?.success(), "Main did not end as it should");

    let purge = format!("apt-get purge --quiet --yes --autoremove {}", build.package());
    debian.run(&purge)?;
    let mut left: Vec<_> = debian.files()?.difference(&before).cloned().collect();
    // These files are the operator's own, so a package leaves them.
    left.retain(|path| !path.starts_with("/usr/local/"));
    ensure!(left.is_empty(), "the package leaves {left:?}");
    debian.run("! getent passwd weir && ! getent group weir")?;
    Ok(())
}

/// The lines of the console below the heading that an operator types as root.
fn commands<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let section = page.split(heading).nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
    let consoles = section.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let as_root = |console: &'a str| console.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    consoles.map(as_root).find(|commands: &Vec<_>| !commands.is_empty()).unwrap_or_default()
}

/// A directory with a minimal Debian. Its programs run in namespaces, so that nothing of them outlives this.
struct Debian {
    root: PathBuf,
}

impl Debian {
    fn make(target: &Target) -> Result<Self> {
        if let Some(emulator) = target.emulator {
            let name = emulator.split(' ').next().unwrap_or_default();
            // A machine with an init system has done this at its start.
            run(as_root("update-binfmts")?.args(["--enable", name]))?;
        }
        let architecture = target.debian.context("its C library is not that of Debian")?;
        let root = target_dir()?.join("dist/debian");
        let debian = Self { root };
        debian.remove()?;
        // The package recommends `ca-certificates`. So does apt, which would keep it when the package is purged.
        let minimal = ["--variant=minbase", "--include=ca-certificates", RELEASE];
        run(as_root("debootstrap")?.args(["--arch", architecture]).args(minimal).arg(&debian.root))?;
        Ok(debian)
    }

    /// Copies a file to where the commands expect it.
    fn take(&self, file: &Path) -> Result<()> {
        run(as_root("cp")?.arg(file).arg(self.root.join("root")))
    }

    /// Compiles the extension on this machine, and brings it with its configuration. Returns the line of the trusted
    /// key.
    fn take_artifact(&self, target: &Target) -> Result<String> {
        let (weir, dir) = (weir::build()?, tempfile::tempdir()?);
        let [key, artifact, configuration] =
            ["release.key", "device-info.cwasm", "device-info.toml"].map(|name| dir.path().join(name));
        let trusted = output(Command::new(&weir).arg("keygen").arg(&key))?;
        let mut compile = Command::new(&weir);
        compile.arg("compile").arg(build::extension("device-info")?).args(["--target", target.triple]);
        if target.emulator.is_some() {
            // Main has small address spaces under qemu.
            compile.args(["--address-space", "small"]);
        }
        run(compile.arg("--key").arg(key).arg("--output").arg(&artifact))?;
        let text = files::read("packaging/extensions/device-info.toml")?;
        fs::write(&configuration, text.replace("/usr/share", "/usr/local/share").replace(".wasm", ".cwasm"))?;
        self.take(&artifact)?;
        self.take(&configuration)?;
        Ok(trusted.trim_end().to_owned())
    }

    /// A shell command in this Debian, in the home of root, with processes and their `/proc` of its own.
    fn command(&self, text: &str) -> Result<Command> {
        let mut command = as_root("unshare")?;
        command.args(["--pid", "--fork", "--kill-child"]);
        command.arg(format!("--mount-proc={}", self.root.join("proc").display()));
        command.args(["chroot"]).arg(&self.root).args(["env", "--ignore-environment", "HOME=/root"]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
        command.args(["sh", "-c", &format!("cd && {text}")]).stdin(Stdio::null());
        Ok(command)
    }

    fn run(&self, text: &str) -> Result<String> {
        println!("# {text}");
        output(&mut self.command(text)?)
    }

    fn start(&self, text: &str) -> Result<Process> {
        println!("# {text} &");
        Ok(Process(self.command(text)?.spawn()?))
    }

    fn wait_until_ready(&self, main: &mut Child) -> Result<()> {
        let mut listed = String::new();
        let ready = until(WITHIN, Duration::from_millis(500), || {
            listed = self.run("weir ps --config /etc/weir/weir.toml").unwrap_or_default();
            let is_ready = listed.contains(" ready ");
            ensure!(is_ready || main.try_wait()?.is_none(), "Main has ended");
            Ok(is_ready.then_some(()))
        })?;
        ready.with_context(|| format!("the extension is not ready within {WITHIN:?}:\n{listed}"))
    }

    /// Every file and directory, but for [`KEPT_BY_DEBIAN`] and [`KEPT_BY_APT`].
    fn files(&self) -> Result<BTreeSet<String>> {
        let found = output(as_root("find")?.arg(&self.root).args(["-xdev", "-printf", "/%P\n"]))?;
        let is_kept =
            |path: &str| KEPT_BY_DEBIAN.iter().chain(&KEPT_BY_APT).any(|kept| path.starts_with(kept));
        Ok(found.lines().filter(|path| !is_kept(path)).map(str::to_owned).collect())
    }

    fn remove(&self) -> Result<()> {
        run(as_root("rm")?.args(["--recursive", "--force", "--one-file-system"]).arg(&self.root))
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("{error:#}");
        }
    }
}

fn as_root(program: &str) -> Result<Command> {
    setup::as_root(program).context("making a Debian takes root, or `sudo` without a password")
}

/// Builds the package for devices here and in a copy elsewhere, and compares all that is made.
fn are_the_same() -> Result<()> {
    let copy = Copy::make()?;
    let mut there = cargo(["xtask", "dist", "--target", GNU, "--device", "--deb", "--sbom"])?;
    there.current_dir(copy.root()).env_remove("CARGO_TARGET_DIR").env(EPOCH_VARIABLE, epoch()?);
    run(&mut there)?;
    for here in
        make(Build { target: Target::named(GNU)?, is_for_devices: true, without_profile: true }, true, true)?
    {
        let name = here.file_name().context("a file without a name")?;
        let there = copy.root().join("target/dist").join(name);
        ensure!(
            fs::read(&here)? == fs::read(&there)?,
            "two builds of `{}` differ: see it with `diffoscope`",
            name.display()
        );
        println!("the same in both builds: {}", output(Command::new("sha256sum").arg(&here))?.trim_end());
    }
    Ok(())
}

/// The files of the checkout as they are, committed or not, in another directory.
struct Copy(TempDir);

impl Copy {
    fn make() -> Result<Self> {
        // The copy is not inside the checkout, whose configuration of Cargo would hold for the copy, too.
        let copy = Self(tempfile::tempdir().context("cannot make a directory")?);
        let files = "git ls-files -z --cached --others --exclude-standard | \
                     tar --create --null --files-from=- | tar --extract --directory \"$0\"";
        run(Command::new("sh").args(["-c", files]).arg(copy.root()).current_dir(root()?))?;
        fs::create_dir(copy.root().join("target")).context("cannot make a directory")?;
        symlink(target_dir()?.join("tools"), copy.root().join("target/tools"))
            .context("cannot link the tools")?;
        Ok(copy)
    }

    fn root(&self) -> &Path {
        self.0.path()
    }
}
