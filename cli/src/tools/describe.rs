//! `weir describe`.

use weir_host::openrpc::{Document, Role, combined};

use super::documents::Source;
use crate::{
    args::DescribeArgs,
    client::{Client, Patience},
    contracts::{Described, of_main},
    output::{self, printable, printable_json},
};

pub(crate) async fn describe(args: DescribeArgs) -> anyhow::Result<()> {
    let described = match &args.which {
        Some(which) => Source::of(which).load(&args.target).await?,
        None => of_main(&mut Client::connect(&args.target).await?, None, Patience::Query).await?,
    };
    if args.openrpc {
        return openrpc(described);
    }
    if described.is_empty() {
        return output::line("nothing that runs describes a contract");
    }
    let show = if args.markdown { markdown } else { text };
    let pages: Vec<String> = described.iter().map(show).collect();
    output::write(pages.join("\n").as_bytes())
}

/// One document as it is. Of several, those of providers in one.
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

fn markdown(described: &Described) -> String {
    described.document.markdown()
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
