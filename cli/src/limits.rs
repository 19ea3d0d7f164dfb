//! `weir limits`.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use weir_host::{Config, ControlError, LimitsReport};

use crate::{
    args::{LimitsArgs, Target},
    client::{Client, Route},
    output, tables,
};

pub(crate) async fn limits(args: LimitsArgs) -> anyhow::Result<()> {
    let id = args.id.as_deref();
    let report = match &args.file {
        Some(file) => configured(file, id).await?,
        None => running(&args.target, id).await?,
    };
    if args.json {
        return output::json(&report);
    }
    let report = serde_json::from_value(report)
        .context("cannot read the answer of Main; is it of another version?")?;
    output::write(tables::limits(&report).as_bytes())
}

async fn running(target: &Target, id: Option<&str>) -> anyhow::Result<Value> {
    let route = match id {
        None => Route::new(&["limits"]),
        Some(id) => Route::named(&["limits", id])?,
    };
    Client::connect(target).await?.get(&route).await
}

async fn configured(file: &Path, id: Option<&str>) -> anyhow::Result<Value> {
    let mut report = LimitsReport::configured(&Config::load(file)?).await;
    if let Some(id) = id {
        report.extensions.retain(|extension| extension.id.as_str() == id);
        if report.extensions.is_empty() {
            return Err(ControlError::Unknown(id.to_owned()).into());
        }
    }
    Ok(serde_json::to_value(report)?)
}
