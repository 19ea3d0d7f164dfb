//! A directory of hooks: as configured.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use super::{ConfigErrors, Grants, Limits, check, error::quote, limits::TIMEOUT, shape::Shape};

/// The contract through which extensions run hooks. Main serves it, unless somebody else is configured to.
pub const HOOKS_CONTRACT: &str = "hooks@1";

pub(super) const SUFFIX: &str = "the end of a file's name, as in `.wasm`";
pub(super) const EXIT_CODES: &str = "an exit code from 0 to 255 or a range of them, as in `1-31`";

/// 1 KiB to 16 MiB.
pub(super) const OUTPUT: Shape = Shape::Size(1 << 10..=16 << 20);

pub(super) const AT_ONCE: RangeInclusive<u32> = 1..=64;

/// A directory of hooks: WASI commands that are run to completion, one after the other.
///
/// [`HookDirConfig::new`] grants nothing; fill in what is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookDirConfig {
    /// The directory. Below it no symlink is followed.
    pub dir: PathBuf,
    /// Which of its files are hooks: those whose names end with one of these and do not begin with a dot.
    /// At first `.wasm` and `.cwasm`.
    pub suffixes: Vec<String>,
    /// What each hook may use, from its start to its end. Of the limits that count messages only
    /// [`Limits::fuel_to_start`] has a meaning here: it is the fuel of a whole run. [`Limits::cpu_share`] holds
    /// for all runs of the directory together, and not on the threads of blocking callers.
    pub limits: Limits,
    /// What each hook may reach. Its variables are the surroundings that all hooks of the directory see.
    pub grants: Grants,
    /// Time that one hook may take once it is loaded: 1 ms to 1 day, at first 30 s.
    pub timeout: Duration,
    /// Time that all hooks of the directory may take together, waiting for their turn and loading included: 1 ms to
    /// 1 day, at first 5 min.
    pub total_timeout: Duration,
    /// Bytes that all hooks of one run together may write to their standard output, and as many to their standard
    /// error: 1 KiB to 16 MiB, at first 64 KiB.
    pub output: u64,
    /// Runs of the directory that may be under way at once; more wait: 1 to 64, at first 4.
    pub at_once: u32,
    /// What the exit codes of its hooks mean.
    pub exit_codes: ExitCodes,
}

/// What the exit codes of hooks mean. The ranges do not overlap; a code in none of them is reserved, and an
/// error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitCodes {
    /// All is well: at first 0.
    pub ok: RangeInclusive<u8>,
    /// The hook has failed: at first 1 to 31.
    pub error: RangeInclusive<u8>,
    /// Something is off, and the next hook runs: at first 32 to 63.
    pub warning: RangeInclusive<u8>,
}

impl HookDirConfig {
    /// The hooks of this directory, in the class `medium`, that may reach nothing.
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

    /// Bytes of this machine's memory that its runs may take by what operators set: `memory`, `stack` and
    /// what is written, for each of those `at_once`.
    #[must_use]
    pub fn memory_sum(&self) -> u64 {
        let run = self
            .limits
            .memory
            .saturating_add(self.limits.stack)
            .saturating_add(self.output.saturating_mul(2));
        run.saturating_mul(self.at_once.into())
    }

    /// Checks what can be judged of a directory that is in no configuration.
    ///
    /// # Errors
    ///
    /// Fails with every value that cannot be, those that contradict or double each other, and directories granted
    /// for writing that overlap with that of the hooks.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        let errors = check::hook_dir(self);
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors::new(errors, 0)) }
    }

    /// Those of its own values that cannot be: the key and what it must be.
    pub(super) fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let is_path =
            !self.dir.as_os_str().is_empty() && !self.dir.as_os_str().as_encoded_bytes().contains(&0);
        let (time, at_once) = (Shape::Time(TIMEOUT), Shape::counts(AT_ONCE));
        let ExitCodes { ok, error, warning } = &self.exit_codes;
        [
            ("dir", is_path, "a path, not empty and without NUL".to_owned()),
            ("suffixes", !self.suffixes.is_empty(), "a list that is not empty".to_owned()),
            ("timeout", TIMEOUT.contains(&self.timeout), time.to_string()),
            ("total-timeout", TIMEOUT.contains(&self.total_timeout), time.to_string()),
            ("output", OUTPUT.has(self.output), OUTPUT.to_string()),
            ("at-once", at_once.has(self.at_once.into()), at_once.to_string()),
            ("exit-codes.ok", !ok.is_empty(), EXIT_CODES.to_owned()),
            ("exit-codes.error", !error.is_empty(), EXIT_CODES.to_owned()),
            ("exit-codes.warning", !warning.is_empty(), EXIT_CODES.to_owned()),
        ]
        .into_iter()
        .filter_map(|(key, within, must_be)| (!within).then_some((key, must_be)))
        .collect()
    }
}

impl ExitCodes {
    /// Every two that have a code in common: both keys and what is wrong.
    pub(super) fn overlaps(&self) -> Vec<([&'static str; 2], String)> {
        let Self { ok, error, warning } = self;
        let (ok, error, warning) = (("ok", ok), ("error", error), ("warning", warning));
        let pairs = [(ok, error), (ok, warning), (error, warning)].into_iter();
        pairs
            .filter(|((_, a), (_, b))| a.start().max(b.start()) <= a.end().min(b.end()))
            .map(|((first, a), (second, b))| {
                let (a, b) = (exit_codes_text(a), exit_codes_text(b));
                let message =
                    format!("`{first}` is `{a}` and `{second}` is `{b}`: no exit code can mean both");
                ([first, second], message)
            })
            .collect()
    }
}

/// The end of a file's name.
pub(super) fn suffix(text: &str) -> Result<String, String> {
    let is_printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if (1..=32).contains(&text.len()) && text.bytes().all(|byte| is_printable(byte) && byte != b'/') {
        Ok(text.to_owned())
    } else {
        let text = quote(text);
        Err(format!("{text} is not {SUFFIX}: 1 to 32 printable ASCII characters without `/`"))
    }
}

/// Exit codes as a file writes them.
pub(super) fn exit_codes_in(text: &str) -> Result<RangeInclusive<u8>, String> {
    let code = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let parse = || {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(code(first)?..=code(last)?)
    };
    parse().filter(|codes| !codes.is_empty()).ok_or_else(|| format!("{} is not {EXIT_CODES}", quote(text)))
}

fn exit_codes_text(codes: &RangeInclusive<u8>) -> String {
    match (codes.start(), codes.end()) {
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start}-{end}"),
    }
}

impl Default for ExitCodes {
    fn default() -> Self {
        Self { ok: 0..=0, error: 1..=31, warning: 32..=63 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_names::ContractName;

    #[test]
    fn exit_codes_are_written_as_they_are_read() {
        for (text, codes) in [("0", 0..=0), ("255", 255..=255), ("1-31", 1..=31), ("0-255", 0..=255)] {
            assert_eq!(exit_codes_in(text), Ok(codes.clone()));
            assert_eq!(exit_codes_text(&codes), text);
        }
        assert_eq!(exit_codes_in("7-7"), Ok(7..=7));
        for text in ["", "-", "1-", "-1", "256", "0-256", "2-1", "+1", "1 - 2", "1-2-3", "1..2", "0x1"] {
            assert!(exit_codes_in(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_end_of_a_name_is_of_few_printable_characters() {
        for text in [".wasm", "-hook", " x", &"a".repeat(32)] {
            assert_eq!(suffix(text).as_deref(), Ok(text));
        }
        for text in ["", "/", "a/b", "\t", "\u{7f}", "ä", &"a".repeat(33)] {
            assert!(suffix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_contract_of_hooks_is_one() {
        assert_eq!(HOOKS_CONTRACT.parse::<ContractName>().unwrap().as_str(), HOOKS_CONTRACT);
    }
}
