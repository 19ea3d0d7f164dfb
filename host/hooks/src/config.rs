//! The configuration of directories of hooks.

mod section;

use std::{collections::BTreeMap, fmt, io, path::PathBuf, time::Duration};

use weir_config::{
    ConfigErrors, Grants, Limits, Shape, TIMEOUT,
    extend::{
        Table,
        kind::{class, limits_of_hooks, number, path, some_texts, table},
        quote,
    },
    keys,
};
use weir_names::HookDirName;

use crate::{
    ExitCodes,
    files::{self, MAX_HOOKS},
};

const HOST_DIR: &str = "the path of a directory";
const SUFFIX: &str = "the end of a file's name, as in `.wasm`";

/// The range of `output`: 1 KiB to 16 MiB.
const OUTPUT: Shape = Shape::Size(1 << 10..=16 << 20);

/// The directories of hooks of a [`Config`](weir_config::Config), by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HooksConfig(pub BTreeMap<HookDirName, HookDirConfig>);

/// A directory of hooks: WASI commands that run one after another, each to its end.
///
/// [`HookDirConfig::new`] grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookDirConfig {
    /// The directory. Symlinks below it are not followed.
    pub dir: PathBuf,
    /// Endings of hooks' file names. Hidden files are no hooks. Default: `.wasm` and `.cwasm`.
    pub suffixes: Vec<String>,
    /// The limits of each hook. Of the limits on messages, only [`Limits::fuel_to_start`] applies: it is the fuel of a
    /// whole run. [`Limits::cpu_share`] applies to all runs of the directory together, but not on threads of blocking
    /// callers.
    pub limits: Limits,
    /// The grants of each hook. All hooks of the directory see the variables in `env`.
    pub grants: Grants,
    /// Time limit of one hook after loading: 1 ms to 1 day. Default: 30 s.
    pub timeout: Duration,
    /// Time limit of all hooks together, including loading and waiting for a place: 1 ms to 1 day. Default: 5 min.
    pub total_timeout: Duration,
    /// Output of all hooks of a run, in bytes, for standard output and standard error each: 1 KiB to 16 MiB. Default:
    /// 64 KiB.
    pub output: u64,
    /// Concurrent runs of the directory; further runs wait: 1 to 64. Default: 4.
    pub at_once: u32,
    /// The meaning of exit codes.
    pub exit_codes: ExitCodes,
}

impl HookDirConfig {
    /// The hooks of this directory, with class `medium` and no grants.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            suffixes: [".wasm", ".cwasm"].map(ToOwned::to_owned).to_vec(),
            limits: Limits::default(),
            grants: Grants::default(),
            timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(5 * 60),
            output: 64 << 10,
            at_once: 4,
            exit_codes: ExitCodes::default(),
        }
    }

    /// The memory that its runs may take, in bytes: `memory`, `stack` and twice `output`, for each of `at_once`.
    #[must_use]
    pub fn memory_sum(&self) -> u64 {
        let run = self
            .limits
            .memory
            .saturating_add(self.limits.stack)
            .saturating_add(self.output.saturating_mul(2));
        run.saturating_mul(self.at_once.into())
    }

    /// Checks a directory outside a configuration.
    ///
    /// # Errors
    ///
    /// All values that are invalid, contradictory or repeated, and directories granted for writing that overlap with
    /// the hooks' directory.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        ConfigErrors::none_of(section::alone(self))
    }

    /// The files of its hooks now, in their order; of more than 1000, about the first 1000 that are found.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        let files = files::list(&self.dir, &self.suffixes, MAX_HOOKS)?;
        Ok(files.into_iter().map(|file| self.dir.join(file.name)).collect())
    }
}

impl Table for HookDirConfig {
    keys! {
        HookDirConfig;
        /// The directory. It cannot be in `main.cache-dir`.
        "dir" dir = path(HOST_DIR).not_empty(), required(HOST_DIR);
        /// The names of hooks end with one of these, and do not begin with a dot. At least one, each of 1 to 32
        /// printable ASCII characters without `/`.
        "suffixes" suffixes = some_texts(SUFFIX, suffix)
            .checked("a list that is not empty".to_owned(), |suffixes| !suffixes.is_empty());
        /// The limits of each hook: `min`, `medium`, `max` or a `[limits.NAME]`.
        "class" = class(|it: &HookDirConfig| &it.limits, |it| &mut it.limits);
        /// Limits that differ from the class: those in the table below.
        "limits" limits = limits_of_hooks();
        /// What each hook may reach: `dirs`, `env`, `net`, `http` and `stores`, as in the [grants of an
        /// extension](#grants). Everything else is absent.
        "grants" grants = table();
        /// How long one hook may run. Loading it counts in `total-timeout` alone. All hooks are loaded before the first
        /// one runs. So if that time ends while one is loaded, no hook runs, and the report has that one alone. Main
        /// loads the rest in the background, so that a later run finds it.
        "timeout" timeout = number(Shape::Time(TIMEOUT));
        /// How long all hooks of the directory may take together, with what comes before each: waiting for their turn,
        /// loading, and compiling changed files.
        "total-timeout" total_timeout = number(Shape::Time(TIMEOUT));
        /// What all hooks of one run together may write to standard output, and as much to standard error. A hook that
        /// writes more is ended.
        "output" output = number(OUTPUT);
        /// Runs of the directory that may be under way at once. More wait, for as long as their `total-timeout` lasts.
        "at-once" at_once = number(Shape::Count(1..=64));
        /// What exit codes mean: the three keys below, as in `{ ok = "0", error = "1-31", warning = "32-63" }`. No code
        /// can mean two things. A code that means nothing here is reserved, and an error.
        "exit-codes" exit_codes = table();
    }
}

impl FromIterator<(HookDirName, HookDirConfig)> for HooksConfig {
    fn from_iter<I: IntoIterator<Item = (HookDirName, HookDirConfig)>>(dirs: I) -> Self {
        Self(dirs.into_iter().collect())
    }
}

impl fmt::Debug for HooksConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Checks the end of a file's name.
fn suffix(text: &str) -> Result<String, String> {
    let is_printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if (1..=32).contains(&text.len()) && text.bytes().all(|byte| is_printable(byte) && byte != b'/') {
        Ok(text.to_owned())
    } else {
        let text = quote(text);
        Err(format!("{text} is not {SUFFIX}: 1 to 32 printable ASCII characters without `/`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_is_of_few_printable_characters() {
        for text in [".wasm", "-hook", " x", &"a".repeat(32)] {
            assert_eq!(suffix(text).as_deref(), Ok(text));
        }
        for text in ["", "/", "a/b", "\t", "\u{7f}", "ä", &"a".repeat(33)] {
            assert!(suffix(text).is_err(), "{text}");
        }
    }
}
