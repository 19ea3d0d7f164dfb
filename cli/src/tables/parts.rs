//! Parts of Main as text for people.

use comfy_table::{Cell, Color};

use super::{BACKING_OFF, NOTHING, finish, table};
use crate::{model::Part, output::printable};

/// The part of `weir ps` for parts of Main that have ended before; empty if none has.
pub(crate) fn faulty_parts(parts: &[Part]) -> String {
    let faulty = parts.iter().filter(|part| part.restarts > 0 || part.state == BACKING_OFF);
    let mut table = table(["PART OF MAIN", "STATE", "RESTARTS", "ENDED BECAUSE"]);
    table.add_rows(faulty.map(|part| {
        let color = if part.state == BACKING_OFF { Color::Red } else { Color::Green };
        vec![
            Cell::new(printable(&part.name)),
            Cell::new(printable(&part.state)).fg(color),
            Cell::new(part.restarts),
            Cell::new(part.reason.as_deref().map_or(NOTHING.to_owned(), printable)),
        ]
    }));
    if table.is_empty() { String::new() } else { format!("\n{}", finish(&table)) }
}

/// The part of `weir peers` about what was refused; empty if nothing was.
pub(crate) fn refusals(parts: &[Part]) -> String {
    let lines: String = parts
        .iter()
        .filter(|part| !part.refused.is_empty())
        .map(|part| {
            let of = |(reason, count): (&String, &u64)| format!("{count} {}", printable(reason));
            let reasons: Vec<_> = part.refused.iter().map(of).collect();
            format!("`{}` refused so far: {}\n", printable(&part.name), reasons.join(", "))
        })
        .collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(state: &str, restarts: u64, refused: &[(&str, u64)]) -> Part {
        Part {
            name: "gateway".to_owned(),
            state: state.to_owned(),
            restarts,
            reason: Some("it has panicked: \x1b[2J".to_owned()),
            refused: refused.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
        }
    }

    #[test]
    fn a_part_that_has_not_ended_and_refused_nothing_is_not_shown() {
        let parts = [part("serving", 0, &[])];
        assert_eq!((faulty_parts(&parts), refusals(&parts)), (String::new(), String::new()));
    }

    #[test]
    fn a_part_that_has_ended_is_shown_with_the_reason_and_what_was_refused_with_the_number() {
        let parts = [part(BACKING_OFF, 0, &[("host", 1), ("origin", 3)]), part("serving", 2, &[])];
        let text = faulty_parts(&parts);
        assert!(text.contains("backing-off") && text.contains("serving"), "{text}");
        assert!(text.contains("it has panicked") && !text.contains('\x1b'), "{text}");
        assert_eq!(refusals(&parts), "\n`gateway` refused so far: 1 host, 3 origin\n");
    }
}
