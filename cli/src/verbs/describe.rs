//! `weir describe`: contracts of components, of documents, and of what runs.

use clap_complete::engine::ArgValueCompleter;
use weir_host::openrpc::{Document, Role, combined};

use crate::{
    args::Target,
    complete,
    contracts::{Described, Source, of_main},
    output::{self, printable, printable_json},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A file is a component, a document with the ending `.json`, or WIT: a file with the ending `.wit` or a
directory. Without a file, Main is asked for the contracts of its extensions. Of several contracts, --openrpc prints one document with all operations.

Examples:
  weir describe settings@1
  weir describe settings.wasm
  weir describe --openrpc greeter.wit > greeter.json
  weir describe --openrpc settings@1 > settings.json
  weir describe --markdown settings.wasm > settings.md")]
pub(crate) struct Args {
    /// A component, a document, WIT or a contract; by default, all contracts of what runs
    #[arg(value_name = "FILE|CONTRACT", add = ArgValueCompleter::new(complete::contract_or_file))]
    which: Option<String>,
    /// Print OpenRPC
    #[arg(long, conflicts_with = "markdown")]
    openrpc: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
    #[command(flatten)]
    target: Target,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let described = match &args.which {
        Some(which) => Source::of(which).load(&args.target).await?,
        None => of_main(&args.target, None).await?,
    };
    if args.openrpc {
        return openrpc(described);
    }
    if described.is_empty() {
        return output::line("nothing that runs describes a contract");
    }
    let show = |of: &Described| if args.markdown { of.document.markdown() } else { text(of) };
    let pages: Vec<String> = described.iter().map(show).collect();
    output::write(pages.join("\n").as_bytes())
}

/// Prints one document as it is. Of several documents, those of providers are combined in one.
fn openrpc(described: Vec<Described>) -> anyhow::Result<()> {
    let mut documents: Vec<Document> = described.into_iter().map(|described| described.document).collect();
    let json = match &*documents {
        [only] => only.to_json(),
        _ => {
            documents.retain(|document| document.role == Role::Provider);
            combined(&documents)
        }
    };
    let json = serde_json::to_string_pretty(&json)?;
    output::line(&if output::is_terminal() { printable_json(&json) } else { json })
}

fn text(Described { provider, document }: &Described) -> String {
    let text = document.text();
    match (provider, text.split_once('\n')) {
        (Some(provider), Some((head, rest))) => {
            format!("{head}, served by `{}`\n{rest}", printable(provider))
        }
        _ => text,
    }
}
