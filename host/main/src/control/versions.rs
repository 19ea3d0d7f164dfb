//! Orders and reports about the versions of extensions.

use weir_reports::VersionsStatus;
use weir_supervisor::{Change, ControlError, RollBack};
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
    /// [`ControlError::Version`] if there is no such version, it is not proven, or it cannot read what is in the
    /// extension's stores; [`ControlError::NotReloaded`] if it
    /// does not come up; [`ControlError::Unknown`] and [`ControlError::ShuttingDown`].
    pub async fn roll_back(&self, id: &str, to: Option<u64>) -> Result<(), ControlError> {
        self.command(id, "rollback", Change::RollBack(RollBack { to, data_too: false })).await
    }

    /// Goes back as [`roll_back`](Self::roll_back) does, with the extension's data: if that version cannot read what is in
    /// the stores, what was there before is restored. What was written since is lost once the version is ready.
    ///
    /// # Errors
    ///
    /// Those of [`roll_back`](Self::roll_back). Also [`ControlError::Version`] if no data is kept that the version can
    /// read.
    pub async fn roll_back_with_data(&self, id: &str, to: Option<u64>) -> Result<(), ControlError> {
        self.command(id, "rollback", Change::RollBack(RollBack { to, data_too: true })).await
    }
}
