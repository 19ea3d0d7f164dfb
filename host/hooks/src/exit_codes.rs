//! Ranges of exit codes and their meaning.

use std::ops::RangeInclusive;

use weir_config::{
    Shape,
    extend::{Contradiction, Facts, Places, Section, Table, kind::Kind, quote},
    keys,
};

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
    pub(crate) fn meaning(&self, code: u8) -> HookOutcome {
        if self.ok.contains(&code) {
            HookOutcome::Ok
        } else if self.warning.contains(&code) {
            HookOutcome::Warning { code }
        } else {
            HookOutcome::ScriptError { code, is_reserved: !self.error.contains(&code) }
        }
    }
}

impl Table for ExitCodes {
    keys! {
        ExitCodes;
        /// All is well: the next hook runs.
        "ok" ok = codes();
        /// The hook has failed, and none runs after it.
        "error" error = codes();
        /// Something is off, and the next hook runs.
        "warning" warning = codes();
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let Self { ok, error, warning } = self;
        let (ok, error, warning) = (("ok", ok), ("error", error), ("warning", warning));
        let pairs = [(ok, error), (ok, warning), (error, warning)].into_iter();
        pairs
            .filter(|((_, a), (_, b))| a.start().max(b.start()) <= a.end().min(b.end()))
            .map(|((first, a), (second, b))| {
                let (a, b) = (exit_codes_text(a), exit_codes_text(b));
                let message =
                    format!("`{first}` is `{a}` and `{second}` is `{b}`: no exit code can mean both");
                Contradiction { keys: [second, first], message }
            })
            .collect()
    }
}

/// A range of exit codes that is not empty.
fn codes() -> Kind<RangeInclusive<u8>> {
    let read = |section: &mut Section<'_, '_>, key, _: Option<&_>| {
        let at = section.text(key, EXIT_CODES, exit_codes_in)?;
        Some((at.value, Places::at(at.location)))
    };
    let tell = |codes: &RangeInclusive<u8>, key: &str, facts: &mut Facts| {
        facts.text(key, Some(exit_codes_text(codes)));
    };
    Kind::new(Shape::Text(EXIT_CODES), read, tell).checked(EXIT_CODES.to_owned(), |codes| !codes.is_empty())
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
