//! What the last full run of each language gave: `tests/conformance/NAME/measured.json`, and the page made of all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use crate::{
    language::{self, Language},
    measure::Figures,
    points::POINTS,
};

const HEAD: &str = "\
# Languages

After this page you know what Weir can do from each language, and what an extension in it costs.

`cargo xtask conformance --lang NAME --record` writes this page. It builds the guest that
[`tests/conformance/`](../tests/conformance/README.md) specifies, and tests each point below.
";

/// The last full run of a language.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    language: String,
    figures: Figures,
    /// Points that were run and passed.
    passed: BTreeSet<String>,
    /// Points that fail, and why.
    gaps: BTreeMap<String, String>,
}

impl Record {
    pub(crate) fn new(language: &Language, figures: Figures) -> Self {
        let gaps = language.gaps.clone();
        let passed =
            POINTS.iter().map(|point| point.name()).filter(|name| !gaps.contains_key(name)).collect();
        Self { language: language.title.clone(), figures, passed, gaps }
    }

    pub(crate) fn keep(&self, name: &str) {
        let text = serde_json::to_string_pretty(self).unwrap();
        fs::write(path(name), text + "\n").unwrap();
    }
}

fn path(name: &str) -> PathBuf {
    language::folder().join(name).join("measured.json")
}

pub(crate) fn page_path() -> PathBuf {
    language::folder().join("../../docs/languages.md")
}

/// The page, of what is kept.
pub(crate) fn page() -> String {
    let kept = language::names().into_iter().filter_map(|name| fs::read_to_string(path(&name)).ok());
    let records: Vec<Record> =
        kept.map(|text| serde_json::from_str(&text).expect("record it anew")).collect();
    let titles = records.iter().map(|record| record.language.as_str());
    let titles: Vec<_> = std::iter::once("").chain(titles).collect();
    let mut page = HEAD.to_owned();
    page += "\n## What it costs\n\n";
    page += &table(&titles, &figures(&records));
    page += "\n";
    page += ABOUT_FIGURES;
    page += "\n## What it can do\n\n";
    page += "The SDK for C has no JSON: there the guest itself reads and writes it.\n\n";
    page += &table(&titles, &points(&records));
    let gaps = records.iter().flat_map(|record| record.gaps.iter().map(move |gap| (&record.language, gap)));
    let gaps: Vec<_> =
        gaps.map(|(language, (point, why))| vec![language.clone(), sentence(point), why.clone()]).collect();
    if !gaps.is_empty() {
        page += "\n## Why not\n\n";
        page += &table(&["", "point", "cause"], &gaps);
    }
    page + &by_hand()
}

/// What is written by hand, at the page's end.
fn by_hand() -> String {
    let page = fs::read_to_string(page_path()).unwrap();
    let (_, by_hand) = page.split_once(BY_HAND).expect("the page has its part by hand");
    format!("\n{BY_HAND}{by_hand}")
}

/// The heading of what is written by hand.
const BY_HAND: &str = "## Components for other hosts\n";

const ABOUT_FIGURES: &str = "\
The suite took these with a development build of Main, on a 2-core x86-64 machine with other work.

- Compiling happens once, in a process of its own. The time includes the start of Main.
- The start is with the code in the cache.
- The echo is the median of 500, one after the other, by a caller on Main's own thread.
- An exception that ends the instance is told to its callers as `trapped`. In both cases the log names the function.
";

fn figures(records: &[Record]) -> Vec<Vec<String>> {
    let mib = |bytes: u64| format!("{:.2} MiB", mebibytes(bytes));
    let row = |name: &str, figure: &dyn Fn(&Figures) -> String| {
        let cells = records.iter().map(|record| figure(&record.figures));
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    vec![
        row("the file", &|f| mib(f.file)),
        row("its compiled code", &|f| mib(f.code)),
        row("compiling", &|f| format!("{:.1} s", f.compile_seconds)),
        row("start to ready", &|f| format!("{:.0} ms", f.start_ms.ceil())),
        row("memory when ready", &|f| mib(f.idle_memory)),
        row("fuel from start to ready", &|f| thousands(f.start_fuel)),
        row("fuel of an echo of 1 KiB", &|f| thousands(f.echo_fuel)),
        row("time of an echo of 1 KiB", &|f| format!("{:.1} µs", f.echo_us)),
        row("an unhandled exception", &|f| f.exception.clone()),
    ]
}

fn mebibytes(bytes: u64) -> f64 {
    // To a hundredth, so that no digit is lost.
    f64::from(u32::try_from(bytes * 100 / (1 << 20)).unwrap()) / 100.0
}

/// To three digits.
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let rounded: String =
        digits.chars().enumerate().map(|(place, digit)| if place < 3 { digit } else { '0' }).collect();
    let groups: Vec<_> = rounded.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

fn points(records: &[Record]) -> Vec<Vec<String>> {
    let row = |name: String| {
        let cells = records.iter().map(|record| match &name {
            name if record.passed.contains(name) => "yes",
            name if record.gaps.contains_key(name) => "**no**",
            // A newer point than the record.
            _ => "not run",
        });
        std::iter::once(sentence(&name)).chain(cells.map(str::to_owned)).collect()
    };
    POINTS.iter().map(|point| row(point.name())).collect()
}

fn sentence(name: &str) -> String {
    match name.strip_prefix("error-") {
        Some(case) => format!("error `{case}`"),
        None => name.replace('-', " "),
    }
}

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[&str]| {
        format!(
            "|{}\n",
            cells
                .iter()
                .map(|cell| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") })
                .collect::<String>()
        )
    };
    let rows = rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    line(head) + &line(&vec!["---"; head.len()]) + &rows.collect::<String>()
}
