//! The table `[http]` of the operator's file.

use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf, time::Duration};

use weir_config::{
    ConfigError,
    extend::{ConfigSection, Facts, Located, Location, Section, Settling},
};

const CONNECTIONS: RangeInclusive<u32> = 1..=65_536;

/// 1 second to 1 day.
const IDLE_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);

const FILE: &str = "the path of a file in PEM";

/// How requests are sent, for all extensions and hooks. A change takes effect when Main is started anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpConfig {
    /// A file in PEM with the certificates that are trusted, and no others. `None`: those of the system.
    pub ca_file: Option<PathBuf>,
    /// Connections open at once: 1 to 65,536. Default: 256.
    pub connections: u32,
    /// How long a connection waits for another request: 1 second to 1 day. Default: 30 seconds.
    pub idle_timeout: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self { ca_file: None, connections: 256, idle_timeout: Duration::from_secs(30) }
    }
}

/// The table of one file.
#[derive(Debug)]
pub struct HttpDraft {
    config: HttpConfig,
    table: Location,
}

impl ConfigSection for HttpConfig {
    const TABLE: &'static str = "http";
    const NEEDS_RESTART: bool = true;
    type Draft = Vec<HttpDraft>;
    type Locations = ();

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        draft.extend(file.optional_table(Self::TABLE, |section| {
            let ca_file = section.path("ca-file", FILE);
            let connections = section.count("connections", CONNECTIONS);
            let idle_timeout = section.time("idle-timeout", IDLE_TIMEOUT);
            let new = Self::default();
            let config = Self {
                ca_file: ca_file.map(Located::into_value),
                connections: connections.map_or(new.connections, Located::into_value),
                idle_timeout: idle_timeout.map_or(new.idle_timeout, Located::into_value),
            };
            HttpDraft { config, table: section.location() }
        }));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, ()) {
        let mut tables = draft.into_iter();
        let Some(first) = tables.next() else { return Default::default() };
        for second in tables {
            let error = ConfigError::new(Self::TABLE, "`http` is defined in two files", Some(second.table));
            settling.error(error.note(Some(first.table.clone()), "first defined here"));
        }
        (first.config, ())
    }

    fn check_values(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut must_be = |key: &str, is_wrong: bool, what: &dyn std::fmt::Display| {
            if is_wrong {
                errors.push(ConfigError::new(key, format!("`{key}` must be {what}"), None));
            }
        };
        let connections = weir_config::Shape::counts(CONNECTIONS);
        must_be("http.connections", !CONNECTIONS.contains(&self.connections), &connections);
        let idle_timeout = weir_config::Shape::Time(IDLE_TIMEOUT);
        must_be("http.idle-timeout", !IDLE_TIMEOUT.contains(&self.idle_timeout), &idle_timeout);
        errors
    }
    fn facts(&self) -> BTreeMap<String, Facts> {
        if self.is_empty() {
            return BTreeMap::new();
        }
        let Self { ca_file, connections, idle_timeout } = self;
        let mut facts = Facts::default();
        facts.text("ca-file", ca_file.as_ref().map(|file| file.display()));
        facts.plain("connections", Some(connections));
        facts.time("idle-timeout", Some(*idle_timeout));
        BTreeMap::from([(Self::TABLE.to_owned(), facts)])
    }
}
