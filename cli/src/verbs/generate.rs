//! `weir generate`: typed clients of contracts.

use std::{fs, path::PathBuf};

use anyhow::Context;
use clap::{ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use weir_generate::generate;

use crate::{args::Target, complete, contracts::Source, exit::Usage, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The same descriptions give the same text. A client for an extension uses `weir-sdk`, one for a sidecar or an
app in Rust `weir-peer`. In TypeScript it uses `weir-client`, in Python `weir_peer.py`.

Examples:
  weir generate rust settings@1 -o src/settings.rs
  weir generate typescript settings.wasm device-info.wasm -o weir.ts
  weir generate python --for app settings@1")]
pub(crate) struct Args {
    /// The language
    #[arg(value_name = "LANGUAGE")]
    language: Language,
    /// Components, documents, or contracts of a running Main
    #[arg(value_name = "FILE|CONTRACT", required = true)]
    #[arg(add = ArgValueCompleter::new(complete::contract_or_file))]
    which: Vec<String>,
    /// The program that calls; by default an extension in Rust, an app in TypeScript, a sidecar in Python
    #[arg(long = "for", value_name = "KIND")]
    kind: Option<Kind>,
    /// Write this file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// Rust
    Rust,
    /// TypeScript
    Typescript,
    /// Python
    Python,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
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

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    for which in &args.which {
        let described = Source::of(which).load(&args.target).await?;
        documents.extend(described.into_iter().map(|described| described.document));
    }
    let language = args.language.into();
    let kind = args.kind.map_or(weir_generate::Language::usual_kind(language), Into::into);
    let text = generate(&documents, language, kind).map_err(|error| Usage(error.to_string()))?;
    match &args.output {
        Some(path) => fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display())),
        None => output::write(text.as_bytes()),
    }
}
