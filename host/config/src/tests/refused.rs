//! Golden files of what is refused. Tests of the tables of other crates include this file, too.

use std::fs;

use super::*;

#[test]
fn every_broken_file_is_refused_with_its_golden_message() {
    let mut cases = 0;
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let errors = parse_error(&fs::read_to_string(&path).unwrap());
            assert_golden(path.file_stem().unwrap().to_str().unwrap(), &errors);
            cases += 1;
        }
    }
    assert!(cases > FEWEST, "{cases}");
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
