//! Reloads of the configuration, and what one would do.

use weir_config::{Config, ExtensionConfig};
use weir_names::ExtensionId;
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

    /// The configuration that Main keeps to: that of the last reload, with the changes since. Of an extension that runs
    /// another version, it has the configured one.
    #[must_use]
    pub fn configuration(&self) -> Config {
        self.roster.configuration()
    }

    /// Adds an extension, with the checks of a reload of the configuration, and waits until it is ready or, without
    /// `autostart`, configured. The file of Main stays as it is: a [`reload`](Self::reload) removes the extension.
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
        let id = extension.id.clone();
        let report = self.alter(&id, "add", |config, place| match place {
            Some(_) => {
                Err(format!("`{}` is configured already: update it, or choose another id", extension.id))
            }
            None => {
                config.extensions.push(extension);
                Ok(())
            }
        });
        failed(report.await?, &id).map_or(Ok(()), |reason| Err(ControlError::NotStarted { id, reason }))
    }

    /// Replaces the configuration of an extension, as a reload of the configuration does: if the new version does not
    /// become ready, the one before serves on. Otherwise as [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id. [`ControlError::NotReloaded`] if the one before serves on.
    /// Otherwise the errors of [`add`](Self::add).
    pub async fn update(&self, extension: ExtensionConfig) -> Result<(), ControlError> {
        let id = extension.id.clone();
        self.unit(id.as_str())?;
        let report = self.alter(&id, "update", |config, place| {
            let known = place.and_then(|place| config.extensions.get_mut(place));
            *known.ok_or("it is configured no more")? = extension;
            Ok(())
        });
        failed(report.await?, &id).map_or(Ok(()), |reason| Err(ControlError::NotReloaded { id, reason }))
    }

    /// Adds an extension, or replaces the one of its id: [`add`](Self::add) or [`update`](Self::update). For texts in the
    /// form of the file: see [`Config::read_extension`].
    ///
    /// # Errors
    ///
    /// The errors of [`add`](Self::add) or [`update`](Self::update).
    pub async fn put(&self, extension: ExtensionConfig) -> Result<(), ControlError> {
        match self.unit(extension.id.as_str()) {
            Ok(_) => self.update(extension).await,
            Err(_) => self.add(extension).await,
        }
    }

    /// Removes an extension, and waits until it has ended. Otherwise as [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id. Otherwise the errors of [`add`](Self::add), as where another
    /// extension requires it.
    pub async fn remove(&self, id: &str) -> Result<(), ControlError> {
        let id = self.unit(id)?.id().clone();
        self.alter(&id, "remove", |config, place| {
            config.extensions.remove(place.ok_or("it is configured no more")?);
            Ok(())
        })
        .await
        .map(drop)
    }

    /// Changes the configuration that Main keeps to. `change` gets it with the place of the extension.
    async fn alter(
        &self,
        id: &ExtensionId,
        order: &'static str,
        change: impl FnOnce(&mut Config, Option<usize>) -> Result<(), String> + Send + 'static,
    ) -> Result<ReloadReport, ControlError> {
        let own = id.clone();
        let changed = WantedConfig::Changed(Box::new(move |config| {
            let place = config.extensions.iter().position(|extension| extension.id == own);
            change(config, place)
        }));
        let mut audit = Audit::of(&self.by, order, &self.logs, id);
        let by = self.by.clone();
        let report = self.ask(|reply| Order::Configure(changed, None, by, reply)).await.flatten();
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

/// Why the extension did not come up, if it did not.
fn failed(report: ReloadReport, id: &ExtensionId) -> Option<String> {
    report.failed.into_iter().find(|failed| failed.extension == *id).map(|failed| failed.reason)
}
