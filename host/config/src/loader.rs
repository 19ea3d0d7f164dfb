//! Reads configurations, with the sections that other crates bring.

use std::{fmt, marker::PhantomData, path::Path, sync::Arc};

use super::{
    Config, ConfigErrors,
    environment::Environment,
    file,
    schema::{ConfigSection, Drafted, Of, Registered},
    section::KnownKey,
};

/// Reads configurations: with the tables of this crate, and those that are registered here.
#[derive(Clone, Default)]
pub struct Loader {
    sections: Vec<Arc<dyn Registered>>,
}

impl Loader {
    /// Knows `include`, `main`, `limits`, `queue`, `topic` and `extension`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows one more table. A table that it knows already is the new type's from now on.
    #[must_use]
    pub fn section<S: ConfigSection>(mut self) -> Self {
        self.sections.retain(|known| known.table() != S::TABLE);
        self.sections.push(Arc::new(Of::<S>(PhantomData)));
        self
    }

    /// Reads a file, and those that it includes.
    ///
    /// Variables of this process's environment that start with `WEIR_LIMITS_` go before what the files
    /// say of a class: `WEIR_LIMITS_MEDIUM_STACK="2 MiB"` stands for `stack = "2 MiB"` in the class
    /// `medium`, built in or not. Those that say where the machine has its caches are the default of
    /// [`MainConfig::cache_dir`](super::MainConfig::cache_dir).
    ///
    /// # Errors
    ///
    /// Fails with all that is wrong with them: syntax, keys, values, and what [`Config::check`] finds.
    pub fn load(&self, path: &Path) -> Result<Config, ConfigErrors> {
        file::load(path, self, &Environment::of_process())
    }

    /// Reads a text as [`load`](Self::load) reads a file. Messages call it `name`, and paths in it are
    /// relative to `base_dir`. It heeds the same variables.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(&self, text: &str, name: &str, base_dir: &Path) -> Result<Config, ConfigErrors> {
        file::parse(text.to_owned(), name, base_dir, self, &Environment::of_process())
    }

    /// Every key that a file may hold. A name that the operator chooses is `NAME` there.
    #[must_use]
    pub fn keys(&self) -> Vec<KnownKey> {
        file::keys(self)
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
