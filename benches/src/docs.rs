//! Figures in a page: between two marks, whatever stood there before.

use std::{fs, path::Path, time::SystemTime};

use anyhow::{Context, Result};

use crate::{figure::Figure, machine::Machine, scale::Scale, table};

/// Replaces what stands between `<!-- SCENARIO -->` and `<!-- /SCENARIO -->`.
pub(crate) fn write(
    page: &Path,
    scenario: &str,
    figures: &[Figure],
    scale: Scale,
    machine: &Machine,
) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read `{}`", page.display()))?;
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let date = now.split('T').next().unwrap_or_default();
    let section = format!(
        "\nMeasured on {date}, {} run, on {machine}.\n\n{}\n",
        scale.name(),
        table::markdown(figures)
    );
    let text = replaced(&text, scenario, &section)
        .with_context(|| format!("`{}` has no marks for `{scenario}`", page.display()))?;
    fs::write(page, text).with_context(|| format!("cannot write `{}`", page.display()))
}

fn replaced(text: &str, scenario: &str, section: &str) -> Option<String> {
    let (start, end) = (format!("<!-- {scenario} -->\n"), format!("<!-- /{scenario} -->"));
    let (before, rest) = text.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{section}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n";
        let x = replaced(page, "x", "new\n").unwrap();
        assert_eq!(x, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n");
        assert_eq!(replaced(&x, "x", "old\n").unwrap(), page);
        assert!(replaced(page, "z", "new\n").is_none());
    }
}
