//! Tests of every key, whatever its value. Tests of the tables of other crates include this file, too.

use super::*;

#[test]
fn a_misspelt_key_is_refused_and_the_right_one_suggested() {
    let mut report = String::new();
    for key in keys() {
        let (_, name) = split(&key.path);
        let mut misspelt = name.to_owned();
        misspelt.remove(name.len() / 2);
        let error = parse_error(&document(&key.path, &misspelt, valid(&key).as_deref().unwrap_or("{}")));
        assert!(error.contains(&format!("did you mean `{name}`?")), "{error}");
        report.push_str(&format!("# {}\n{error}\n\n", key.path));
    }
    assert_golden("keys-misspelt", &report);
}

#[test]
fn every_key_changes_the_configuration() {
    for key in keys() {
        let Some(value) = valid(&key) else {
            continue;
        };
        let (_, name) = split(&key.path);
        let with = parse(&document(&key.path, name, &value)).unwrap();
        // The document sets required keys itself.
        let without = parse(&document(&key.path, "", "")).unwrap();
        assert_ne!(with, without, "{}", key.path);
    }
}

/// The errors of all these values of each key.
pub(super) fn report<V: AsRef<str>>(values: impl Fn(&KnownKey) -> Vec<V>) -> String {
    let mut report = String::new();
    for key in keys() {
        let (_, name) = split(&key.path);
        for value in values(&key) {
            let value = value.as_ref();
            let error = parse_error(&document(&key.path, name, value));
            assert!(error.contains(&format!("`{name}")) || error.contains(&format!(".{name}")), "{error}");
            report.push_str(&format!("# {} = {value}\n{error}\n\n", key.path));
        }
    }
    report
}

/// The table of a key, and its name there.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}
