//! Builds the extension and the hooks of the tests that are written in C and Go, and prints the path of the component.
//!
//! A program of its own: what makes bindings and components takes longer to compile than all else of `xtask`, and
//! the demo needs none of it.

#![expect(clippy::print_stdout, reason = "the path is its answer")]

mod c;
mod go;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

/// Builds one guest.
#[derive(Debug, Parser)]
struct Arguments {
    guest: Guest,
    /// Where what is built goes.
    out_dir: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Guest {
    CExtension,
    CHook,
    GoHook,
}

fn main() -> Result<()> {
    let Arguments { guest, out_dir } = Arguments::parse();
    let component = match guest {
        Guest::CExtension => c::extension(&out_dir),
        Guest::CHook => c::hook(&out_dir),
        Guest::GoHook => go::hook(&out_dir),
    }?;
    println!("{}", component.display());
    Ok(())
}

/// The root of the workspace.
fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the crate lies in no workspace")
}
