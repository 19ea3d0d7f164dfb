//! What `docs/benchmarks.md` is made from: the last run of every scenario on every kind of processor.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;

use crate::{figure::Figure, scenarios::SCENARIOS};

/// A run of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) scenario: String,
    /// Year, month and day.
    pub(crate) date: String,
    pub(crate) scale: String,
    /// The machine before it.
    pub(crate) machine: String,
    /// What stands for the machine's own processor: an interpreter, or another processor that is emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instead: Option<String>,
    pub(crate) figures: Vec<Figure>,
}

impl Entry {
    /// The kind of processor that it was measured on: [`Machine`](crate::machine::Machine) begins with it.
    pub(crate) fn processor(&self) -> String {
        let name = self.machine.split(',').next().unwrap_or_default();
        name.replace("(R)", "").trim_end_matches(" Processor").to_owned()
    }
}

/// The last run of every scenario on every kind of processor, in the order in which they run; of one scenario, the
/// latest run first, and after all of them those where something stands for the processor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
}

impl Record {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("that is no record")
    }

    /// As it is kept: every figure on a line of its own.
    pub(crate) fn text(&self) -> Result<String> {
        let mut text = Vec::new();
        self.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Lines))?;
        text.push(b'\n');
        Ok(String::from_utf8(text)?)
    }

    /// Puts the entry in the place of an older one of its scenario on the same kind of processor, or what stands for it.
    pub(crate) fn replace(&mut self, mut entry: Entry) {
        entry.figures.iter_mut().for_each(round);
        let of = |entry: &Entry| (entry.scenario.clone(), entry.processor(), entry.instead.clone());
        self.entries.retain(|other| of(other) != of(&entry));
        self.entries.insert(0, entry);
        let place = |entry: &Entry| {
            let place = SCENARIOS.iter().position(|scenario| scenario.name == entry.scenario);
            (place, entry.scenario.clone(), entry.instead.clone())
        };
        self.entries.sort_by_key(place);
    }

    /// Every kind of processor that ran Weir itself, in the order of the alphabet.
    pub(crate) fn processors(&self) -> Vec<String> {
        let own = self.entries.iter().filter(|entry| entry.instead.is_none());
        let mut processors: Vec<_> = own.map(Entry::processor).collect();
        processors.sort_unstable();
        processors.dedup();
        processors
    }
}

/// Leaves six digits of every number: no measurement has more, and so many are read as they were written.
fn round(figure: &mut Figure) {
    let numbers = [Some(&mut figure.value), figure.baseline.as_mut(), figure.ratio.as_mut()];
    for number in numbers.into_iter().chain([figure.spread.as_mut()]).flatten() {
        *number = format!("{number:.5e}").parse().unwrap_or(*number);
    }
}

/// Every element of an array on a line of its own, and all else as short as it can be.
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
        on("one", scenario, value)
    }

    fn on(processor: &str, scenario: &str, value: f64) -> Entry {
        let figures = vec![Figure::new(scenario, "c", "m", Unit::Times, value).beside(3.0)];
        Entry {
            scenario: scenario.to_owned(),
            date: "2026-11-22".to_owned(),
            scale: "full".to_owned(),
            machine: format!("{processor}, 2 cores, Linux"),
            instead: None,
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
    fn a_run_on_another_processor_replaces_nothing_and_comes_first() {
        let mut record = Record { entries: Vec::new() };
        for (processor, value) in [("Intel(R) Xeon(R) Processor", 1.0), ("AMD EPYC", 2.0), ("AMD EPYC", 3.0)]
        {
            record.replace(on(processor, "hooks", value));
        }
        let values: Vec<_> = record.entries.iter().map(|entry| entry.figures[0].value).collect();
        assert_eq!(values, [3.0, 1.0]);
        assert_eq!(record.processors(), ["AMD EPYC", "Intel Xeon"]);
    }

    #[test]
    fn a_run_with_something_instead_of_the_processor_replaces_none_of_it_and_comes_after_all() {
        let instead = |value| Entry { instead: Some("an interpreter".to_owned()), ..on("A", "hooks", value) };
        let mut record = Record { entries: Vec::new() };
        for entry in [on("A", "hooks", 1.0), instead(2.0), on("B", "hooks", 3.0), instead(4.0)] {
            record.replace(entry);
        }
        let values: Vec<_> = record.entries.iter().map(|entry| entry.figures[0].value).collect();
        assert_eq!(values, [3.0, 1.0, 4.0]);
        assert_eq!(record.processors(), ["A", "B"]);
        assert_eq!(Record::parse(&record.text().unwrap()).unwrap().entries, record.entries);
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
