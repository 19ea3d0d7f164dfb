//! `weir generate`: typed clients of contracts, and their interfaces in WIT.

use std::{fs, path::PathBuf};

use anyhow::Context;
use clap::ValueHint;
use clap_complete::engine::ArgValueCompleter;
use weir_generate::{Kind, Language, generate};

use crate::{args::Target, complete, contracts::Source, exit::Usage, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The same descriptions give the same text. A client for an extension uses `weir-sdk`, one for a sidecar or an
app in Rust `weir-peer`. In TypeScript it uses `weir-client`, in Python `weir_peer.py`. `wit` gives interfaces
that any component may import.

Examples:
  weir generate rust settings@1 -o src/settings.rs
  weir generate typescript settings.wasm device-info.wasm -o weir.ts
  weir generate python --for app settings@1
  weir generate wit settings@1 -o wit/deps/settings.wit")]
pub(crate) struct Args {
    /// The language
    #[arg(value_name = "LANGUAGE")]
    language: Language,
    /// Components, documents, WIT, or contracts of a running Main
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

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let mut documents = Vec::new();
    for which in &args.which {
        let described = Source::of(which).load(&args.target).await?;
        documents.extend(described.into_iter().map(|described| described.document));
    }
    let kind = args.kind.unwrap_or(args.language.usual_kind());
    let text = generate(&documents, args.language, kind).map_err(|error| Usage(error.to_string()))?;
    match &args.output {
        Some(path) => fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display())),
        None => output::write(text.as_bytes()),
    }
}
