//! Where a configuration that is to be applied comes from.

use std::fmt;

use weir_config::{Config, ConfigErrors, ConfigFile, ExtensionConfig};
use weir_names::ExtensionId;

use super::super::ControlError;
use crate::roster::Roster;

/// Changes a configuration, or says why it cannot be changed so.
type ConfigChange = Box<dyn FnOnce(&mut Config) -> Result<(), ControlError> + Send>;

/// A configuration that is to be applied.
pub enum WantedConfig {
    /// What the file of Main says now.
    File,
    /// This one.
    Given(Box<Config>),
    /// The one that Main keeps to, with this change of one extension. The others are left alone, whatever their files are
    /// now. Waits for another change that is under way, unless that is made in stages.
    Changed(ExtensionId, ConfigChange),
}

impl fmt::Debug for WantedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("File"),
            Self::Given(config) => f.debug_tuple("Given").field(config).finish(),
            Self::Changed(id, _) => f.debug_tuple("Changed").field(id).finish(),
        }
    }
}

impl WantedConfig {
    /// The extension that is changed alone.
    pub(super) fn only(&self) -> Option<ExtensionId> {
        if let Self::Changed(id, _) = self { Some(id.clone()) } else { None }
    }

    /// Returns the configuration, checked by itself and beside what is running, or why there is none.
    pub(super) fn read(self, file: Option<ConfigFile>, roster: &Roster) -> Result<Config, ControlError> {
        let refused = |errors: ConfigErrors| ControlError::NotConfigured(errors.to_string());
        let config = self.checked(file, roster)?;
        config.check_beside(&roster.main()).map_err(refused)?;
        Ok(config)
    }

    fn checked(self, file: Option<ConfigFile>, roster: &Roster) -> Result<Config, ControlError> {
        let refused = |errors: ConfigErrors| ControlError::NotConfigured(errors.to_string());
        let mut config = match self {
            Self::File => return file.ok_or(ControlError::NoFile)?.read().map_err(refused),
            Self::Given(mut config) => {
                config.extensions.iter_mut().for_each(ExtensionConfig::forget_other_stanza);
                *config
            }
            Self::Changed(_, change) => {
                let mut config = roster.configuration();
                change(&mut config)?;
                config
            }
        };
        // The embedding program serves its contracts whatever the configuration says, as at the start.
        let serves = roster.main().serves.clone();
        config.main.serves.retain(|contract| !serves.contains(contract));
        config.main.serves.extend(serves);
        config.check().map_err(refused)?;
        Ok(config)
    }
}
