//! Builds the hook written in Go (`tests/test-guests/go`).
//!
//! Go makes a module for WASI 0.1. wit-component and its adapter to WASI 0.2 make a component of it.
//! `docs/hooks.md` shows the same by hand.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::root;

/// Builds the hook `hook.go` into `out_dir` and returns the path of the component.
///
/// # Errors
/// If the program does not compile, or cannot be made into a component.
pub(crate) fn hook(out_dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(out_dir).with_context(|| format!("cannot make `{}`", out_dir.display()))?;
    let module = out_dir.join("hook.core.wasm");
    let mut build = Command::new("go");
    build.args(["build", "-trimpath", "-ldflags=-s -w", "-o"]).arg(&module);
    build.arg(root()?.join("tests/test-guests/go/hook.go")).envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]);
    let status = build.status().context("cannot run `go`")?;
    ensure!(status.success(), "`go` failed: {status}");

    let mut bytes = fs::read(&module).with_context(|| format!("cannot read `{}`", module.display()))?;
    embed_world(&mut bytes)?;
    let component = ComponentEncoder::default()
        .module(&bytes)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
        .encode()?;
    let path = out_dir.join("hook.wasm");
    fs::write(&path, component).with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(path)
}

/// Describes, in the module, its import beyond WASI 0.1.
fn embed_world(module: &mut Vec<u8>) -> Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(root()?.join("tests/test-guests/exit.wit"))?;
    let world = resolve.select_world(&[package], Some("exit"))?;
    embed_component_metadata(module, &resolve, world, StringEncoding::UTF8, false)
}
