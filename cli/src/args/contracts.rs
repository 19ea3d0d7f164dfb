//! Arguments of `weir describe`, `weir generate` and `weir check-contract`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::Target;
use crate::complete;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A file is a component, or a document with the ending `.json`. Without a file, Main is asked for the contracts
of its extensions. Of several contracts, --openrpc prints one document with all operations.

Examples:
  weir describe settings@1
  weir describe settings.wasm
  weir describe --openrpc settings@1 > settings.json
  weir describe --markdown settings.wasm > settings.md")]
pub(crate) struct DescribeArgs {
    /// A component, a document or a contract; by default, all contracts of what runs
    #[arg(value_name = "FILE|CONTRACT")]
    #[arg(add = ArgValueCompleter::new(complete::contract_or_file))]
    pub(crate) which: Option<String>,
    /// Print OpenRPC
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) openrpc: bool,
    /// Print Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Each file is a component, or a document with the ending `.json`. Every contract that OLD serves is compared
with the one of the same name and version in NEW. Exit code 1: a caller or a job of OLD can fail with NEW.

Examples:
  weir check-contract settings-1.0.wasm settings.wasm
  weir check-contract --json settings.json settings.wasm | jq .compatible")]
pub(crate) struct CheckContractArgs {
    /// The version before: a component or a document
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub(crate) old: PathBuf,
    /// The version now
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    pub(crate) new: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The same descriptions give the same text. A client for an extension uses `weir-sdk`, one for a sidecar or an
app in Rust `weir-peer`. In TypeScript it uses `weir-client`, in Python `weir_peer.py`.

Examples:
  weir generate rust settings@1 -o src/settings.rs
  weir generate typescript settings.wasm device-info.wasm -o weir.ts
  weir generate python --for app settings@1")]
pub(crate) struct GenerateArgs {
    /// The language
    #[arg(value_name = "LANGUAGE")]
    pub(crate) language: Language,
    /// Components, documents, or contracts of a running Main
    #[arg(value_name = "FILE|CONTRACT", required = true)]
    #[arg(add = ArgValueCompleter::new(complete::contract_or_file))]
    pub(crate) which: Vec<String>,
    /// The program that calls; by default an extension in Rust, an app in TypeScript, a sidecar in Python
    #[arg(long = "for", value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Write this file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Language {
    /// Rust
    Rust,
    /// TypeScript
    Typescript,
    /// Python
    Python,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// An extension
    Extension,
    /// A program beside Main that goes on when Main restarts
    App,
    /// A program beside Main that makes its sessions itself
    Sidecar,
}

impl From<Language> for weir_generate::Language {
    fn from(language: Language) -> Self {
        match language {
            Language::Rust => Self::Rust,
            Language::Typescript => Self::TypeScript,
            Language::Python => Self::Python,
        }
    }
}

impl From<Kind> for weir_generate::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Extension => Self::Extension,
            Kind::App => Self::App,
            Kind::Sidecar => Self::Sidecar,
        }
    }
}
