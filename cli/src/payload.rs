//! Reads payloads to send, and shows received payloads to people.

use std::{fs::File, io::Read};

use anyhow::Context;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::output::printable;

/// The largest payload that Main accepts, in bytes.
const MAX_PAYLOAD: u64 = 64 * 1024 * 1024;

/// Whether the argument names a source instead of being the payload.
pub(crate) fn names_source(text: &str) -> bool {
    text == "-" || text.starts_with('@')
}

/// Returns the payload that an argument gives: its text, stdin for `-`, a file for `@file`. Empty without an argument.
pub(crate) fn payload(argument: Option<&str>) -> anyhow::Result<Bytes> {
    match argument {
        None => Ok(Bytes::new()),
        Some("-") => read(std::io::stdin().lock()).context("cannot read stdin"),
        Some(text) => match text.strip_prefix('@') {
            None => Ok(text.to_owned().into()),
            Some(path) => file(path),
        },
    }
}

pub(crate) fn file(path: &str) -> anyhow::Result<Bytes> {
    File::open(path).map_err(Into::into).and_then(read).with_context(|| format!("cannot read `{path}`"))
}

/// A payload on one line, in the form that Main sent: JSON, text or base64. `None` if it sent none.
pub(crate) fn shown(json: Option<&RawValue>, text: Option<&str>, base64: Option<&str>) -> Option<String> {
    let shown = match (json, text, base64) {
        (Some(json), ..) => json.get().to_owned(),
        (None, Some(text), _) => format!("{text:?}"),
        (None, None, Some(base64)) => format!("base64:{base64}"),
        (None, None, None) => return None,
    };
    Some(printable(&shown))
}

fn read(source: impl Read) -> anyhow::Result<Bytes> {
    let mut bytes = Vec::new();
    source.take(MAX_PAYLOAD + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_PAYLOAD,
        "it has over {MAX_PAYLOAD} bytes, the limit of a payload"
    );
    Ok(bytes.into())
}
