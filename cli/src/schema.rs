//! `weir schema`: the operator's file as a JSON Schema, for editors.

use crate::{configuration, output};

pub(crate) fn schema() -> anyhow::Result<()> {
    let schema = configuration::loader().json_schema();
    output::line(&serde_json::to_string_pretty(&schema)?)
}
