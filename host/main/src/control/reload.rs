//! Reloads of the configuration, and what one would do.

use weir_config::{Config, ConfigErrors, ExtensionConfig};
use weir_names::ExtensionId;
use weir_reports::ExtensionState;
use weir_supervisor::{ControlError, Holds, Order, ReloadReport, WantedConfig};

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
        self.configure(WantedConfig::File, None).await
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
        self.configure(WantedConfig::Given(Box::new(config)), None).await
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
        let wanted = config.map_or(WantedConfig::File, |mut config| {
            load::complete(&mut config);
            WantedConfig::Given(Box::new(config))
        });
        self.configure(wanted, Some(holds)).await
    }

    /// The configuration that Main keeps to: that of the last reload, with the changes since. Of an extension with `update`
    /// it has the configured version, whichever runs. Keys that take effect at a start of Main have the values of this one.
    #[must_use]
    pub fn configuration(&self) -> Config {
        self.roster.configuration()
    }

    /// Reads one table `[[extension]]` in the form of the file, with the classes of Main's files: see
    /// [`Config::read_extension`].
    ///
    /// # Errors
    ///
    /// All faults in the text.
    pub fn read_extension(&self, text: &str) -> Result<ExtensionConfig, ConfigErrors> {
        let main = (*self.roster.main()).clone();
        (*self.roster.rest()).clone().with_parts(main, []).read_extension(text)
    }

    /// Adds an extension, with the checks of a reload of the configuration, and waits until it is ready or, without
    /// `autostart`, configured. The others are left alone. The file of Main stays as it is: a [`reload`](Self::reload)
    /// removes the extension.
    ///
    /// Waits for another change of the configuration that is under way.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotConfigured`] if an extension has this id already, or the configuration with it has a mistake.
    /// [`ControlError::NotStarted`] if it did not come up: it is configured all the same.
    /// [`ControlError::Reloading`] if the change under way is made in stages, or 64 others wait.
    /// [`ControlError::ShuttingDown`] when Main ends.
    pub async fn add(&self, extension: ExtensionConfig) -> Result<(), ControlError> {
        self.set(extension, "add", |id, known| match known {
            None => Ok(()),
            Some(_) => Err(ControlError::NotConfigured(format!(
                "`{id}` is configured already: update it, or choose another id"
            ))),
        })
        .await
    }

    /// Replaces the configuration of an extension, as a reload of the configuration does: if the new version does not
    /// become ready, the one before serves on. One that has failed starts again. Otherwise as [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id. [`ControlError::NotReloaded`] if the one before serves on.
    /// Otherwise the errors of [`add`](Self::add).
    pub async fn update(&self, extension: ExtensionConfig) -> Result<(), ControlError> {
        let unknown = |id: &ExtensionId| ControlError::Unknown(id.to_string());
        self.set(extension, "update", move |id, known| known.map(drop).ok_or_else(|| unknown(id))).await
    }

    /// Adds an extension, or replaces the one of its id: [`add`](Self::add) or [`update`](Self::update). For texts in the
    /// form of the file: see [`read_extension`](Self::read_extension).
    ///
    /// # Errors
    ///
    /// The errors of [`add`](Self::add) and [`update`](Self::update).
    pub async fn put(&self, extension: ExtensionConfig) -> Result<(), ControlError> {
        self.set(extension, "put", |_, _| Ok(())).await
    }

    /// Removes an extension, and waits until it has ended. Otherwise as [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id. Otherwise the errors of [`add`](Self::add), as where another
    /// extension requires it.
    pub async fn remove(&self, id: &str) -> Result<(), ControlError> {
        let id: ExtensionId = id.parse().map_err(|_| ControlError::Unknown(id.to_owned()))?;
        self.alter(&id, "remove", |config, id| {
            let place = place(config, id).ok_or_else(|| ControlError::Unknown(id.to_string()))?;
            config.extensions.remove(place);
            Ok(())
        })
        .await
        .map(drop)
    }

    /// Puts an extension into the configuration, if `may` allows it for what is there.
    async fn set(
        &self,
        mut extension: ExtensionConfig,
        order: &'static str,
        may: impl FnOnce(&ExtensionId, Option<usize>) -> Result<(), ControlError> + Send + 'static,
    ) -> Result<(), ControlError> {
        let id = extension.id.clone();
        let report = self.alter(&id, order, move |config, id| {
            let known = place(config, id);
            may(id, known)?;
            extension.forget_other_stanza();
            match known.and_then(|place| config.extensions.get_mut(place)) {
                Some(known) => *known = extension,
                None => config.extensions.push(extension),
            }
            Ok(())
        });
        let report = report.await?;
        for unit in self.roster.instances(id.as_str()) {
            let (own, status) = (unit.id().clone(), unit.status());
            let failed = report.failed.iter().find(|failed| failed.extension == own);
            let reason = failed.map(|failed| failed.reason.clone());
            let has_failed = matches!(
                status.state,
                ExtensionState::Failed | ExtensionState::BackingOff | ExtensionState::Quarantined
            );
            match (reason, status.state) {
                (Some(reason), ExtensionState::Ready | ExtensionState::Interrupted) => {
                    return Err(ControlError::NotReloaded { id: own, reason });
                }
                (reason, state) if reason.is_some() || has_failed => {
                    let reason = reason.or(status.reason).unwrap_or_else(|| state.to_string());
                    return Err(ControlError::NotStarted { id: own, reason });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Changes the configuration that Main keeps to, for this extension.
    async fn alter(
        &self,
        id: &ExtensionId,
        order: &'static str,
        change: impl FnOnce(&mut Config, &ExtensionId) -> Result<(), ControlError> + Send + 'static,
    ) -> Result<ReloadReport, ControlError> {
        let own = id.clone();
        let change = Box::new(move |config: &mut Config| change(config, &own));
        let mut audit = Audit::of(&self.by, order, &self.logs, id);
        let by = self.by.clone();
        let wanted = WantedConfig::Changed(id.clone(), change);
        let report = self.ask(|reply| Order::Configure(wanted, None, by, reply)).await.flatten();
        audit.end(&report, ReloadReport::summary);
        report
    }

    async fn configure(
        &self,
        wanted: WantedConfig,
        holds: Option<Holds>,
    ) -> Result<ReloadReport, ControlError> {
        let order = if holds.is_some() { "reload in stages" } else { "reload of the configuration" };
        let mut audit = Audit::new(&self.by, order);
        let by = self.by.clone();
        let report = self.ask(|reply| Order::Configure(wanted, holds, by, reply)).await.flatten();
        audit.end(&report, ReloadReport::summary);
        report
    }
}

/// The place of an extension in the configuration.
fn place(config: &Config, id: &ExtensionId) -> Option<usize> {
    config.extensions.iter().position(|extension| extension.id == *id)
}
