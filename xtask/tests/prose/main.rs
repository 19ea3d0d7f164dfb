//! Plain English on every page: short sentences, links that lead somewhere, and code that says its language.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod page;
mod rules;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::page::Page;

/// Beside all of `docs/`.
const PAGES: [&str; 13] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "tests/conformance/README.md",
    "guest-sdk/rust/README.md",
    "guest-sdk/c/README.md",
    "packaging/crates/README.md",
    "host/main/README.md",
    "cli/README.md",
    "cli/registry/README.md",
    "outside/peer/README.md",
    "outside/bridge-nats/README.md",
    "outside/gateway/client/README.md",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Files below a folder, by their paths from the root of the repository.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![root().join(folder)]);
    while let Some(path) = open.pop() {
        if path.is_dir() && path.file_name().unwrap() != "target" {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Fails with what breaks a rule on any page.
fn check(rule: impl Fn(&Page) -> Vec<String>) {
    let pages: Vec<_> = PAGES.map(PathBuf::from).into_iter().chain(files("docs", "md")).collect();
    assert!(pages.len() > 30, "only {} pages were found", pages.len());
    let faults: Vec<_> = pages.iter().flat_map(|path| rule(&Page::parse(path, &text(path)))).collect();
    assert!(faults.is_empty(), "{} to mend:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn sentences_are_short() {
    check(rules::sentence_lengths);
}

#[test]
fn links_lead_to_a_file_and_a_heading() {
    check(|page| rules::links(page, root()));
}

#[test]
fn blocks_of_code_say_their_language_and_parse_in_it() {
    check(rules::code_blocks);
}
