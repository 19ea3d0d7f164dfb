//! `weir schema`: the operator's file as a JSON Schema, for editors.

use crate::{features, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
It has every key with its type, range and meaning. docs/editors.md says how editors use it.

Examples:
  weir schema > weir.schema.json")]
pub(crate) struct Args;

pub(super) fn run(Args: Args) -> anyhow::Result<()> {
    let schema = features::loader().json_schema();
    output::line(&serde_json::to_string_pretty(&schema)?)
}
