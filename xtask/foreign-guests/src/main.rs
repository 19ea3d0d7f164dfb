//! Builds the test guests in C and Go, and prints the path of the component.
//!
//! A separate program, because generators of bindings and components take longer to compile than the rest of
//! `xtask`, and the demo needs none.

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
        Guest::GoHook => go::hook(&out_dir),
    }?;
    println!("{}", component.display());
    Ok(())
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the crate lies in no workspace")
}
