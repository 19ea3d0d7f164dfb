//! Versions that were refused, for a program that runs beside Main.

#[cfg(test)]
mod tests;

use std::path::Path;

use weir_config::{ArtifactHash, ExtensionConfig};
use weir_reports::{Standing, VersionStatus};

use crate::{choose::original, state_dir::look_at_record};

/// Returns why Main would run another version than this component with this configuration, by the records in the state
/// directory `dir`. None if the version was not refused, if no other one could come back, or if this user's Main could
/// not use the records. Takes no lock and writes nothing, so a Main that runs goes on as before. Blocks on files.
#[must_use]
pub fn refused(dir: &Path, extension: &ExtensionConfig, hash: ArtifactHash) -> Option<String> {
    let record = look_at_record(dir, original(extension))?;
    let status = &record.find(hash, extension)?.status;
    let fallback = record.fallback_of(status.number)?.status.number;
    let is_refused = status.standing == Standing::Refused;
    is_refused.then(|| format!("version {fallback} would run in place of this one: {}", refusal(status)))
}

/// Says that this version was refused, and why.
pub(crate) fn refusal(status: &VersionStatus) -> String {
    let why = status.reason.as_deref().unwrap_or("an operator has rolled it back");
    format!("version {} was refused: {why}", status.number)
}
