//! Where a configuration that is to be applied comes from.

use std::fmt;

use weir_config::{Config, ConfigErrors, ConfigFile};

use crate::roster::Roster;

/// Changes a configuration, or says why it cannot be changed so.
type ConfigChange = Box<dyn FnOnce(&mut Config) -> Result<(), String> + Send>;

/// A configuration that is to be applied.
pub enum WantedConfig {
    /// What the file of Main says now.
    File,
    /// This one.
    Given(Box<Config>),
    /// The one that Main keeps to, with this change. Fails with the reason if it cannot be changed so. Waits for another
    /// change that is under way, unless that is made in stages.
    Changed(ConfigChange),
}

impl fmt::Debug for WantedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("File"),
            Self::Given(config) => f.debug_tuple("Given").field(config).finish(),
            Self::Changed(_) => f.write_str("Changed"),
        }
    }
}

impl WantedConfig {
    /// Returns the checked configuration, or why there is none.
    pub(super) fn read(self, file: Option<ConfigFile>, roster: &Roster) -> Result<Config, String> {
        let said = |errors: ConfigErrors| errors.to_string();
        let mut config = match (self, file) {
            (Self::File, Some(file)) => return file.read().map_err(said),
            (Self::File, None) => Config::default(),
            (Self::Given(config), _) => *config,
            (Self::Changed(change), _) => {
                let mut config = roster.configuration();
                change(&mut config)?;
                config
            }
        };
        // The embedding program serves its contracts whatever the configuration says, as at the start.
        let serves = roster.main().serves.clone();
        config.main.serves.retain(|contract| !serves.contains(contract));
        config.main.serves.extend(serves);
        config.check().map_err(said)?;
        Ok(config)
    }
}
