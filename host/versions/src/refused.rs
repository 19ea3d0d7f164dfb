//! What runs in place of versions that were refused.

#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use weir_config::{ArtifactHash, ExtensionConfig};
use weir_names::{ExtensionId, chain};
use weir_reports::{Standing, VersionStatus};

use crate::{
    Chosen, Found, Versions,
    choose::original,
    record::{Entry, Record},
    state_dir::{look_at_record, read_record},
};

/// Returns why Main would run another version than this component with this configuration, by the records in the state
/// directory `dir`. None if the version was not refused, if no other one could come back, or if this user's Main could
/// not use the records. Takes no lock and writes nothing, so a Main that runs goes on as before. Blocks on files.
#[must_use]
pub fn refused(dir: &Path, extension: &ExtensionConfig, hash: ArtifactHash) -> Option<String> {
    let (number, why) = instead_of(&look_at_record(dir, original(extension))?, extension, hash)?;
    Some(format!("version {number} would run in place of this one: {why}"))
}

/// Returns the components of the proven versions in the state directory `dir`, those that come back first at the front.
/// Takes no lock and writes nothing. Blocks on files.
///
/// # Errors
///
/// Fails if there is a record that this user's Main could not use.
pub fn proven(dir: &Path, id: &ExtensionId) -> Result<Vec<ArtifactHash>, String> {
    let record = read_record(dir, id).map_err(|error| chain(&error))?;
    let mut hashes = Vec::new();
    for hash in record.iter().flat_map(Record::comebacks).filter_map(Entry::hash) {
        if !hashes.contains(&hash) {
            hashes.push(hash);
        }
    }
    Ok(hashes)
}

impl Versions {
    /// Returns the version that runs in place of this component with this configuration, and why: that was refused.
    /// None if it was not, or if no other version can come back.
    #[must_use]
    pub fn instead_of(&self, extension: &ExtensionConfig, hash: ArtifactHash) -> Option<(u64, String)> {
        let records = self.records.lock();
        extension.update.as_ref()?;
        instead_of(records.get(original(extension))?, extension, hash)
    }

    /// Returns the version that runs in place of this component, and why: that is signed as an older version. None if it
    /// is not. Versions of which `is_revoked` holds, by their component and signature, forbid no older ones.
    #[must_use]
    pub fn newer_than(
        &self,
        extension: &ExtensionConfig,
        found: &Found,
        is_revoked: impl Fn(ArtifactHash, Option<&str>) -> bool,
    ) -> Option<(u64, String)> {
        let (records, id) = (self.records.lock(), original(extension));
        extension.update.as_ref()?;
        records.get(id)?.newer_than(id, found, is_revoked)
    }

    /// Chooses the proven version if this component with this configuration was refused. None if the configured version
    /// may run, or no other one can come back. Blocks on files.
    #[must_use]
    pub fn choose_instead(&self, extension: &Arc<ExtensionConfig>, hash: ArtifactHash) -> Option<Chosen> {
        let (_, why) = self.instead_of(extension, hash)?;
        self.instead(extension, Some(hash), &why, false)
    }
}

fn instead_of(record: &Record, extension: &ExtensionConfig, hash: ArtifactHash) -> Option<(u64, String)> {
    let status = &record.find(hash, extension)?.status;
    let fallback = record.fallback_of(status.number)?.status.number;
    (status.standing == Standing::Refused).then(|| (fallback, refusal(status)))
}

/// Says that this version was refused, and why.
pub(crate) fn refusal(status: &VersionStatus) -> String {
    let why = status.reason.as_deref().unwrap_or("an operator has rolled it back");
    format!("version {} was refused: {why}", status.number)
}
