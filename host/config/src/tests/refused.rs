//! Golden files of what is refused. Tests of the tables of other crates include this file, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::*;

/// Lines of a report's beginning and end that are kept.
const LINES: (usize, usize) = (6, 2);

#[test]
fn every_broken_file_is_refused_with_its_golden_message() {
    let files = fs::read_to_string(golden().join("broken-files.txt")).unwrap();
    let broken = broken_files(&files);
    assert!(broken.len() > FEWEST, "{}", broken.len());
    let mut report = String::new();
    for (name, text) in broken {
        report.push_str(&format!("# {name}\n{}\n\n", parse_error(text)));
    }
    assert_golden("broken-files", &report);
}

/// The files that `broken-files.txt` holds, each below a line with four `#` and its name.
pub(super) fn broken_files(files: &str) -> BTreeMap<&str, &str> {
    let parts = files.split("#### ").skip(1);
    parts.map(|part| part.split_once('\n').unwrap()).collect()
}

pub(super) fn parse_error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

pub(super) fn assert_golden(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(golden());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Messages that differ from each other in more than the key and the value, with the cases that have each.
#[derive(Default)]
pub(super) struct Messages(Vec<Message>);

struct Message {
    /// The message, with words in place of what differs from case to case.
    shape: String,
    /// The first case, with all that is said.
    first: String,
    cases: usize,
    /// The names of the keys, by table.
    keys: BTreeMap<String, BTreeSet<String>>,
}

impl Messages {
    pub(super) fn add(&mut self, key: &str, case: &str, error: &str, shape: String) {
        if !self.0.iter().any(|message| message.shape == shape) {
            let (shape, first) = (shape.clone(), format!("# {case}\n{error}"));
            self.0.push(Message { shape, first, cases: 0, keys: BTreeMap::new() });
        }
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
        for message in self.0.iter_mut().filter(|message| message.shape == shape) {
            message.cases += 1;
            message.keys.entry(table.to_owned()).or_default().insert(name.to_owned());
        }
    }

    /// The first case of each in full, and the keys of all.
    pub(super) fn report(self) -> String {
        let mut report = String::new();
        for Message { shape, first, cases, keys } in self.0 {
            report.push_str(&format!("{first}\n{cases} × {shape}\n"));
            for (table, names) in keys {
                report.push_str(&format!("  {table}: {}\n", names.into_iter().collect::<Vec<_>>().join(" ")));
            }
            report.push('\n');
        }
        report
    }
}

/// The report of files that are refused, each by its name: of many lines only the first and the last.
pub(super) fn refused<'n>(files: impl IntoIterator<Item = (&'n str, String)>) -> String {
    let mut report = String::new();
    for (name, text) in files {
        assert!(text.len() <= 1024 * 1024, "{name}: {}", text.len());
        let errors = parse_error(&text);
        assert!(errors.len() < 20_000, "{name}: {}", errors.len());
        let lines: Vec<_> = errors.lines().collect();
        let (first, rest) = lines.split_at(lines.len().min(LINES.0));
        let (left_out, last) = rest.split_at(rest.len().saturating_sub(LINES.1));
        let said = format!("… {} lines", left_out.len());
        let said = (!left_out.is_empty()).then_some(&*said);
        let shown: Vec<_> = first.iter().copied().chain(said).chain(last.iter().copied()).collect();
        report.push_str(&format!("# {name}\n{}\n\n", shown.join("\n")));
    }
    report
}
