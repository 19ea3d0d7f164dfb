//! Reloads of the configuration, and what one would do.

use weir_config::Config;
use weir_supervisor::{ControlError, Holds, Order, ReloadReport};

use super::{Audit, Control, ReloadPlan};
use crate::{load, plan};

impl Control {
    /// Reads the configuration file of Main again, and applies only what changed in it or in the components it names.
    /// First stops removed extensions, then starts new ones, then replaces changed ones as
    /// [`reload_extension`](Self::reload_extension) does; waits until all is done.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotConfigured`] if the file has a mistake or this Main cannot take it; nothing is applied then.
    /// [`ControlError::NoFile`] if the configuration was made in Rust: see [`reload_with`](Self::reload_with).
    /// [`ControlError::Reloading`] while another reload of the configuration is under way, and
    /// [`ControlError::ShuttingDown`] when Main ends. An extension that does not come up is no error: the report names
    /// it.
    pub async fn reload(&self) -> Result<ReloadReport, ControlError> {
        self.configure(None, None).await
    }

    /// What [`reload`](Self::reload) would do now, for all extensions or one. Changes nothing, and does not try to
    /// compile. Reads files: call it off the worker thread.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoFile`] if the configuration was made in Rust, and [`ControlError::Unknown`] if neither Main
    /// nor the file has an extension with this id. A mistake in the file is no error: the plan says it.
    pub fn plan(&self, id: Option<&str>) -> Result<ReloadPlan, ControlError> {
        plan::plan(&self.roster, &self.versions, &self.admission, id)
    }

    /// Applies this configuration as [`reload`](Self::reload) applies the one of the file.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotConfigured`], [`ControlError::Reloading`] or [`ControlError::ShuttingDown`], as for
    /// [`reload`](Self::reload).
    pub async fn reload_with(&self, mut config: Config) -> Result<ReloadReport, ControlError> {
        load::complete(&mut config);
        self.configure(Some(Box::new(config)), None).await
    }

    /// Reads the configuration file of Main again as [`reload`](Self::reload) does, or takes this configuration. Applies it
    /// in stages: an extension changes in a later stage than those that it requires or wants. The next stage begins once
    /// this one [`Holds`]. At the first stage that does not, the extensions of later stages stay as they are; the report
    /// names them, and another such reload goes on there.
    ///
    /// Extensions that have failed or back off start again, and count as changed. If the future is dropped, the stage
    /// under way is the last one. [`Holds::Proven`] waits at most twice the longest
    /// [`prove_for`](crate::config::UpdateConfig::prove_for) for each stage.
    ///
    /// # Errors
    ///
    /// The errors of [`reload`](Self::reload).
    pub async fn reload_in_stages(
        &self,
        config: Option<Config>,
        holds: Holds,
    ) -> Result<ReloadReport, ControlError> {
        let config = config.map(|mut config| {
            load::complete(&mut config);
            Box::new(config)
        });
        self.configure(config, Some(holds)).await
    }

    async fn configure(
        &self,
        config: Option<Box<Config>>,
        holds: Option<Holds>,
    ) -> Result<ReloadReport, ControlError> {
        let order = if holds.is_some() { "reload in stages" } else { "reload of the configuration" };
        let mut audit = Audit::new(&self.by, order);
        let by = self.by.clone();
        let report = self.ask(|reply| Order::Configure(config, holds, by, reply)).await.flatten();
        audit.end(&report, ReloadReport::summary);
        report
    }
}
