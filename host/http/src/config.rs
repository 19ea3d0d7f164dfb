//! The table `[http]` of the operator's file.

use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf, time::Duration};

use weir_config::{
    ConfigError, Shape,
    extend::{
        ConfigSection, Facts, Places, Section, Settling, Table, facts, faults,
        kind::{number, path},
    },
    keys,
};

use crate::{NotStarted, connect::Tls};

/// 1 second to 1 day.
const IDLE_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60);

const FILE: &str = "the path of a file in PEM";

/// How requests are sent, for all extensions and hooks. A change takes effect when Main is started anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpConfig {
    /// A file in PEM with the only certificates that are trusted. With `None`, those of the system are trusted.
    pub ca_file: Option<PathBuf>,
    /// The most connections open at once: 1 to 65,536. Default: 256.
    pub connections: u32,
    /// How long a connection waits for another request: 1 second to 1 day. Default: 30 seconds.
    pub idle_timeout: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self { ca_file: None, connections: 256, idle_timeout: Duration::from_secs(30) }
    }
}

impl HttpConfig {
    /// Reads the certificates of [`ca_file`](Self::ca_file), as a Main does when it starts.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no valid certificates.
    pub fn check_certificates(&self) -> Result<(), NotStarted> {
        Tls::of(self).map(drop)
    }
}

impl Table for HttpConfig {
    keys! {
        HttpConfig;
        /// The certificates that are trusted, and no others. Main does not start if the file cannot be read or has
        /// none.
        "ca-file" ca_file = path(FILE).optional(), default("the system's certificates");
        /// Connections open at once, of all extensions and hooks together. For a further one, the longest idle is
        /// closed; if none is idle, the request fails with `connection-limit-reached`.
        "connections" connections = number(Shape::Count(1..=65_536));
        /// How long a connection waits for another request.
        "idle-timeout" idle_timeout = number(Shape::Time(IDLE_TIMEOUT));
    }
}

impl ConfigSection for HttpConfig {
    const TABLE: &'static str = "http";
    const ABOUT: (&'static str, &'static str) =
        ("Requests that extensions and hooks send by HTTP: [below](#http).", "as below");
    const NEEDS_RESTART: bool = true;
    type Draft = Vec<(Self, Places)>;
    type Locations = ();

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        draft.extend(file.one_table(Self::TABLE));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, ()) {
        settling.only_one(Self::TABLE, draft).map(|(config, _)| (config, ())).unwrap_or_default()
    }

    fn check_values(&self) -> Vec<ConfigError> {
        faults(self, Self::TABLE)
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        if self.is_empty() {
            BTreeMap::new()
        } else {
            BTreeMap::from([(Self::TABLE.to_owned(), facts(self))])
        }
    }
}
