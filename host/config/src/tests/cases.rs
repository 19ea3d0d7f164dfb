//! Handwritten files and their results.

use std::{fs, path::Path};

use super::*;
use crate::{Difference, ExtensionConfig, MainConfig};

#[test]
fn a_file_with_five_mistakes_reports_all_five_in_their_order() {
    let files = fs::read_to_string(golden().join("broken-files.txt")).unwrap();
    let errors = parse(broken_files(&files)["five-mistakes.toml"]).unwrap_err();
    let locations: Vec<_> = errors.iter().map(|error| error.line_and_column().unwrap()).collect();
    assert_eq!(locations, [(2, 19), (6, 1), (11, 9), (15, 6), (17, 13)]);
    let keys: Vec<_> = errors.iter().map(|error| error.key()).collect();
    assert_eq!(
        keys,
        [
            "main.request-timeout",
            "limits.small.memroy",
            "extension[storage].class",
            "extension[storage].id",
            "extension[storage].autostart",
        ]
    );
}

#[test]
fn of_many_mistakes_twenty_are_shown_and_the_others_counted() {
    let keys: String = (0..27).map(|number| format!("key{number} = {number}\n")).collect();
    let errors = parse(&format!("[main]\n{keys}")).unwrap_err();
    let lines: Vec<_> = errors.iter().map(|error| error.line_and_column().unwrap().0).collect();
    assert_eq!(lines, (2..22).collect::<Vec<_>>());
    assert!(errors.to_string().ends_with("\nand 7 more"), "{errors}");
}

#[test]
fn a_file_and_those_that_it_includes_make_one_configuration() {
    let dir = golden().join("valid");
    let config = load(&dir.join("weir.toml")).unwrap();
    let mut told = String::new();
    let mut tell = |table: &str, keys: Vec<Difference>| {
        told.push_str(&format!("[{table}]\n"));
        for Difference { key, after, .. } in keys {
            told.push_str(&format!("{key} = {}\n", after.unwrap_or_default()));
        }
    };
    tell("main", MainConfig::default().differences(&config.main));
    for extension in &config.extensions {
        let new = ExtensionConfig::new(extension.id.clone(), "");
        tell(&format!("extension.{}", extension.id), new.differences(extension));
    }
    for table in Config::default().table_differences(&config) {
        tell(&table.table, table.keys);
    }
    assert_golden("valid", &told.replace(dir.to_str().unwrap(), "DIR"));
}

#[test]
fn a_configuration_remembers_the_file_that_was_loaded() {
    let file = golden().join("valid/weir.toml");
    assert_eq!(load(&file).unwrap().file().unwrap().path(), file);
    // The tests' directory is the crate.
    assert_eq!(load(Path::new("tests/golden/config/valid/weir.toml")).unwrap().file().unwrap().path(), file);
    assert_eq!(parse("").unwrap().file(), None);
    assert_eq!(Config::default().file(), None);
}

#[test]
fn a_text_without_a_directory_makes_a_configuration_that_can_run() {
    let text = "[[extension]]\nid = 'a'\npath = 'a.wasm'";
    parse_in(text, Path::new("")).unwrap().check().unwrap();
}

#[test]
fn an_unmet_want_is_a_warning() {
    let config = load(&golden().join("valid/weir.toml")).unwrap();
    assert_eq!(
        config.warnings(),
        [
            "`telemetry` wants `nobody@1`, but no extension or peer fulfills it and `main.serves` does not list it"
        ]
    );
}

#[test]
fn signatures_that_no_key_can_make_are_a_warning() {
    let warnings = |text: &str| parse(text).unwrap().warnings();
    let text = "[main]\nrequire-signature = true\n";
    let warning =
        "no component can run: `main.require-signature` is on, and `main.trusted-keys` lists no key";
    assert_eq!(warnings(text), [warning]);
    let key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    assert_eq!(warnings(&format!("{text}trusted-keys = ['{key}']")), [""; 0]);
}

#[test]
fn an_empty_file_is_a_main_without_extensions() {
    let config = parse("").unwrap();
    assert!(config.extensions.is_empty());
    assert_eq!(config.main.plugin_dir.as_deref(), Some(&*golden()));
}

#[test]
fn a_main_file_that_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path| load(path).unwrap_err().to_string();
    let missing = dir.path().join("missing.toml");
    assert_eq!(
        refused(&missing),
        format!("cannot read `{}`: No such file or directory (os error 2)", missing.display())
    );
    assert_eq!(
        refused(dir.path()),
        format!("cannot read `{}`: it is not a regular file", dir.path().display())
    );
    let binary = dir.path().join("binary.toml");
    fs::write(&binary, [0xff, 0xfe]).unwrap();
    assert_eq!(refused(&binary), format!("cannot read `{}`: it is not UTF-8", binary.display()));
}

#[test]
fn a_pattern_that_matches_too_many_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..65 {
        fs::write(dir.path().join(format!("{number:02}.toml")), "").unwrap();
    }
    let errors = parse_in("include = ['*.toml']", dir.path()).unwrap_err();
    assert!(errors.to_string().contains("at most 64 can be included"), "{errors}");
}
