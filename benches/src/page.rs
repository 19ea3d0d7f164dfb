//! `docs/benchmarks.md`, whose parts between marks are made from the record beside it: `docs/benchmarks/figures.json`
//! has the last run of every scenario on every kind of processor.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;

use crate::{
    figure::Figure,
    machine::Machine,
    scenarios::{Bench, SCENARIOS},
    table,
};

/// A run of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) scenario: String,
    /// Year, month and day.
    pub(crate) date: String,
    pub(crate) scale: String,
    /// The machine before the run, as [`Machine`] shows it.
    pub(crate) machine: String,
    /// What stands for the machine's own processor: an interpreter, or another processor that is emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instead: Option<String>,
    pub(crate) figures: Vec<Figure>,
}

/// The entries in the order in which scenarios run. Of one scenario, runs on real processors come first, and the latest
/// before older ones.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
}

impl Entry {
    pub(crate) fn new(scenario: &str, bench: &Bench, machine: &Machine, figures: Vec<Figure>) -> Self {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self {
            scenario: scenario.to_owned(),
            date: now.split('T').next().unwrap_or_default().to_owned(),
            scale: bench.scale.pick("full", "quick", "smoke").to_owned(),
            machine: machine.to_string(),
            instead: bench.instead(),
            figures,
        }
    }

    /// The kind of processor that it was measured on: [`Machine`] begins with it.
    pub(crate) fn processor(&self) -> String {
        let name = self.machine.split(',').next().unwrap_or_default();
        name.replace("(R)", "").trim_end_matches(" Processor").to_owned()
    }
}

impl Record {
    fn text(&self) -> Result<String> {
        let mut text = Vec::new();
        self.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Lines))?;
        text.push(b'\n');
        Ok(String::from_utf8(text)?)
    }

    /// Puts the entry in the place of an older one of its scenario on the same kind of processor, or what stands for
    /// it.
    fn replace(&mut self, mut entry: Entry) {
        entry.figures.iter_mut().for_each(round);
        let of = |entry: &Entry| (entry.scenario.clone(), entry.processor(), entry.instead.clone());
        self.entries.retain(|other| of(other) != of(&entry));
        self.entries.insert(0, entry);
        self.entries.sort_by_key(|entry| {
            let place = SCENARIOS.iter().position(|scenario| scenario.name == entry.scenario);
            (place, entry.scenario.clone(), entry.instead.clone())
        });
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

/// Writes every element of an array on a line of its own, and all else as short as it can be.
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

/// Puts a run into the record beside the page, and makes the page from it.
pub(crate) fn update(page: &Path, entry: Entry) -> Result<()> {
    let mut record = record(page)?;
    record.replace(entry);
    write(&beside(page), &record.text()?)?;
    make(page)
}

/// Makes the page from the record.
pub(crate) fn make(page: &Path) -> Result<()> {
    write(page, &rendered(&read(page)?, &record(page)?)?)
}

fn record(page: &Path) -> Result<Record> {
    serde_json::from_str(&read(&beside(page))?).context("that is no record")
}

fn beside(page: &Path) -> PathBuf {
    page.with_extension("").join("figures.json")
}

/// The page with its marked parts made from the record. The part of a scenario that is not in the record stays.
fn rendered(page: &str, record: &Record) -> Result<String> {
    let mut page = page.to_owned();
    let put = |page: &mut String, mark: &str, section: &str| {
        let changed = replaced(page, mark, section);
        *page = changed.with_context(|| format!("the page has no marks for `{mark}`"))?;
        anyhow::Ok(())
    };
    for runs in record.entries.chunk_by(|one, other| one.scenario == other.scenario) {
        let Some(Entry { scenario, date, scale, machine, instead, .. }) = runs.first() else { continue };
        let instead = instead.as_deref().map(|instead| format!("{instead}; ")).unwrap_or_default();
        let measured = format!("\nMeasured on {date}, {scale} run, {instead}on {machine}.\n\n");
        put(&mut page, scenario, &(measured + &table::scenario(runs)))?;
    }
    put(&mut page, "summary", &format!("\n{}", table::summary(record)))?;
    Ok(page)
}

/// Replaces the text between `<!-- MARK -->` and `<!-- /MARK -->`. `None` if they are not there.
fn replaced(text: &str, mark: &str, section: &str) -> Option<String> {
    let (start, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (before, rest) = text.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{section}\n{end}{after}"))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Unit;

    fn ours() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks.md")
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

    fn recorded(entries: impl IntoIterator<Item = Entry>) -> (Record, Vec<f64>) {
        let mut record = Record { entries: Vec::new() };
        entries.into_iter().for_each(|entry| record.replace(entry));
        let values = record.entries.iter().map(|entry| entry.figures[0].value).collect();
        (record, values)
    }

    #[test]
    fn a_run_takes_the_place_of_the_one_before() {
        let runs = [("hooks", 1.0), ("isolation", 2.0), ("hooks", 1.0 / 3.0)];
        let (record, values) = recorded(runs.map(|(scenario, value)| on("one", scenario, value)));
        assert_eq!(values, [0.333333, 2.0]);
        assert_eq!(record.entries[0].scenario, "hooks");
    }

    #[test]
    fn a_run_on_another_processor_replaces_nothing_and_comes_first() {
        let runs = [("Intel(R) Xeon(R) Processor", 1.0), ("AMD EPYC", 2.0), ("AMD EPYC", 3.0)];
        let (record, values) = recorded(runs.map(|(processor, value)| on(processor, "hooks", value)));
        assert_eq!(values, [3.0, 1.0]);
        assert_eq!(record.processors(), ["AMD EPYC", "Intel Xeon"]);
    }

    #[test]
    fn a_run_with_something_instead_of_the_processor_replaces_none_of_it_and_comes_after_all() {
        let instead = |value| Entry { instead: Some("an interpreter".to_owned()), ..on("A", "hooks", value) };
        let runs = [on("A", "hooks", 1.0), instead(2.0), on("B", "hooks", 3.0), instead(4.0)];
        let (record, values) = recorded(runs);
        assert_eq!(values, [3.0, 1.0, 4.0]);
        assert_eq!(record.processors(), ["A", "B"]);
    }

    #[test]
    fn a_record_is_read_as_it_was_written_with_a_line_for_each_figure() {
        let (record, _) = recorded([on("one", "hooks", 1e-7 / 3.0)]);
        let text = record.text().unwrap();
        let read: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(read.entries, record.entries);
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.lines().any(|line| line.starts_with("{\"scenario\":\"hooks\",\"case\":")), "{text}");
    }

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = "a\n<!-- x -->\nold\n\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n";
        let x = replaced(page, "x", "new\n").unwrap();
        assert_eq!(x, "a\n<!-- x -->\nnew\n\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n");
        assert_eq!(replaced(&x, "x", "old\n").unwrap(), page);
        assert!(replaced(page, "z", "new\n").is_none());
    }

    #[test]
    fn the_page_is_what_the_record_makes_of_it() {
        let page = read(&ours()).unwrap();
        let made = rendered(&page, &record(&ours()).unwrap()).unwrap();
        assert!(made == page, "the page differs: `cargo xtask bench --page` makes it from the record");
    }

    #[test]
    fn what_is_not_on_the_page_is_in_the_record() {
        let record = record(&ours()).unwrap();
        for (scenario, names) in table::NOT_ON_THE_PAGE {
            let of_scenario = record.entries.iter().filter(|entry| entry.scenario == scenario);
            let figures: Vec<_> = of_scenario.flat_map(|entry| &entry.figures).collect();
            let is_there = |name: &&&str| figures.iter().any(|figure| table::is_named(figure, name));
            assert_eq!(names.iter().find(|name| !is_there(name)), None, "{scenario}");
        }
    }

    #[test]
    fn every_scenario_has_its_marks_on_the_page() {
        let page = read(&ours()).unwrap();
        for scenario in &SCENARIOS {
            assert!(replaced(&page, scenario.name, "").is_some(), "{}", scenario.name);
        }
    }

    #[test]
    fn what_is_not_in_the_record_stays() {
        let page = "<!-- summary -->\n<!-- /summary -->\n<!-- hooks -->\nolder\n<!-- /hooks -->\n";
        let made = rendered(page, &Record { entries: Vec::new() }).unwrap();
        assert!(made.ends_with("<!-- hooks -->\nolder\n<!-- /hooks -->\n"), "{made}");
    }
}
