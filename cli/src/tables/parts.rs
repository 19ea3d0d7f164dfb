//! Parts of Main as text for people.

use comfy_table::{Cell, Color};

use weir_host::control::{PartState, PartStatus};

use super::{NOTHING, finish, table};
use crate::output::printable;

/// The part of `weir ps` for parts of Main that have ended before; empty if none has.
pub(crate) fn faulty_parts(parts: &[PartStatus]) -> String {
    let faulty = parts.iter().filter(|part| part.restarts > 0 || part.state == PartState::BackingOff);
    let mut table = table(["PART OF MAIN", "STATE", "RESTARTS", "ENDED BECAUSE"]);
    table.add_rows(faulty.map(|part| {
        let color = if part.state == PartState::BackingOff { Color::Red } else { Color::Green };
        vec![
            Cell::new(printable(&part.name)),
            Cell::new(part.state).fg(color),
            Cell::new(part.restarts),
            Cell::new(part.reason.as_deref().map_or(NOTHING.to_owned(), printable)),
        ]
    }));
    if table.is_empty() { String::new() } else { format!("\n{}", finish(&table)) }
}

/// The part of `weir peers` about what was refused; empty if nothing was.
pub(crate) fn refusals(parts: &[PartStatus]) -> String {
    let lines: String = parts
        .iter()
        .filter(|part| !part.refused.is_empty())
        .map(|part| {
            let refused = part.refused.iter();
            let reasons: Vec<_> =
                refused.map(|(reason, count)| format!("{count} {}", printable(reason))).collect();
            format!("`{}` refused so far: {}\n", printable(&part.name), reasons.join(", "))
        })
        .collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn part(state: PartState, restarts: u64, refused: &[(&str, u64)]) -> PartStatus {
        serde_json::from_value(serde_json::json!({
            "name": "gateway",
            "state": state,
            "restarts": restarts,
            "reason": "it has panicked: \x1b[2J",
            "refused": refused.iter().copied().collect::<BTreeMap<_, _>>(),
        }))
        .unwrap()
    }

    #[test]
    fn a_part_that_has_not_ended_and_refused_nothing_is_not_shown() {
        let parts = [part(PartState::Serving, 0, &[])];
        assert_eq!((faulty_parts(&parts), refusals(&parts)), (String::new(), String::new()));
    }

    #[test]
    fn a_part_that_has_ended_is_shown_with_the_reason_and_what_was_refused_with_the_number() {
        let parts =
            [part(PartState::BackingOff, 0, &[("host", 1), ("origin", 3)]), part(PartState::Serving, 2, &[])];
        let text = faulty_parts(&parts);
        assert!(text.contains("backing-off") && text.contains("serving"), "{text}");
        assert!(text.contains("it has panicked") && !text.contains('\x1b'), "{text}");
        assert_eq!(refusals(&parts), "\n`gateway` refused so far: 1 host, 3 origin\n");
    }
}
