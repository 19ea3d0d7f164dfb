//! Reads configurations with other crates' sections.

use std::{fmt, marker::PhantomData, path::Path, sync::Arc};

use super::{
    Config, ConfigErrors,
    environment::Environment,
    file, json_schema,
    schema::{ConfigSection, Drafted, Of, Registered},
    section::KnownKey,
};

/// Reads configurations: this crate's tables, and registered sections.
#[derive(Clone, Default)]
pub struct Loader {
    sections: Vec<Arc<dyn Registered>>,
    pub(super) refused: Vec<(&'static str, &'static str)>,
}

impl Loader {
    /// Knows `include`, `main`, `limits`, `queue`, `topic`, `peer` and `extension`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a section. Replaces a section with the same table.
    #[must_use]
    pub fn section<S: ConfigSection>(mut self) -> Self {
        self.sections.retain(|known| known.table() != S::TABLE);
        self.sections.push(Arc::new(Of::<S>(PhantomData)));
        self
    }

    /// Refuses a table that this build cannot use. Without it the operator would take the table for a misspelt one.
    /// `why` completes a sentence that starts with the table.
    #[must_use]
    pub fn refuse(mut self, table: &'static str, why: &'static str) -> Self {
        self.refused.push((table, why));
        self
    }

    /// Reads a file and its included files.
    ///
    /// Environment variables that start with `WEIR_LIMITS_` override the classes of the files:
    /// `WEIR_LIMITS_MEDIUM_STACK="2 MiB"` means `stack = "2 MiB"` in the class `medium`, built in or not. Variables
    /// for the machine's caches set the default of [`MainConfig::cache_dir`](super::MainConfig::cache_dir).
    ///
    /// # Errors
    ///
    /// All faults in the files: syntax, keys, values, and those of [`Config::check`].
    pub fn load(&self, path: &Path) -> Result<Config, ConfigErrors> {
        file::load(path, self, &Environment::of_process())
    }

    /// Reads a text like [`load`](Self::load). Messages call it `name`; its paths are relative to `base_dir`. The same
    /// variables apply.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(&self, text: &str, name: &str, base_dir: &Path) -> Result<Config, ConfigErrors> {
        file::parse(text.to_owned(), name, base_dir, self, &Environment::of_process())
    }

    /// All keys of a file, with `NAME` for names that the operator chooses.
    #[must_use]
    pub fn keys(&self) -> Vec<KnownKey> {
        file::keys(self)
    }

    /// A JSON Schema of a file, with the main file's keys. Unknown keys do not fit.
    ///
    /// Descriptions say what a key means, what it must be, and its default.
    #[must_use]
    pub fn json_schema(&self) -> serde_json::Value {
        json_schema::json_schema(&self.keys())
    }

    pub(super) fn begin(&self) -> Vec<Box<dyn Drafted>> {
        self.sections.iter().map(|section| section.begin()).collect()
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.sections.iter().map(|section| section.table())).finish()
    }
}
