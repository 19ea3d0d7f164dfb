//! Arguments of `weir store`.

use clap::{Args as ClapArgs, Subcommand, ValueHint};

use super::{Asked, Target};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weir store ls
  weir store ls settings --owner uploader
  weir store get settings volume
  weir store export settings > settings.jsonl")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// List the stores, or the keys of one
    Ls(StoreLsArgs),
    /// Print a value as it is
    Get(StoreGetArgs),
    /// Set a value
    Put(StorePutArgs),
    /// Remove keys and their values
    Rm(StoreRmArgs),
    /// Print all entries, one JSON object a line
    Export(StoreExportArgs),
    /// Set the entries of an export; others stay
    Import(StoreImportArgs),
    /// Make a store's file as small as its entries
    Compact(StoreCompactArgs),
}

impl StoreCommand {
    pub(crate) fn target(&mut self) -> &mut Target {
        match self {
            Self::Ls(StoreLsArgs { asked, .. })
            | Self::Get(StoreGetArgs { asked, .. })
            | Self::Put(StorePutArgs { asked, .. })
            | Self::Import(StoreImportArgs { asked, .. })
            | Self::Compact(StoreCompactArgs { asked, .. }) => &mut asked.target,
            Self::Rm(StoreRmArgs { target, .. }) | Self::Export(StoreExportArgs { target, .. }) => target,
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
OWNER is the extension whose key it is, or `hooks/` and the name of a directory of hooks. Keys of a shared
store have none. A page ends after --max keys; the line that continues it goes to stderr.

Examples:
  weir store ls
  weir store ls settings
  weir store ls settings --owner uploader --prefix seen/ --json | jq -r '.entries[].key'")]
pub(crate) struct StoreLsArgs {
    /// The store; without it, all stores and what they hold
    #[arg(value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Only keys of this owner
    #[arg(long, value_name = "OWNER", requires = "store")]
    pub(crate) owner: Option<String>,
    /// Only keys that begin so
    #[arg(long, value_name = "TEXT", requires = "store", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Only keys after this one; needs --owner, unless the store is shared
    #[arg(long, value_name = "KEY", requires = "store")]
    pub(crate) after: Option<String>,
    /// Maximum number of keys
    #[arg(long, value_name = "N", requires = "store", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max: u32,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The bytes go to stdout as they are. With --json, a value that is no text is in Base64.

Examples:
  weir store get settings volume
  weir store get pictures last --owner camera > last.jpeg")]
pub(crate) struct StoreGetArgs {
    /// The store
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// Whose key it is; by default, that which all share
    #[arg(long, value_name = "OWNER", default_value = "", hide_default_value = true)]
    pub(crate) owner: String,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The store's quota holds here, too.

Examples:
  weir store put settings volume 11
  weir store put pictures first @first.jpeg --owner camera")]
pub(crate) struct StorePutArgs {
    /// The store
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The key
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// The value: text, `-` for all of stdin, or `@file`; empty by default
    #[arg(value_name = "VALUE|-|@FILE", allow_hyphen_values = true)]
    pub(crate) value: Option<String>,
    /// Whose key it is; by default, that which all share
    #[arg(long, value_name = "OWNER", default_value = "", hide_default_value = true)]
    pub(crate) owner: String,
    /// Also for an owner that no extension or peer has the name of
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weir store rm settings volume
  weir store rm cache a b c --owner uploader")]
pub(crate) struct StoreRmArgs {
    /// The store
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
    /// Whose keys they are; by default, those which all share
    #[arg(long, value_name = "OWNER", default_value = "", hide_default_value = true)]
    pub(crate) owner: String,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A line has `owner`, `key`, and `value`, or `base64` for a value that is no text. Pages of the store are read
one after another: an entry that changes meanwhile is there as it was, or as it is.

Examples:
  weir store export settings > settings.jsonl
  weir store export settings --owner uploader | jq -r .key")]
pub(crate) struct StoreExportArgs {
    /// The store
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// Only entries of this owner
    #[arg(long, value_name = "OWNER")]
    pub(crate) owner: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Entries are set in parts, each whole or not at all. If one fails, those before it stay.

Examples:
  weir store import settings settings.jsonl
  weir store export old | weir store import new")]
pub(crate) struct StoreImportArgs {
    /// The store
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The file of `weir store export`; stdin by default
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Calls of the store wait meanwhile.

Examples:
  weir store compact settings")]
pub(crate) struct StoreCompactArgs {
    /// The store
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    #[command(flatten)]
    pub(crate) asked: Asked,
}
