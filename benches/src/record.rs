//! The source of `docs/benchmarks.md`: the last run of each scenario, and its machine.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;

use crate::{figure::Figure, scenarios::SCENARIOS};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) scenario: String,
    pub(crate) date: String,
    pub(crate) scale: String,
    pub(crate) machine: String,
    pub(crate) figures: Vec<Figure>,
}

/// The last run of each scenario, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
}

impl Record {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("that is no record")
    }

    /// The stored form: every figure on its own line.
    pub(crate) fn text(&self) -> Result<String> {
        let mut text = Vec::new();
        self.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Lines))?;
        text.push(b'\n');
        Ok(String::from_utf8(text)?)
    }

    pub(crate) fn replace(&mut self, mut entry: Entry) {
        entry.figures.iter_mut().for_each(round);
        self.entries.retain(|other| other.scenario != entry.scenario);
        self.entries.push(entry);
        let place = |entry: &Entry| SCENARIOS.iter().position(|scenario| scenario.name == entry.scenario);
        self.entries.sort_by_key(place);
    }
}

/// Rounds every number to six digits: no measurement has more, and these survive writing and reading.
fn round(figure: &mut Figure) {
    let numbers = [Some(&mut figure.value), figure.baseline.as_mut(), figure.ratio.as_mut()];
    for number in numbers.into_iter().chain([figure.spread.as_mut()]).flatten() {
        *number = format!("{number:.5e}").parse().unwrap_or(*number);
    }
}

/// Every element of an array on its own line, and the rest as short as possible.
struct Lines;

impl Formatter for Lines {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        out.write_all(if first { b"\n" } else { b",\n" })
    }

    fn end_array<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b"\n]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Unit;

    fn entry(scenario: &str, value: f64) -> Entry {
        let figures = vec![Figure::new(scenario, "c", "m", Unit::Times, value).beside(3.0)];
        Entry {
            scenario: scenario.to_owned(),
            date: "2026-11-22".to_owned(),
            scale: "full".to_owned(),
            machine: "one".to_owned(),
            figures,
        }
    }

    #[test]
    fn a_run_takes_the_place_of_the_one_before() {
        let mut record = Record { entries: Vec::new() };
        for (scenario, value) in [("hooks", 1.0), ("isolation", 2.0), ("hooks", 1.0 / 3.0)] {
            record.replace(entry(scenario, value));
        }
        let scenarios = |record: &Record| -> Vec<_> {
            record.entries.iter().map(|entry| (entry.scenario.clone(), entry.figures[0].value)).collect()
        };
        assert_eq!(scenarios(&record), [("hooks".to_owned(), 0.333333), ("isolation".to_owned(), 2.0)]);
    }

    #[test]
    fn a_record_is_read_as_it_was_written_with_a_line_for_each_figure() {
        let mut record = Record { entries: Vec::new() };
        record.replace(entry("hooks", 1e-7 / 3.0));
        let text = record.text().unwrap();
        assert_eq!(Record::parse(&text).unwrap().entries, record.entries);
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.lines().any(|line| line.starts_with("{\"scenario\":\"hooks\",\"case\":")), "{text}");
    }
}
