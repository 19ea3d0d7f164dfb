//! Builds projects in Go. Go's own compiler makes a module for WASI 0.1, and `encode` makes a component of it with the
//! WIT of the SDK. The SDK writes the description of what the program serves.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::project::Project;

/// The module of the SDK. It holds the WIT that its bindings were made from.
pub(super) const SDK: &str = "github.com/weir-rt/weir/guest-sdk/go";

const WORLD: &str = "go";

/// The environment variable that names a directory. The SDK then describes there what the program serves, and the
/// program serves nothing.
const DESCRIBE: &str = "WEIR_DESCRIBE";

/// Lets the bindings call functions of Go's runtime.
const LINK: &str = "-ldflags=-checklinkname=0";

const NO_GO: &str = "cannot run `go`; `https://go.dev/dl` says how to install it";

/// Returns the commands that build the project. For a component, they leave a module and its description in `.weir`.
pub(super) fn commands(project: &Project) -> anyhow::Result<Vec<Command>> {
    let mut commands = Vec::new();
    if !knows_sdk(project)? {
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
    let mut describe = project.command("go", &["run", "."]);
    describe.env(DESCRIBE, project.own("")?);
    commands.extend([build, describe]);
    Ok(commands)
}

/// Writes the component, made of the module that the build has left and of the WIT of the SDK.
pub(super) fn encode(project: &Project, component: &Path) -> anyhow::Result<()> {
    let module = module(project)?;
    let mut bytes = fs::read(&module).with_context(|| format!("cannot read `{}`", module.display()))?;
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(sdk(project)?.join("wit"))?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
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

/// Whether the SDK is downloaded and in `go.sum`. Asks with `go list`, which writes no file, since `weir dev` would see
/// a change.
fn knows_sdk(project: &Project) -> anyhow::Result<bool> {
    let output = project.command("go", &["list", SDK]).output();
    Ok(output.context(NO_GO)?.status.success())
}

fn sdk(project: &Project) -> anyhow::Result<PathBuf> {
    let output = project.command("go", &["list", "-m", "-f", "{{.Dir}}", SDK]).output();
    let output = output.context(NO_GO)?;
    let dir = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && !dir.trim().is_empty(), "`go.mod` does not require `{SDK}`");
    Ok(PathBuf::from(dir.trim()))
}
