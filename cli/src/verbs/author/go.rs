//! Builds projects in Go. Go's own compiler makes a module for WASI 0.1, and `encode` makes a component of it with the
//! WIT of the SDK, which writes the description of what the program serves. A component that exports functions or answers
//! by HTTP needs no SDK: the project has the WIT, and `wit-bindgen` makes bindings of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use weir_host::ExtensionConfig;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::project::Project;

/// The module of the SDK. It holds the WIT that its bindings were made from.
pub(super) const SDK: &str = "github.com/weir-rt/weir/guest-sdk/go";

const WORLD: &str = "go";

/// What bindings of `wit-bindgen` need at run time.
const RUNTIME: &str = "go.bytecodealliance.org/pkg/wit/types";

/// The world of a project's own WIT: of a component that exports functions, and of one that answers by HTTP.
const PLUGIN: &str = "plugin";
const SERVER: &str = "server";

/// Where these bindings are.
const BINDINGS: &str = "dist/bindings";

/// The environment variable that names a directory. The SDK then describes there what the program serves, and the
/// program serves nothing.
const DESCRIBE: &str = "WEIR_DESCRIBE";

/// Lets the bindings call functions of Go's runtime.
const LINK: &str = "-ldflags=-checklinkname=0";

const NO_GO: &str = "cannot run `go`; `https://go.dev/dl` says how to install it";

/// Returns the commands that build the project. For a component, they leave a module and its description in `.weir`.
pub(super) fn commands(project: &Project) -> anyhow::Result<Vec<Command>> {
    let mut commands = Vec::new();
    let own_world = own_world(project)?;
    if let Some(world) = own_world {
        let module = of_go(project, &["list", "-m"])?.context("`go.mod` names no module")?;
        let bindings = format!("{module}/{BINDINGS}");
        let generate = ["go", "wit", "--world", world, "--out-dir", BINDINGS];
        let mut generate = project.command("wit-bindgen", &generate);
        generate.args(["--pkg-name", &bindings, "--export-pkg-name", &module]);
        commands.push(generate);
    }
    // Asks with `go list`, which writes no file, since `weir dev` would see a change.
    if of_go(project, &["list", if own_world.is_some() { RUNTIME } else { SDK }])?.is_none() {
        commands.push(project.command("go", &["mod", "tidy"]));
    }
    if project.place_of_components().is_none() {
        commands.push(project.command("go", &["build", "./..."]));
        return Ok(commands);
    }
    // The module is built as a library, whose `run` the SDK exports. The WASI adapter for commands would ask Go for
    // memory before Go has started.
    let mut build = project.command("go", &["build", "-buildmode=c-shared", "-trimpath", LINK, "-o"]);
    build.arg(module(project)?).arg(".").envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]);
    commands.push(build);
    if own_world.is_none() {
        let mut describe = project.command("go", &["run", "."]);
        describe.env(DESCRIBE, project.own("")?);
        commands.push(describe);
    }
    Ok(commands)
}

/// Writes the component, made of the module that the build has left and of the WIT of the SDK or the project.
pub(super) fn encode(project: &Project, component: &Path) -> anyhow::Result<()> {
    let module = module(project)?;
    let mut bytes = fs::read(&module).with_context(|| format!("cannot read `{}`", module.display()))?;
    let mut resolve = Resolve::default();
    let (dir, world) = match own_world(project)? {
        Some(world) => (project.dir.clone(), world),
        None => (sdk(project)?, WORLD),
    };
    let (package, _) = resolve.push_path(dir.join("wit"))?;
    let world = resolve.select_world(&[package], Some(world))?;
    embed_component_metadata(&mut bytes, &resolve, world, StringEncoding::UTF8, false)?;
    let encoded = ComponentEncoder::default()
        .module(&bytes)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
        .encode()?;
    let parent = component.parent().map_or(Ok(()), fs::create_dir_all);
    parent
        .and_then(|()| fs::write(component, encoded))
        .with_context(|| format!("cannot write `{}`", component.display()))
}

fn module(project: &Project) -> anyhow::Result<PathBuf> {
    project.own("module.wasm")
}

/// The world of the project's own WIT, if its component needs no SDK.
fn own_world(project: &Project) -> anyhow::Result<Option<&'static str>> {
    let own = project.own_component()?;
    let is_own = |extension: &&ExtensionConfig| own.is_some() && extension.component.path() == own;
    let world = |extension: &ExtensionConfig| {
        let is_plugin = (!extension.exports.is_empty()).then_some(PLUGIN);
        is_plugin.or_else(|| extension.serves_http.is_some().then_some(SERVER))
    };
    Ok(project.config.extensions.iter().filter(is_own).find_map(world))
}

fn sdk(project: &Project) -> anyhow::Result<PathBuf> {
    let dir = of_go(project, &["list", "-m", "-f", "{{.Dir}}", SDK])?;
    let dir = dir.with_context(|| format!("`go.mod` does not require `{SDK}`"))?;
    Ok(PathBuf::from(dir))
}

/// What Go says. None if it fails or says nothing.
fn of_go(project: &Project, arguments: &[&str]) -> anyhow::Result<Option<String>> {
    let output = project.command("go", arguments).output().context(NO_GO)?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Some(said).filter(|said| output.status.success() && !said.is_empty()))
}
