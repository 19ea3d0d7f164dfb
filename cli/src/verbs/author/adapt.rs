//! `weir build --adapt`: makes a component of a core module for WASI 0.1, with wasmtime's adapter.

use std::{fs, path::Path};

use anyhow::{Context, ensure};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use super::section;

/// Replaces the module in this file by the component. If that fails, the file is as it was.
pub(super) fn adapt(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let module = fs::read(path).with_context(|| format!("cannot read `{shown}`"))?;
    ensure!(Parser::is_core_wasm(&module), "`{shown}` is no core module");
    let component = component(&module).with_context(|| format!("`{shown}` cannot be made a component"))?;
    section::write_over(path, &component)
}

fn component(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    let adapter = match is_command(module)? {
        true => WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
        false => WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
    };
    ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?
        .encode()
}

/// Whether a module is a program: such a module exports `_start`.
fn is_command(module: &[u8]) -> anyhow::Result<bool> {
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ExportSection(exports) = payload? {
            for export in exports {
                if export?.name == "_start" {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}
