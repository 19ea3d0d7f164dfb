//! What runs in place of versions that were refused.

#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use weir_config::{ArtifactHash, ExtensionConfig};
use weir_reports::{Standing, VersionStatus};

use crate::{Chosen, Versions, choose::original, record::Record, state_dir::look_at_record};

/// Returns why Main would run another version than this component with this configuration, by the records in the state
/// directory `dir`. None if the version was not refused, if no other one could come back, or if this user's Main could
/// not use the records. Takes no lock and writes nothing, so a Main that runs goes on as before. Blocks on files.
#[must_use]
pub fn refused(dir: &Path, extension: &ExtensionConfig, hash: ArtifactHash) -> Option<String> {
    let (number, why) = instead_of(&look_at_record(dir, original(extension))?, extension, hash)?;
    Some(format!("version {number} would run in place of this one: {why}"))
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

    /// Chooses the proven version if this component with this configuration was refused. None if the configured version
    /// may run, or no other one can come back. Blocks on files.
    #[must_use]
    pub fn choose_instead(&self, extension: &Arc<ExtensionConfig>, hash: ArtifactHash) -> Option<Chosen> {
        let (_, why) = self.instead_of(extension, hash)?;
        self.instead(extension, Some(hash), &why)
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
