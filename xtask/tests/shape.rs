//! The shape that a newcomer relies on: small files, one meaning for each name, and a page that names every
//! module.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Lines of a source file written by hand.
const LINES_MAX: usize = 500;

/// Written by `wit-bindgen`, and by `weir generate`.
const GENERATED: [&str; 2] = ["guest-sdk/rust/src/bindings.rs", "cli/generate/tests/golden"];

/// Types of contracts, as constants and at run time. The words are those of the configuration and of the bus, too.
const OWN_WORDS: [&str; 2] = ["host/openrpc", "host/names/src/shape.rs"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every Rust file below a folder, by its path from the root of the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![root().join(folder)]);
    while let Some(path) = open.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if name.ends_with(".rs") {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_hold() {
    let is_ours = |path: &PathBuf| !GENERATED.iter().any(|generated| path.starts_with(generated));
    let files: Vec<_> = sources("").into_iter().filter(is_ours).collect();
    assert!(files.len() > 300, "only {} files were found", files.len());
    let lengths = files.iter().map(|path| (path, text(path).lines().count()));
    let long: Vec<_> = lengths.filter(|(_, lines)| *lines > LINES_MAX).collect();
    assert!(long.is_empty(), "over {LINES_MAX} lines: {long:?}");
}

#[test]
fn no_two_public_types_of_the_host_have_one_name() {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let is_test = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "tests");
    for path in sources("host")
        .into_iter()
        .filter(|path| !is_test(path) && !OWN_WORDS.iter().any(|own| path.starts_with(own)))
    {
        for line in text(&path).lines() {
            let mut words =
                line.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
            if words.next() == Some("pub")
                && line.trim_start().starts_with("pub ")
                && matches!(words.next(), Some("struct" | "enum" | "union" | "trait" | "type"))
                && let Some(name) = words.next()
            {
                found.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    assert!(found.len() > 150, "only {} public types were found", found.len());
    let twice: Vec<_> = found.into_iter().filter(|(_, paths)| paths.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn unsafe_code_stands_where_the_promises_say() {
    // A C interface, what guests are made of, and what only measures or tests.
    const OTHERS: [&str; 6] =
        ["benches", "capi", "guest-sdk", "host/main/tests/confined", "tests/test-guests", "xtask"];
    let is_in = |path: &Path| !OTHERS.iter().any(|other| path.starts_with(other));
    let files = sources("").into_iter().filter(|path| is_in(path));
    let unsafe_ones: BTreeSet<_> = files.filter(|path| text(path).contains("unsafe_code")).collect();
    let promises = text(Path::new("docs/security.md"));
    let row = promises.lines().find(|line| line.contains("**Unsafe code stands in")).unwrap();
    let promise = row.split('|').nth(1).unwrap();
    let named: BTreeSet<_> =
        promise.split('`').filter(|word| word.ends_with(".rs")).map(PathBuf::from).collect();
    assert_eq!(unsafe_ones, named);
}

/// Clients in source text: parts of what is generated.
const TEMPLATES: &str = "cli/generate/src/rust/runtime";

#[test]
fn every_module_says_first_what_it_holds() {
    let is_module = |path: &PathBuf| {
        // Below the folder at the top, which may be `tests`.
        let mut parts = path.iter().skip(1);
        parts.any(|part| part == "src") && !parts.any(|part| part == "tests" || part == "tests.rs")
    };
    let is_said = |path: &PathBuf| ["//! ", "#![doc"].iter().any(|first| text(path).starts_with(first));
    let modules = sources("").into_iter().filter(is_module);
    let is_ours = |path: &PathBuf| !GENERATED.iter().chain([&TEMPLATES]).any(|other| path.starts_with(other));
    let silent: Vec<_> = modules.filter(|path| is_ours(path) && !is_said(path)).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn the_map_names_files_that_are_there() {
    let stories = fs::read_dir(root().join("docs/internals")).unwrap().map(|entry| entry.unwrap().path());
    let mut named = 0;
    for page in stories.chain([root().join("ARCHITECTURE.md")]) {
        let page_text = fs::read_to_string(&page).unwrap();
        // Every second piece stands in backticks.
        for path in
            page_text.split('`').skip(1).step_by(2).filter(|word| word.contains('/') && !word.contains(' '))
        {
            let is_there = ["", "host"].iter().any(|from| root().join(from).join(path).exists());
            assert!(is_there, "{}: `{path}`", page.display());
            named += 1;
        }
    }
    assert!(named > 100, "only {named} files were found");
}
