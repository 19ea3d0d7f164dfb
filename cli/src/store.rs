//! `weir store`: the key-value stores of a running Main.

pub(crate) mod model;

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    args::{
        Asked, StoreArgs, StoreCommand, StoreCompactArgs, StoreExportArgs, StoreGetArgs, StoreImportArgs,
        StoreLsArgs, StorePutArgs, StoreRmArgs,
    },
    client::{Client, Patience, Route},
    control::read,
    exit::Usage,
    output::{self, printable},
    payload::payload,
    tables,
};

/// Entries of one page of an export and of an import, at most.
const PAGE: usize = 1000;

/// Bytes of entries in one page of an import, or one entry more.
const PAGE_BYTES: usize = 4 << 20;

/// Bytes of a line of an import: the largest value, in Base64.
const MAX_LINE: u64 = 96 << 20;

pub(crate) async fn store(StoreArgs { command }: StoreArgs) -> anyhow::Result<()> {
    match command {
        StoreCommand::Ls(args) => match args.store.clone() {
            None => stores(args.asked).await,
            Some(store) => entries(&store, args).await,
        },
        StoreCommand::Get(args) => get(args).await,
        StoreCommand::Put(args) => put(args).await,
        StoreCommand::Rm(args) => remove(args).await,
        StoreCommand::Export(args) => export(args).await,
        StoreCommand::Import(args) => import(args).await,
        StoreCommand::Compact(args) => compact(args).await,
    }
}

async fn stores(Asked { json, target }: Asked) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let route = Route::new(&["stores"]);
    if json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    let model::Stores { stores } = client.get(&route).await?;
    output::write(tables::stores(&stores).as_bytes())
}

async fn entries(store: &str, args: StoreLsArgs) -> anyhow::Result<()> {
    let StoreLsArgs { store: _, owner, prefix, after, max, asked: Asked { json, target } } = args;
    let route = Route::named(&["stores", store, "entries"])?
        .with("owner", owner.as_deref())
        .with("prefix", Some(&*prefix).filter(|prefix| !prefix.is_empty()))
        .with("after-key", after.as_deref())
        .with("max", Some(&max.to_string()));
    let mut client = Client::connect(&target).await?;
    if json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    let model::Entries { entries, next } = client.get(&route).await?;
    output::write(tables::entries(store, &entries).as_bytes())?;
    if let Some(next) = next {
        let (owner, key) = (printable(&next.owner), printable(&next.key));
        output::complain(&format!("there are more: go on with `--owner '{owner}' --after '{key}'`"));
    }
    Ok(())
}

async fn get(
    StoreGetArgs { store, key, owner, asked: Asked { json, target } }: StoreGetArgs,
) -> anyhow::Result<()> {
    let route = value(&store, &owner, &key)?;
    let mut client = Client::connect(&target).await?;
    let value = client.ask(Method::GET, &route, Bytes::new(), Patience::WhileMainAnswers).await?;
    if json {
        return output::json(&match str::from_utf8(&value) {
            Ok(text) => json!({ "value": text }),
            Err(_) => json!({ "base64": BASE64_STANDARD.encode(&value) }),
        });
    }
    if output::is_terminal() {
        return output::line(&printable(&String::from_utf8_lossy(&value)));
    }
    output::write(&value)
}

async fn put(args: StorePutArgs) -> anyhow::Result<()> {
    let StorePutArgs { store, key, value: text, owner, force, asked: Asked { json, target } } = args;
    let route = value(&store, &owner, &key)?.with("force", force.then_some("true"));
    let payload = payload(text.as_deref())?;
    let mut client = Client::connect(&target).await?;
    let answer = client.ask(Method::PUT, &route, payload, Patience::WhileMainAnswers).await?;
    if json {
        return output::json(&serde_json::from_slice::<Value>(&answer)?);
    }
    let model::Existed { existed } = read(&answer)?;
    output::line(if existed { "replaced" } else { "set" })
}

async fn remove(StoreRmArgs { store, keys, owner, json, target }: StoreRmArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    for key in keys {
        let route = value(&store, &owner, &key)?;
        let answer = client.ask(Method::DELETE, &route, Bytes::new(), Patience::WhileMainAnswers).await?;
        let model::Existed { existed } = read(&answer)?;
        if json {
            output::json_line(json!({ "key": key, "existed": existed }).to_string().as_bytes())?;
        } else {
            let what = if existed { "removed" } else { "there was no" };
            output::line(&format!("{what} `{}`", printable(&key)))?;
        }
    }
    Ok(())
}

/// An entry as an export has it, without its size.
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
    next: Option<model::NextEntry>,
}

async fn export(StoreExportArgs { store, owner, target }: StoreExportArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let mut after = None::<model::NextEntry>;
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

async fn import(
    StoreImportArgs { store, file, asked: Asked { json, target } }: StoreImportArgs,
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

async fn compact(
    StoreCompactArgs { store, asked: Asked { json, target } }: StoreCompactArgs,
) -> anyhow::Result<()> {
    let route = Route::named(&["stores", &store, "compact"])?;
    let mut client = Client::connect(&target).await?;
    let answer = client.ask(Method::POST, &route, Bytes::new(), Patience::WhileMainAnswers).await?;
    if json {
        return output::json(&serde_json::from_slice::<Value>(&answer)?);
    }
    let model::Compacted { file_bytes_before, file_bytes } = read(&answer)?;
    let [before, after] = [file_bytes_before, file_bytes].map(tables::size);
    output::line(&format!("`{}` has {after} now; before, {before}", printable(&store)))
}

fn value(store: &str, owner: &str, key: &str) -> anyhow::Result<Route> {
    let owner = Some(owner).filter(|owner| !owner.is_empty());
    Ok(Route::named(&["stores", store, "value"])?.with("owner", owner).with("key", Some(key)))
}

fn counted_entries(number: u64) -> String {
    match number {
        1 => "1 entry".to_owned(),
        number => format!("{number} entries"),
    }
}
