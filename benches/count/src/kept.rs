//! The kept numbers, and their changes.

use std::{collections::BTreeMap, fs, io::ErrorKind, path::Path};

use anyhow::{Context, Result, bail, ensure};
use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

/// Per cent by which a number may grow, and by which it may fall without a remark.
const ALLOWED: u64 = 5;

/// Instructions of one operation, by case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept(BTreeMap<String, u32>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    /// No number is kept for the case.
    New,
    /// Changed by this many per cent, within the allowed range.
    Held(f64),
    /// Grew by this many per cent, more than is allowed.
    Grew(f64),
    /// Changed by this many per cent, below the allowed range.
    Fell(f64),
}

impl FromIterator<(String, u32)> for Kept {
    fn from_iter<I: IntoIterator<Item = (String, u32)>>(cases: I) -> Self {
        Self(cases.into_iter().collect())
    }
}

impl Kept {
    /// Reads the numbers. Without a file, none is kept.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.with_context(|| format!("cannot read `{}`", path.display()))?,
        };
        serde_json::from_str(&text).with_context(|| format!("`{}` is not what was kept", path.display()))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
    }

    pub(crate) fn table(&self, now: &Self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["CASE", "KEPT", "NOW", "CHANGE"]);
        for (case, count) in &now.0 {
            let kept = self.0.get(case).map(u32::to_string).unwrap_or_default();
            let change = self.verdict(case, *count).change();
            table.add_row([case.clone(), kept, count.to_string(), change]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Returns a remark on numbers that fell by more than a number may grow. `None` if there are none.
    ///
    /// # Errors
    ///
    /// If a number grew by more than is allowed, or is not kept yet.
    pub(crate) fn judge(&self, now: &Self) -> Result<Option<String>> {
        let which = |wanted: fn(&Verdict) -> bool| {
            let verdicts = now.0.iter().map(|(case, count)| (case, self.verdict(case, *count)));
            let wanted = verdicts.filter(|(_, verdict)| wanted(verdict));
            let named: Vec<_> =
                wanted.map(|(case, verdict)| format!("`{case}` ({})", verdict.change())).collect();
            (!named.is_empty()).then(|| named.join(", "))
        };
        if let Some(grew) = which(|verdict| matches!(verdict, Verdict::Grew(_))) {
            bail!(
                "an operation takes over {ALLOWED} % more instructions than are kept: {grew}; \
                 `callgrind_annotate target/instructions/CASE.callgrind` shows where they go; if that is what it \
                 costs, keep it with `cargo xtask instructions --bless` (the step's: `--as-tested --bless`) and say why in \
                 the commit"
            );
        }
        let new = which(|verdict| *verdict == Verdict::New);
        ensure!(
            new.is_none(),
            "no number is kept: {}; `cargo xtask instructions --bless` keeps it (the step's: `--as-tested --bless`)",
            new.unwrap_or_default()
        );
        let fell = which(|verdict| matches!(verdict, Verdict::Fell(_)));
        Ok(fell.map(|fell| {
            format!("fewer instructions than are kept: {fell}; `cargo xtask instructions --bless` keeps that")
        }))
    }

    fn verdict(&self, case: &str, now: u32) -> Verdict {
        let Some(kept) = self.0.get(case) else { return Verdict::New };
        let change = 100.0 * (f64::from(now) / f64::from(*kept) - 1.0);
        // Whole numbers are compared, so that a number at the bound itself is allowed.
        let (now, kept) = (100 * u64::from(now), u64::from(*kept));
        match now {
            _ if now > (100 + ALLOWED) * kept => Verdict::Grew(change),
            _ if now < (100 - ALLOWED) * kept => Verdict::Fell(change),
            _ => Verdict::Held(change),
        }
    }
}

impl Verdict {
    fn change(self) -> String {
        match self {
            Self::New => "new".to_owned(),
            Self::Held(change) | Self::Grew(change) | Self::Fell(change) => format!("{change:+.1} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(cases: &[(&str, u32)]) -> Kept {
        cases.iter().map(|(case, count)| ((*case).to_owned(), *count)).collect()
    }

    #[test]
    fn what_grew_by_over_five_per_cent_fails_and_is_named() {
        let before = kept(&[("a", 1000), ("b", 1000), ("c", 1000)]);
        let error = before.judge(&kept(&[("a", 1050), ("b", 1051), ("c", 2000)])).unwrap_err().to_string();
        assert!(error.contains("kept: `b` (+5.1 %), `c` (+100.0 %);"), "{error}");
        assert_eq!(before.judge(&kept(&[("a", 1050), ("b", 950), ("c", 1000)])).unwrap(), None);
    }

    #[test]
    fn what_fell_by_over_five_per_cent_is_told_and_does_not_fail() {
        let told =
            kept(&[("a", 1000), ("b", 1000)]).judge(&kept(&[("a", 949), ("b", 950)])).unwrap().unwrap();
        assert!(told.contains("kept: `a` (-5.1 %);"), "{told}");
    }

    #[test]
    fn what_is_not_kept_yet_fails() {
        let error = kept(&[("a", 1000)]).judge(&kept(&[("a", 1000), ("b", 10)])).unwrap_err().to_string();
        assert!(error.contains("`b` (new)"), "{error}");
    }

    #[test]
    fn numbers_are_read_as_they_were_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (path, numbers) = (dir.path().join("kept.json"), kept(&[("a", 1000), ("b", 10)]));
        assert_eq!(Kept::read(&path).unwrap(), Kept::default());
        numbers.write(&path).unwrap();
        assert_eq!(Kept::read(&path).unwrap(), numbers);
    }

    #[test]
    fn the_table_shows_what_changed() {
        assert_eq!(
            kept(&[("a", 1000)]).table(&kept(&[("a", 1010), ("b", 7)])),
            " CASE  KEPT   NOW  CHANGE\n a     1000  1010  +1.0 %\n b              7     new\n"
        );
    }
}
