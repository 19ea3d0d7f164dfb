//! Pages that readers have outside the repository, and pages that send readers to registries.

use std::{collections::BTreeSet, path::Path, process::Command};

use anyhow::Result;
use pulldown_cmark::{Event, Parser, Tag};

use super::{NAMES, Names};
use crate::{
    files,
    run::{output, root},
};

/// Commands that fetch a package from a registry.
const FETCH: [&str; 6] =
    ["cargo add ", "cargo install ", "pip install ", "npm install ", "go get ", "go install "];

/// Stands on a line that names a clone.
const CLONE: &str = "/path/to/weir";

/// The page that shows names to people.
const PAGE: &str = "docs/releasing.md";

/// Names that the page has and the table has not, and, while nothing is published, lines that tell a reader to fetch one.
pub(super) fn faults(names: &Names) -> Result<Vec<String>> {
    let page = files::read(PAGE)?;
    // Every second piece stands in backticks.
    let words = page.split('`').skip(1).step_by(2).filter(|word| word.starts_with("weir-"));
    let mut faults: Vec<_> = words
        .filter(|word| !all(names).any(|name| name == *word))
        .map(|word| format!("{PAGE}: `{word}` is not in `{NAMES}`: correct the page"))
        .collect();
    if names.published {
        return Ok(faults);
    }
    // In a container the checkout may belong to another user.
    let list = ["-c", "safe.directory=*", "ls-files", "*.md", "*.yml"];
    let listed = output(Command::new("git").args(list).current_dir(root()?))?;
    for page in listed.lines().filter(|page| Path::new(page).exists()) {
        for (line, number) in files::read(page)?.lines().zip(1..) {
            if let Some(name) = fetched(line, names) {
                faults.push(format!("{page}: line {number} fetches `{name}`, which is not published: name a clone, as in `{CLONE}`"));
            }
        }
    }
    Ok(faults)
}

/// The name that a line tells to fetch from a registry.
fn fetched<'n>(line: &str, names: &'n Names) -> Option<&'n str> {
    if line.contains(CLONE) {
        return None;
    }
    let is_command = FETCH.iter().any(|command| line.contains(command));
    all(names).find(|name| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && !"-_./".contains(c));
        let is_required = line.strip_prefix(name).is_some_and(|rest| rest.starts_with(" = \""));
        is_required || is_command && words.any(|word| word == *name)
    })
}

fn all(names: &Names) -> impl Iterator<Item = &str> {
    let registries = [&names.crates, &names.npm, &names.pypi, &names.go];
    registries.into_iter().flat_map(|names| names.keys()).map(String::as_str)
}

/// Links of a page that are neither whole addresses nor files beside it.
pub(super) fn links_that_end_outside(page: &str, files: &BTreeSet<String>) -> Vec<String> {
    let links = Parser::new(page).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some(dest_url.into_string())
        }
        _ => None,
    });
    links.filter(|link| !link.contains("://") && !link.starts_with('#') && !files.contains(link)).collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::PathBuf};

    use super::*;

    #[test]
    fn a_line_that_fetches_one_of_our_names_is_found() {
        let of = |name: &str| BTreeMap::from([(name.to_owned(), PathBuf::from("folder"))]);
        let names = Names {
            published: false,
            crates: of("weir-sdk"),
            npm: of("weir-client"),
            pypi: BTreeMap::new(),
            go: of("example.org/weir/go"),
        };
        for line in [
            "weir-sdk = \"0.1\"",
            "cargo add weir-sdk",
            "- run: cargo install --locked weir-sdk",
            "npm install --save weir-client@1 ws",
            "go get example.org/weir/go@v1.0.0",
        ] {
            assert!(fetched(line, &names).is_some(), "{line}");
        }
        for line in [
            "weir-sdk = { path = \"/path/to/weir/guest-sdk/rust\" }",
            "cargo add weir-sdk --path /path/to/weir/guest-sdk/rust",
            "cargo install weir-sdk-of-others",
            "The crate `weir-sdk` has it.",
        ] {
            assert_eq!(fetched(line, &names), None, "{line}");
        }
    }

    #[test]
    fn links_of_a_package_are_whole_or_name_its_files() {
        let files = BTreeSet::from(["weir.d.ts".to_owned()]);
        let page = "# A\n[a](https://weir.example/) [b](weir.d.ts) [c](#a) [d](../docs/apps.md) ![e](f.png)";
        assert_eq!(links_that_end_outside(page, &files), ["../docs/apps.md", "f.png"]);
    }
}
