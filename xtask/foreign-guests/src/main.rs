//! Builds the test guests in C and Go, and prints the path of the component.
//!
//! A separate program, because generators of bindings and components take longer to compile than the rest of
//! `xtask`, and the demo needs none.

#![expect(clippy::print_stdout, reason = "the path is its answer")]

mod c;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Builds one guest.
#[derive(Debug, Parser)]
struct Arguments {
    guest: Guest,
    /// The directory for the component.
    out_dir: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Guest {
    CExtension,
    CHook,
    CConformance,
    /// The SDK's native tests, which also run. The path is that of their directory.
    CNativeTests,
    GoHook,
}

fn main() -> Result<()> {
    let Arguments { guest, out_dir } = Arguments::parse();
    let component = match guest {
        Guest::CExtension => c::extension(&out_dir),
        Guest::CHook => c::hook(&out_dir),
        Guest::CConformance => c::conformance(&out_dir),
        Guest::CNativeTests => c::native_tests(&out_dir),
        Guest::GoHook => go_hook(&out_dir),
    }?;
    println!("{}", component.display());
    Ok(())
}

/// Builds the hook in Go (`tests/test-guests/go`) into `out_dir` and returns the path of the component.
///
/// Go makes a module for WASI 0.1, and wit-component with its adapter to WASI 0.2 a component of that.
/// `docs/hooks.md` shows the same by hand.
fn go_hook(out_dir: &Path) -> Result<PathBuf> {
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

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the crate lies in no workspace")
}

#[cfg(test)]
mod tests {
    use wit_component::{WitPrinter, metadata};

    use super::*;

    /// A program in Go: its runtime imports WASI 0.1, which `weir build` adapts to 0.2.
    const WORLD: &str = "package weir:go;
        world go { include weir:iec/imports@0.1.0; export wasi:cli/run@0.2.12; }";

    /// The SDK in Go is a module of its own, fetched without the rest of Weir. `WEIR_BLESS=1 cargo test -p
    /// foreign-guests` writes the file anew.
    #[test]
    fn the_go_sdk_has_what_its_world_needs_of_the_wit_files() {
        let mut resolve = Resolve::default();
        resolve.push_path(root().unwrap().join("wit")).unwrap();
        let package = resolve.push_str("go.wit", WORLD).unwrap();
        let world = resolve.select_world(&[package], Some("go")).unwrap();
        // In a module, as in a component, a world has what it needs, and no more.
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
        let (_, needed) = metadata::decode(&module).unwrap();
        let named = |name: &str| {
            let mut packages = needed.resolve.packages.iter();
            packages.find(|(_, package)| package.name.to_string() == name).unwrap().0
        };
        let others = ["wasi:cli@0.2.12", "wasi:config@0.2.0-rc.1", "wasi:io@0.2.12", "weir:iec@0.1.0"];
        let mut printer = WitPrinter::default();
        printer.print(&needed.resolve, named("weir:go"), &others.map(named)).unwrap();
        let made =
            format!("// Made of Weir's `wit/` by a test of `xtask/foreign-guests`.\n{}", printer.output);

        let path = root().unwrap().join("guest-sdk/go/wit/go.wit");
        if std::env::var_os("WEIR_BLESS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            made,
            "`{}` is out of date: write it with `WEIR_BLESS=1`, then run `guest-sdk/go/generate.sh` for the bindings",
            path.display()
        );
        // As `weir build` reads it.
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_path(path.parent().unwrap()).unwrap();
        let world = resolve.select_world(&[package], Some("go")).unwrap();
        assert_eq!(resolve.worlds[world].imports.len(), needed.resolve.worlds[needed.world].imports.len());
    }
}
