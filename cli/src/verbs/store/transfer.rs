//! `weir store export` and `import`: all entries of a store, page by page.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::PathBuf,
};

use anyhow::Context;
use clap::ValueHint;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::NextEntry;
use crate::{
    args::{Asked, Target},
    client::{Client, Patience, Route},
    exit::Usage,
    output,
};

/// The most entries of one page of an export or an import.
const PAGE: usize = 1000;

/// A page of an import ends once its entries have this many bytes.
const PAGE_BYTES: usize = 4 << 20;

/// The most bytes of a line of an import: room for the largest value in Base64.
const MAX_LINE: u64 = 96 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A line has `owner`, `key`, and `value`, or `base64` for a value that is no text. Pages of the store are read
one after another: an entry that changes meanwhile is there as it was, or as it is.

Examples:
  weir store export settings > settings.jsonl
  weir store export settings --owner uploader | jq -r .key")]
pub(crate) struct ExportArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: String,
    /// Only entries of this owner
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Entries are set in parts, each whole or not at all. If one fails, those before it stay.

Examples:
  weir store import settings settings.jsonl
  weir store export old | weir store import new")]
pub(crate) struct ImportArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: String,
    /// The file of `weir store export`; stdin by default
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
}

/// An entry as a line of an export. The size that Main also tells is left out.
#[derive(Deserialize, Serialize)]
struct Line {
    #[serde(default)]
    owner: String,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    entries: Vec<Line>,
    next: Option<NextEntry>,
}

pub(super) async fn export(ExportArgs { store, owner, target }: ExportArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let mut after = None::<NextEntry>;
    loop {
        let route = Route::named(&["stores", &store, "entries"])?
            .with("owner", owner.as_deref())
            .with("after-owner", after.as_ref().map(|after| &*after.owner))
            .with("after-key", after.as_ref().map(|after| &*after.key))
            .with("max", Some(&PAGE.to_string()))
            .with("values", Some("true"));
        let Page { entries, next } = client.get(&route).await?;
        for entry in entries {
            output::json_line(&serde_json::to_vec(&entry)?)?;
        }
        match next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

pub(super) async fn import(
    ImportArgs { store, file, asked: Asked { json, target } }: ImportArgs,
) -> anyhow::Result<()> {
    let route = Route::named(&["stores", &store, "import"])?;
    let mut lines: Box<dyn BufRead> = match &file {
        Some(file) => {
            let opened = File::open(file).with_context(|| format!("cannot read `{}`", file.display()))?;
            Box::new(BufReader::new(opened))
        }
        None => Box::new(io::stdin().lock()),
    };
    let mut client = Client::connect(&target).await?;
    let (mut imported, mut number) = (0_u64, 0_u64);
    loop {
        let (mut page, mut bytes) = (Vec::new(), 0_usize);
        while page.len() < PAGE && bytes < PAGE_BYTES {
            let mut line = Vec::new();
            let read = io::Read::take(&mut lines, MAX_LINE).read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            number += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            bytes = bytes.saturating_add(line.len());
            let entry: Line = serde_json::from_slice(&line).map_err(|error| {
                Usage(format!(
                    "line {number} is no entry of an export: {error}; {imported} entries were set before"
                ))
            })?;
            page.push(entry);
        }
        if page.is_empty() {
            break;
        }
        let body = serde_json::to_vec(&json!({ "entries": page }))?;
        let sent = client.ask(Method::POST, &route, body.into(), Patience::WhileMainAnswers).await;
        sent.with_context(|| format!("{} were set before this failed", counted_entries(imported)))?;
        imported += page.len() as u64;
    }
    if json {
        return output::json(&json!({ "imported": imported }));
    }
    output::line(&format!("imported {}", counted_entries(imported)))
}

fn counted_entries(number: u64) -> String {
    match number {
        1 => "1 entry".to_owned(),
        number => format!("{number} entries"),
    }
}
