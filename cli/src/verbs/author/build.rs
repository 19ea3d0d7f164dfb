//! `weir build`: builds a project, and describes its contracts in its component.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};
use bytesize::ByteSize;
use clap::{ArgGroup, ValueHint};
use weir_host::ExtensionConfig;

use super::{
    adapt, go,
    group::Group,
    project::{PYTHON_ENVIRONMENT, Project, TARGET, Tools, to_stderr},
    section::{self, Section},
};
use crate::{client::until_interrupted, output};

/// The file beside `weir.toml` that says what an extension is and needs.
const MANIFEST: &str = "manifest.json";

/// The file beside `weir.toml` that describes contracts.
const CONTRACTS: &str = "contracts.json";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
In Rust, builds with `cargo`: for WebAssembly if `weir.toml` has extensions or hooks. In other languages,
builds what `weir new` makes, in C and others with `make`. If there is a `manifest.json`, or a
`contracts.json` (OpenRPC documents: one, or a list of them), it is put into the component that `weir.toml`
names, in place of an older one.

Examples:
  weir build
  weir build ../greeter
  weir build --adapt tool.wasm
  weir build --component greeter.wasm --manifest manifest.json --contracts contracts.json")]
#[command(group(ArgGroup::new("descriptions").args(["manifest", "contracts"]).multiple(true)))]
pub(crate) struct Args {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Build nothing; make a component of this core module for WASI 0.1, in its place
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["dir", "component", "descriptions"])]
    adapt: Option<PathBuf>,
    /// Build nothing; put `--manifest` and `--contracts` into this component
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "descriptions")]
    component: Option<PathBuf>,
    /// The manifest; by default `manifest.json` of the project, if it is there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    manifest: Option<PathBuf>,
    /// The description; by default `contracts.json` of the project, if it is there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    contracts: Option<PathBuf>,
}

pub(in crate::verbs) async fn run(args: Args) -> anyhow::Result<()> {
    if let Some(module) = &args.adapt {
        adapt::adapt(module)?;
        return report(module, module.display().to_string());
    }
    let named = Descriptions { manifest: args.manifest, contracts: args.contracts };
    if let Some(component) = &args.component {
        section::embed(component, &named.sections(|path| path.display().to_string())?)?;
        return report(component, component.display().to_string());
    }
    let project = Project::load(&args.dir)?;
    until_interrupted(build(&project, &named)).await?;
    for artifact in artifacts(&project)? {
        report(&artifact, project.shown(&artifact))?;
    }
    Ok(())
}

/// The files that describe a component.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    manifest: Option<PathBuf>,
    contracts: Option<PathBuf>,
}

/// Builds the project and describes its component. The tools write to stderr.
pub(super) async fn build(project: &Project, named: &Descriptions) -> anyhow::Result<()> {
    // If it is not clear which component is the project's, this fails before anything is written.
    let component = match project.tools {
        Tools::Python | Tools::Go => project.own_component()?,
        Tools::Cargo | Tools::Npm | Tools::Make | Tools::None => None,
    };
    for mut command in commands(project, component)? {
        let shown = command.get_program().to_string_lossy().into_owned();
        let status = Group::spawn(command.stdout(to_stderr()?))?.wait().await?;
        ensure!(status.success(), "the build failed: `{shown}`: {status}");
    }
    if let (Tools::Go, Some(component)) = (project.tools, component) {
        go::encode(project, component)?;
    }
    let sections = named.or_found(project)?.sections(|path| project.shown(path))?;
    if sections.is_empty() {
        return Ok(());
    }
    match project.own_component().context("name the one to describe with `--component`")? {
        // The configuration names no component: the descriptions were checked above, and stay in their files.
        None => Ok(()),
        Some(component) => section::embed(component, &sections),
    }
}

impl Descriptions {
    /// Returns the named files. In place of one that is not named, takes the project's own, or else the one that Go's
    /// SDK has written, if there is one.
    fn or_found(&self, project: &Project) -> anyhow::Result<Self> {
        let or_found = |named: &Option<PathBuf>, file: &str| {
            let by_sdk = (project.tools == Tools::Go).then(|| project.own(file)).transpose()?;
            let found =
                [Some(project.dir.join(file)), by_sdk].into_iter().flatten().find(|file| file.exists());
            anyhow::Ok(named.clone().or(found))
        };
        Ok(Self {
            manifest: or_found(&self.manifest, MANIFEST)?,
            contracts: or_found(&self.contracts, CONTRACTS)?,
        })
    }

    fn sections(&self, shown: impl Fn(&Path) -> String) -> anyhow::Result<Vec<Section>> {
        let manifest = self.manifest.as_ref().map(|path| section::manifest(path, &shown(path)));
        let contracts = self.contracts.as_ref().map(|path| section::contracts(path, &shown(path)));
        manifest.into_iter().chain(contracts).collect()
    }
}

fn commands(project: &Project, component: Option<&Path>) -> anyhow::Result<Vec<Command>> {
    Ok(match project.tools {
        Tools::Cargo => match project.place_of_components() {
            Some(_) => vec![cargo_for_wasm(project)?],
            None => vec![project.command("cargo", &["build"])],
        },
        Tools::Npm => {
            let install = project.command("npm", &["install", "--no-audit", "--no-fund"]);
            let is_installed = project.dir.join("node_modules").is_dir();
            let build = project.command("npm", &["run", "--silent", "build"]);
            (!is_installed).then_some(install).into_iter().chain([build]).collect()
        }
        Tools::Go => go::commands(project)?,
        Tools::Python => match component {
            Some(component) => of_python(project, component),
            None => vec![project.command("python3", &["-m", "py_compile", "main.py"])],
        },
        Tools::Make => vec![project.command("make", &["--silent"])],
        Tools::None => Vec::new(),
    })
}

/// Returns the commands that make a component of Python: by `weir-py` of the package `weir-sdk`, or by componentize-py if
/// it serves HTTP or exports functions. The first ones make the environment, if there is none.
fn of_python(project: &Project, component: &Path) -> Vec<Command> {
    let is_it = |extension: &&ExtensionConfig| extension.component.path() == Some(component);
    let extension = project.config.extensions.iter().find(is_it);
    let world = extension.and_then(|it| match (&it.serves_http, it.exports.is_empty()) {
        (Some(_), _) => Some("server"),
        (None, false) => Some("plugin"),
        (None, true) => None,
    });
    let (tool, arguments) = match world {
        Some(world) => {
            ("componentize-py", ["-d", "wit", "-w", world, "componentize", "app", "--output"].to_vec())
        }
        None => ("weir-py", ["build", "app", "--output"].to_vec()),
    };
    let tool = project.python_tool(tool);
    let mut commands = Vec::new();
    if !tool.is_file() && env::var_os("VIRTUAL_ENV").is_none() {
        commands.push(project.command("python3", &["-m", "venv", PYTHON_ENVIRONMENT]));
        let pip = project.python_tool("pip");
        let install = ["install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        commands.push(project.command(&pip.to_string_lossy(), &install));
    }
    let mut build = project.command(&tool.to_string_lossy(), &arguments);
    build.arg(component);
    commands.push(build);
    commands
}

fn cargo_for_wasm(project: &Project) -> anyhow::Result<Command> {
    let mut rustc = project.command("rustc", &["--print", "target-libdir", "--target", TARGET]);
    let output =
        rustc.output().context("cannot run `rustc`; `https://rustup.rs` says how to install Rust")?;
    let libraries = String::from_utf8_lossy(&output.stdout);
    if !Path::new(libraries.trim_end()).is_dir() {
        bail!("this toolchain cannot build for WebAssembly: run `rustup target add {TARGET}`");
    }
    let mut cargo = project.command("cargo", &["build", "--release", "--target", TARGET]);
    // Cargo builds where `weir.toml` looks for the component, whatever the environment says.
    if let Some(target) = project.own_target_dir()? {
        cargo.arg("--target-dir").arg(target);
    }
    Ok(cargo)
}

/// Returns the components of the extensions, and the `.wasm` files in the directories of hooks.
pub(super) fn artifacts(project: &Project) -> anyhow::Result<Vec<PathBuf>> {
    let mut artifacts: Vec<PathBuf> = project.components().into_iter().map(Path::to_owned).collect();
    for (_, dir) in project.hooks() {
        let entries = fs::read_dir(dir).with_context(|| format!("cannot read `{}`", dir.display()))?;
        let files = entries.flatten().map(|entry| entry.path());
        artifacts.extend(files.filter(|path| path.extension().is_some_and(|end| end == "wasm")));
    }
    Ok(artifacts)
}

fn report(artifact: &Path, shown: String) -> anyhow::Result<()> {
    let metadata = fs::metadata(artifact)
        .with_context(|| format!("the build made no `{shown}`, which `weir.toml` names"))?;
    output::line(&format!("{}  {}", output::printable(&shown), ByteSize(metadata.len())))
}
