//! Faults of a file with their places.

use std::{fmt::Write, ops::Range};

use weir_names::harmless;

/// Faults that are shown.
const SHOWN_MAX: usize = 20;

/// Characters shown of the line with the fault.
const LINE_MAX: usize = 160;

/// The faults of a file. Displays each as a line that starts with `file:line:column:`, followed by the source line and a
/// mark below the fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigErrors(String);

/// A fault, and the bytes of the file that have it.
pub(super) type Fault = (Range<usize>, String);

impl ConfigErrors {
    pub(super) fn new(name: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|(place, _)| place.start);
        let shown = faults.iter().take(SHOWN_MAX);
        let mut lines: Vec<_> = shown.map(|(place, message)| report(name, text, place, message)).collect();
        if faults.len() > SHOWN_MAX {
            lines.push(format!("and {} more", faults.len() - SHOWN_MAX));
        }
        Self(lines.join("\n"))
    }

    pub(super) fn of_toml(name: &str, text: &str, error: &toml::de::Error) -> Self {
        let message = with_nearest(error.message());
        Self::new(name, text, vec![(error.span().unwrap_or(0..0), message)])
    }
}

/// Adds to serde's message about an unknown word the most similar of those that it lists.
fn with_nearest(message: &str) -> String {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let (true, Some((wrong, known))) = (is_unknown, words.split_first()) else { return message.to_owned() };
    let near = known.iter().map(|word| (strsim::jaro_winkler(wrong, word), word));
    match near.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((similar, word)) if similar > 0.75 => format!("{message}; did you mean `{word}`?"),
        _ => message.to_owned(),
    }
}

fn report(name: &str, text: &str, place: &Range<usize>, message: &str) -> String {
    let start = text.floor_char_boundary(place.start);
    let end = text.floor_char_boundary(place.end.max(start));
    let before = text.get(..start).unwrap_or_default();
    let number = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let column = text.get(line_start..start).unwrap_or_default().chars().count();
    let marked = text.get(start..end).unwrap_or_default();
    let width = marked.lines().next().unwrap_or_default().chars().count().max(1);

    let mut report = format!("{name}:{number}:{}: {}", column + 1, harmless(message, 1000).trim_end());
    // A line with an address may have a password.
    let is_secret = line.contains("://") && line.contains('@');
    if !line.is_empty() && !is_secret && column + width <= LINE_MAX {
        let margin = " ".repeat(number.to_string().len());
        let (space, mark) = (" ".repeat(column), "^".repeat(width));
        let _infallible =
            write!(report, "\n {number} | {}\n {margin} | {space}{mark}", harmless(line, LINE_MAX));
    }
    report
}
