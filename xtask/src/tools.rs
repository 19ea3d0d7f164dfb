//! Programs of others that tasks run, in pinned versions: found, or built once below `target/tools`. Go builds oras, the
//! NATS server and its command. The server may else come from Debian's package.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    files,
    run::{cargo, output, root, run, target_dir},
    setup::{self, GO, NATS_SERVER},
};

/// The path of the NATS server from the root of the workspace: the program, or a link to it.
const SERVER: &str = "target/tools/bin/nats-server";

/// The variable that names a NATS server to use instead.
const SERVER_VARIABLE: &str = "WEIR_NATS_SERVER";

/// What Go builds: the module with its version, and the name of the program.
struct Tool {
    module: &'static str,
    version: &'static str,
    program: &'static str,
}

const SERVER_TOOL: Tool =
    Tool { module: "github.com/nats-io/nats-server/v2", version: "v2.15.2", program: "nats-server" };

const COMMAND_TOOL: Tool =
    Tool { module: "github.com/nats-io/natscli/nats", version: "v0.5.1", program: "nats" };

const ORAS_TOOL: Tool = Tool { module: "oras.land/oras/cmd/oras", version: "v1.3.6", program: "oras" };

/// The program of a crate with the same name, in this version: found, or installed. It prints its version for
/// `--version`.
pub(crate) fn of_cargo(name: &str, version: &str) -> Result<PathBuf> {
    of_crate(name, name, version, None)
}

/// The program of a crate in this version, with these features alone if they are named: found, or installed.
pub(crate) fn of_crate(package: &str, name: &str, version: &str, features: Option<&str>) -> Result<PathBuf> {
    let tools = target_dir()?.join("tools");
    let built = tools.join("bin").join(name);
    // One that somebody else has installed may have other features.
    let found = features.is_none().then(|| PathBuf::from(name));
    for program in [built.clone()].into_iter().chain(found) {
        let printed = output(Command::new(&program).arg("--version")).unwrap_or_default();
        if printed.split_whitespace().any(|word| word == version) {
            return Ok(program);
        }
    }
    // It is unoptimised: so it builds much faster, and it runs for seconds only.
    let mut install = cargo(["install", package, "--locked", "--debug", "--version"])?;
    install.arg(format!("={version}")).arg("--root").arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "false");
    if let Some(features) = features {
        install.args(["--no-default-features", "--features", features]);
    }
    // Nothing else can use the artifacts of this build, so they are not kept.
    run(install.env_remove("CARGO_TARGET_DIR"))?;
    Ok(built)
}

/// The NATS server. Its path is always [`SERVER`].
pub(crate) fn nats_server() -> Result<PathBuf> {
    let server = root()?.join(SERVER);
    if let Some(own) = env::var_os(SERVER_VARIABLE) {
        let own = fs::canonicalize(&own)
            .with_context(|| format!("`{SERVER_VARIABLE}` names `{}`", own.display()))?;
        link(&own, &server)?;
        return Ok(server);
    }
    let needs_package = match of_go(&SERVER_TOOL) {
        Ok(_) => return Ok(server),
        Err(error) => error,
    };
    eprintln!("going on with Debian's `nats-server`: {needs_package:#}");
    let missing = setup::install(&[&NATS_SERVER])?;
    ensure!(missing.is_empty(), "first run `{}`, or install Go 1.26", setup::line(&missing));
    let found = output(Command::new("sh").args(["-c", "command -v nats-server"]))?;
    link(Path::new(found.trim_end()), &server)?;
    Ok(server)
}

/// The command that shows what a server has.
pub(crate) fn nats_command() -> Result<PathBuf> {
    of_go(&COMMAND_TOOL)
}

/// The command of the OCI's registry libraries.
pub(crate) fn oras() -> Result<PathBuf> {
    of_go(&ORAS_TOOL)
}

/// A program that Go builds, in its pinned version: found, or built.
fn of_go(tool: &Tool) -> Result<PathBuf> {
    let Tool { module, version, program } = tool;
    let directory = target_dir()?.join("tools/bin");
    let path = directory.join(program);
    let printed = output(Command::new(&path).arg("--version")).unwrap_or_default();
    if printed.split_whitespace().any(|word| word == *version) {
        return Ok(path);
    }
    ensure!(GO.is_met(), "there is no Go 1.26 to build `{module}`");
    files::make_directory(&directory)?;
    // Go would write through a link to another program.
    if path.is_symlink() {
        fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", path.display()))?;
    }
    // No `go.mod` lies in or above this directory that could have a say.
    let mut go = Command::new("go");
    go.arg("install").arg(format!("{module}@{version}")).env("GOBIN", &directory).current_dir(&directory);
    run(go.env("GOTOOLCHAIN", "local"))?;
    Ok(path)
}

fn link(from: &Path, to: &Path) -> Result<()> {
    let directory = to.parent().context("a tool lies in no directory")?;
    files::make_directory(directory)?;
    if to.symlink_metadata().is_ok() {
        fs::remove_file(to).with_context(|| format!("cannot remove `{}`", to.display()))?;
    }
    symlink(from, to).with_context(|| format!("cannot link `{}`", to.display()))
}
