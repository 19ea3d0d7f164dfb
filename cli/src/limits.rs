//! `weir limits`.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use weir_host::{control::ControlError, limits::LimitsReport, names::ExtensionId};

use crate::{
    args::{LimitsArgs, Target},
    client::{Client, Route},
    configuration,
    exit::Usage,
    output, tables,
};

pub(crate) async fn limits(args: LimitsArgs) -> anyhow::Result<()> {
    let id = args.id.as_deref();
    if id == Some("") {
        return Err(Usage("a name cannot be empty".to_owned()).into());
    }
    let report = match &args.file {
        Some(file) => configured(file, id).await?,
        None => running(&args.asked.target, id).await?,
    };
    if args.asked.json {
        return output::json(&report);
    }
    let report = serde_json::from_value(report)
        .context("cannot read the answer of Main; is it of another version?")?;
    output::write(tables::limits(&report).as_bytes())
}

async fn running(target: &Target, id: Option<&str>) -> anyhow::Result<Value> {
    let route = match id {
        None => Route::new(&["limits"]),
        Some(id) => Route::new(&["limits", id]),
    };
    Client::connect(target).await?.get(&route).await
}

async fn configured(file: &Path, id: Option<&str>) -> anyhow::Result<Value> {
    let config = configuration::load(file)?;
    let is_asked_for = |other: &ExtensionId| id.is_none_or(|id| id == other.as_str());
    if let Some(id) = id
        && !config.extensions.iter().any(|extension| is_asked_for(&extension.id))
    {
        return Err(ControlError::Unknown(id.to_owned()).into());
    }
    let mut report = LimitsReport::configured(&config).await;
    report.extensions.retain(|extension| is_asked_for(&extension.id));
    Ok(serde_json::to_value(report)?)
}
