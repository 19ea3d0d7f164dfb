//! Ranges of exit codes and their meaning.

use std::ops::RangeInclusive;

use weir_config::extend::{Section, quote};

use crate::HookOutcome;

const EXIT_CODES: &str = "an exit code from 0 to 255 or a range of them, as in `1-31`";

/// The meaning of exit codes. Ranges do not overlap. A code outside them is reserved, and an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitCodes {
    /// Success. Default: 0.
    pub ok: RangeInclusive<u8>,
    /// Failure. Default: 1 to 31.
    pub error: RangeInclusive<u8>,
    /// A warning: the next hook runs. Default: 32 to 63.
    pub warning: RangeInclusive<u8>,
}

impl ExitCodes {
    /// Overlapping ranges: both keys and the fault.
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

    pub(crate) fn meaning(&self, code: u8) -> HookOutcome {
        if self.ok.contains(&code) {
            HookOutcome::Ok
        } else if self.warning.contains(&code) {
            HookOutcome::Warning { code }
        } else {
            HookOutcome::ScriptError { code, is_reserved: !self.error.contains(&code) }
        }
    }

    /// Reversed ranges: the key, and what it must be.
    pub(super) fn out_of_range(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Self { ok, error, warning } = self;
        let keys = [("exit-codes.ok", ok), ("exit-codes.error", error), ("exit-codes.warning", warning)];
        keys.into_iter().filter(|(_, codes)| codes.is_empty()).map(|(key, _)| (key, EXIT_CODES.to_owned()))
    }

    /// The keys with their values.
    pub(super) fn texts(&self) -> [(&'static str, String); 3] {
        let Self { ok, error, warning } = self;
        [("exit-codes.ok", ok), ("exit-codes.error", error), ("exit-codes.warning", warning)]
            .map(|(key, codes)| (key, exit_codes_text(codes)))
    }

    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let errors = section.error_count();
        let new = Self::default();
        let ok = section.text("ok", EXIT_CODES, exit_codes_in);
        let error = section.text("error", EXIT_CODES, exit_codes_in);
        let warning = section.text("warning", EXIT_CODES, exit_codes_in);
        let location = |key| {
            let set = [("ok", &ok), ("error", &error), ("warning", &warning)];
            set.into_iter().find(|(name, _)| *name == key)?.1.as_ref().map(|at| at.location.clone())
        };
        let codes = Self {
            ok: ok.as_ref().map_or(new.ok, |at| at.value.clone()),
            error: error.as_ref().map_or(new.error, |at| at.value.clone()),
            warning: warning.as_ref().map_or(new.warning, |at| at.value.clone()),
        };
        if section.error_count() == errors {
            for ([first, second], message) in codes.overlaps() {
                section.contradiction([(second, location(second)), (first, location(first))], &message);
            }
        }
        codes
    }
}

fn exit_codes_in(text: &str) -> Result<RangeInclusive<u8>, String> {
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
    fn a_code_means_what_its_range_says_and_is_reserved_outside_of_all() {
        let codes = ExitCodes::default();
        assert_eq!(codes.meaning(0), HookOutcome::Ok);
        assert_eq!(codes.meaning(31), HookOutcome::ScriptError { code: 31, is_reserved: false });
        assert_eq!(codes.meaning(32), HookOutcome::Warning { code: 32 });
        assert_eq!(codes.meaning(64), HookOutcome::ScriptError { code: 64, is_reserved: true });
    }
}
