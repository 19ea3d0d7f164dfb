//! The changelog, in the form of <https://keepachangelog.com>.

use std::collections::BTreeSet;

/// What a section says of its changes.
const KINDS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];

const UNRELEASED: &str = "[Unreleased]";

/// What is not in that form, and a version without a section.
pub(super) fn faults(text: &str, version: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut sections, mut is_in_kind) = (BTreeSet::new(), false);
    for (line, number) in text.lines().zip(1..) {
        if let Some(title) = line.strip_prefix("## ") {
            is_in_kind = false;
            let name = title.split(" - ").next().unwrap_or(title);
            if name != UNRELEASED && !is_dated(title) {
                faults.push(format!(
                    "line {number}: `{title}`: write `{UNRELEASED}`, or `[1.2.3] - 2026-12-31`"
                ));
            }
            if !sections.insert(name) {
                faults.push(format!("line {number}: there are two sections `{name}`: make them one"));
            }
        } else if let Some(kind) = line.strip_prefix("### ") {
            is_in_kind = true;
            if !KINDS.contains(&kind) {
                faults.push(format!("line {number}: `{kind}`: write one of {}", KINDS.join(", ")));
            }
        } else if line.starts_with("- ") && !is_in_kind {
            faults.push(format!("line {number}: a change of no kind: write `### Added` or another above it"));
        }
    }
    if ![UNRELEASED, &format!("[{version}]")].iter().any(|name| sections.contains(name)) {
        faults.push(format!("there is no section of {version}: write `## {UNRELEASED}`"));
    }
    faults
}

/// Whether the title is that of a version: `[1.2.3] - 2026-12-31`.
fn is_dated(title: &str) -> bool {
    let are_numbers = |text: &str, between: char| {
        let parts: Vec<_> = text.split(between).collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    };
    let parts = title.strip_prefix('[').and_then(|rest| rest.split_once("] - "));
    parts.is_some_and(|(version, date)| are_numbers(version, '.') && are_numbers(date, '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_has_dated_versions_and_changes_of_known_kinds() {
        let good = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-31\n\n### Added\n\n- It.\n";
        assert_eq!(faults(good, "0.2.0"), Vec::<String>::new());
        assert_eq!(faults(good, "0.3.0"), Vec::<String>::new());

        let bad =
            "## [0.2.0]\n\n- It.\n\n### New\n\n- It.\n\n## [0.1.0] - 2026-12-31\n\n## [0.1.0] - 2026-12-31\n";
        let found = faults(bad, "0.3.0");
        assert_eq!(found.len(), 5, "{found:?}");
        let beginnings = [
            "line 1: `[0.2.0]`",
            "line 3: a change of no",
            "line 5: `New`",
            "line 11: there are two",
            "there is no section of 0.3.0",
        ];
        for (fault, beginning) in found.iter().zip(beginnings) {
            assert!(fault.starts_with(beginning), "{found:?}");
        }
    }
}
