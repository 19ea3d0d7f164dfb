//! Orders and reports about the versions of extensions.

use weir_reports::VersionsStatus;
use weir_supervisor::{Change, ControlError};
use weir_versions::VersionError;

use super::Control;

impl Control {
    /// The versions of an extension with [`update`](crate::ExtensionConfig::update): which one runs, which one comes
    /// back, and what became of each.
    ///
    /// # Errors
    ///
    /// [`ControlError::Version`] if it has no `update` or has not run yet, and [`ControlError::Unknown`].
    pub fn versions(&self, id: &str) -> Result<VersionsStatus, ControlError> {
        let unit = self.unit(id)?;
        let config = unit.configured();
        // A copy runs what its original runs.
        let id = config.copy_of.as_ref().unwrap_or(unit.id());
        let status = config.update.as_ref().and_then(|update| self.versions.status(id, update));
        status.ok_or_else(|| VersionError::None(unit.id().clone()).into())
    }

    /// Takes the version on probation for proven. Waits until that is written down.
    ///
    /// # Errors
    ///
    /// [`ControlError::Version`] if there is none or it cannot be written down, [`ControlError::Unknown`] and
    /// [`ControlError::ShuttingDown`].
    pub async fn accept_version(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "accept", Change::Accept).await
    }

    /// Refuses the version that runs, and goes back to the proven version `to`, or else to the latest proven one before
    /// it. Waits until that one is ready.
    ///
    /// # Errors
    ///
    /// [`ControlError::Version`] if there is no such version, or it is not proven; [`ControlError::NotReloaded`] if it
    /// does not come up; [`ControlError::Unknown`] and [`ControlError::ShuttingDown`].
    pub async fn roll_back(&self, id: &str, to: Option<u64>) -> Result<(), ControlError> {
        self.command(id, "rollback", Change::RollBack(to)).await
    }
}
