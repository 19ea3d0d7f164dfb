//! `weir schema`: the operator's file as a JSON Schema, for editors.

use crate::{configuration, output};

/// The one source of the descriptions.
const MANUAL: &str = include_str!("../../docs/configuration.md");

pub(crate) fn schema() -> anyhow::Result<()> {
    let schema = configuration::loader().json_schema(MANUAL);
    output::line(&serde_json::to_string_pretty(&schema)?)
}
