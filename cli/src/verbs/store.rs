//! `weir store`: the key-value stores of a running Main.

mod transfer;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use clap::Subcommand;
use comfy_table::{Cell, Color};
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use self::transfer::{ExportArgs, ImportArgs, export, import};
use crate::{
    args::{Asked, Target},
    client::{Client, Patience, Route, read},
    output::{self, printable},
    payload::payload,
    tables::{NOTHING, finish, size, table},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir store ls
  weir store ls settings --owner uploader
  weir store get settings volume
  weir store export settings > settings.jsonl")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the stores, or the keys of one
    Ls(LsArgs),
    /// Print a value as it is
    Get(GetArgs),
    /// Set a value
    Put(PutArgs),
    /// Remove keys and their values
    Rm(RmArgs),
    /// Print all entries, one JSON object a line
    Export(ExportArgs),
    /// Set the entries of an export; others stay
    Import(ImportArgs),
    /// Make a store's file as small as its entries
    Compact(CompactArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
OWNER is the extension whose key it is, or `hooks/` and the name of a directory of hooks. Keys of a shared
store have none. A page ends after --max keys; the line that continues it goes to stderr.

Examples:
  weir store ls
  weir store ls settings
  weir store ls settings --owner uploader --prefix seen/ --json | jq -r '.entries[].key'")]
pub(crate) struct LsArgs {
    /// The store; without it, all stores and what they hold
    #[arg(value_name = "STORE")]
    store: Option<String>,
    /// Only keys of this owner
    #[arg(long, value_name = "OWNER", requires = "store")]
    owner: Option<String>,
    /// Only keys that begin so
    #[arg(long, value_name = "TEXT", requires = "store", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Only keys after this one; needs --owner, unless the store is shared
    #[arg(long, value_name = "KEY", requires = "store")]
    after: Option<String>,
    /// Maximum number of keys
    #[arg(long, value_name = "N", requires = "store", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    max: u32,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The bytes go to stdout as they are. With --json, a value that is no text is in Base64.

Examples:
  weir store get settings volume
  weir store get pictures last --owner camera > last.jpeg")]
pub(crate) struct GetArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: String,
    /// The key
    #[arg(value_name = "KEY")]
    key: String,
    /// Whose key it is; by default, that which all share
    #[arg(long, value_name = "OWNER", default_value = "", hide_default_value = true)]
    owner: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The store's quota holds here, too.

Examples:
  weir store put settings volume 11
  weir store put pictures first @first.jpeg --owner camera")]
pub(crate) struct PutArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: String,
    /// The key
    #[arg(value_name = "KEY")]
    key: String,
    /// The value: text, `-` for all of stdin, or `@file`; empty by default
    #[arg(value_name = "VALUE|-|@FILE", allow_hyphen_values = true)]
    value: Option<String>,
    /// Whose key it is; by default, that which all share
    #[arg(long, value_name = "OWNER", default_value = "", hide_default_value = true)]
    owner: String,
    /// Also for an owner that no extension or peer has the name of
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir store rm settings volume
  weir store rm cache a b c --owner uploader")]
pub(crate) struct RmArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: String,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    /// Whose keys they are; by default, those which all share
    #[arg(long, value_name = "OWNER", default_value = "", hide_default_value = true)]
    owner: String,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Calls of the store wait meanwhile.

Examples:
  weir store compact settings")]
pub(crate) struct CompactArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Deserialize)]
struct Stores {
    stores: Vec<StoreStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StoreStatus {
    name: String,
    shared: bool,
    durable_within: Option<String>,
    keys: u64,
    max_keys: u64,
    bytes: u64,
    max_bytes: u64,
    file_bytes: u64,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Entries {
    entries: Vec<Entry>,
    next: Option<NextEntry>,
}

#[derive(Deserialize)]
struct Entry {
    owner: String,
    key: String,
    bytes: u64,
}

/// The place at which a page ends. The next page begins after it.
#[derive(Deserialize)]
struct NextEntry {
    owner: String,
    key: String,
}

#[derive(Deserialize)]
struct Existed {
    existed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Compacted {
    file_bytes_before: u64,
    file_bytes: u64,
}

pub(super) async fn run(Args { command }: Args) -> anyhow::Result<()> {
    match command {
        Command::Ls(args) => match args.store.clone() {
            None => args.asked.get(&Route::new(&["stores"]), |Stores { stores: all }| stores(&all)).await,
            Some(store) => list(&store, args).await,
        },
        Command::Get(args) => get(args).await,
        Command::Put(args) => put(args).await,
        Command::Rm(args) => remove(args).await,
        Command::Export(args) => export(args).await,
        Command::Import(args) => import(args).await,
        Command::Compact(args) => compact(args).await,
    }
}

async fn list(store: &str, args: LsArgs) -> anyhow::Result<()> {
    let LsArgs { store: _, owner, prefix, after, max, asked: Asked { json, target } } = args;
    let route = Route::named(&["stores", store, "entries"])?
        .with("owner", owner.as_deref())
        .with("prefix", Some(&*prefix).filter(|prefix| !prefix.is_empty()))
        .with("after-key", after.as_deref())
        .with("max", Some(&max.to_string()));
    let mut client = Client::connect(&target).await?;
    if json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    let Entries { entries: page, next } = client.get(&route).await?;
    output::write(entries(store, &page).as_bytes())?;
    if let Some(next) = next {
        let (owner, key) = (printable(&next.owner), printable(&next.key));
        output::complain(&format!("there are more: go on with `--owner '{owner}' --after '{key}'`"));
    }
    Ok(())
}

async fn get(GetArgs { store, key, owner, asked: Asked { json, target } }: GetArgs) -> anyhow::Result<()> {
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

async fn put(PutArgs { store, key, value: text, owner, force, asked }: PutArgs) -> anyhow::Result<()> {
    let route = value(&store, &owner, &key)?.with("force", force.then_some("true"));
    let (payload, patience) = (payload(text.as_deref())?, Patience::WhileMainAnswers);
    let text = |Existed { existed }| if existed { "replaced\n" } else { "set\n" }.to_owned();
    asked.send(Method::PUT, &route, payload, patience, text).await
}

async fn remove(RmArgs { store, keys, owner, json, target }: RmArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    for key in keys {
        let route = value(&store, &owner, &key)?;
        let answer = client.ask(Method::DELETE, &route, Bytes::new(), Patience::WhileMainAnswers).await?;
        let Existed { existed } = read(&answer)?;
        if json {
            output::json_line(json!({ "key": key, "existed": existed }).to_string().as_bytes())?;
        } else {
            let what = if existed { "removed" } else { "there was no" };
            output::line(&format!("{what} `{}`", printable(&key)))?;
        }
    }
    Ok(())
}

async fn compact(CompactArgs { store, asked }: CompactArgs) -> anyhow::Result<()> {
    let route = Route::named(&["stores", &store, "compact"])?;
    let text = |Compacted { file_bytes_before, file_bytes }| {
        let [before, after] = [file_bytes_before, file_bytes].map(size);
        format!("`{}` has {after} now; before, {before}\n", printable(&store))
    };
    asked.send(Method::POST, &route, Bytes::new(), Patience::WhileMainAnswers, text).await
}

/// Makes the route to the value of a key.
fn value(store: &str, owner: &str, key: &str) -> anyhow::Result<Route> {
    let owner = Some(owner).filter(|owner| !owner.is_empty());
    Ok(Route::named(&["stores", store, "value"])?.with("owner", owner).with("key", Some(key)))
}

/// Makes the table of `weir store ls`, and below it says why stores cannot be used.
fn stores(stores: &[StoreStatus]) -> String {
    if stores.is_empty() {
        return "no stores are configured\n".to_owned();
    }
    let mut table = table(["STORE", "KEYS", "BYTES", "FILE", "DURABLE", "SHARED"]);
    table.add_rows(stores.iter().map(|store| {
        let durable =
            store.durable_within.as_deref().map_or("each".to_owned(), |time| format!("within {time}"));
        let name = Cell::new(printable(&store.name));
        vec![
            if store.error.is_some() { name.fg(Color::Red) } else { name },
            Cell::new(format!("{} / {}", store.keys, store.max_keys)),
            Cell::new(format!("{} / {}", size(store.bytes), size(store.max_bytes))),
            Cell::new(size(store.file_bytes)),
            Cell::new(printable(&durable)),
            Cell::new(if store.shared { "yes" } else { "no" }),
        ]
    }));
    let failed: String = stores
        .iter()
        .filter_map(|store| Some((&store.name, store.error.as_ref()?)))
        .map(|(name, error)| format!("`{}`: {}\n", printable(name), printable(error)))
        .collect();
    let gap = if failed.is_empty() { "" } else { "\n" };
    format!("{}{gap}{failed}", finish(&table))
}

/// Makes the table of a page of keys.
fn entries(store: &str, entries: &[Entry]) -> String {
    if entries.is_empty() {
        return format!("`{}` has no such keys\n", printable(store));
    }
    let mut table = table(["OWNER", "KEY", "BYTES"]);
    table.add_rows(entries.iter().map(|entry| {
        let owner = Some(&*entry.owner).filter(|owner| !owner.is_empty()).unwrap_or(NOTHING);
        vec![Cell::new(printable(owner)), Cell::new(printable(&entry.key)), Cell::new(entry.bytes)]
    }));
    finish(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::assert_golden;

    fn fixture() -> Vec<StoreStatus> {
        let text = r#"[
            {"name": "settings", "shared": true, "keys": 12, "max-keys": 100000, "bytes": 3456,
             "max-bytes": 16777216, "file-bytes": 73728},
            {"name": "cache", "shared": false, "durable-within": "1s", "keys": 0, "max-keys": 10, "bytes": 0,
             "max-bytes": 65536, "file-bytes": 0, "error": "\u001b[2Jdamaged"}
        ]"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn stores_line_up_and_failures_are_told_below() {
        assert_golden("stores", &stores(&fixture()));
        assert_eq!(stores(&[]), "no stores are configured\n");
    }

    #[test]
    fn keys_cannot_play_with_the_terminal() {
        let entry = |owner: &str, key: &str| Entry { owner: owner.into(), key: key.into(), bytes: 7 };
        let text = entries("s", &[entry("", "a\u{1b}[2J\nb"), entry("uploader", "\u{202e}")]);
        assert_golden("store-entries", &text);
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
        assert_eq!(entries("s", &[]), "`s` has no such keys\n");
    }
}
