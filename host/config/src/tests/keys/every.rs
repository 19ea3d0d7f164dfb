//! Tests of every key, whatever its value. Tests of the tables of other crates include this file, too.

use super::*;

#[test]
fn a_misspelt_key_is_refused_and_the_right_one_suggested() {
    let mut messages = Messages::default();
    for key in keys() {
        let (_, name) = split(&key.path);
        let mut misspelt = name.to_owned();
        misspelt.remove(name.len() / 2);
        let (error, message) =
            refused_one(&document(&key.path, &misspelt, valid(&key).as_deref().unwrap_or("{}")));
        assert_eq!(underlined(&error), misspelt);
        let (place, suggested) =
            message.strip_prefix(&format!("unknown key `{misspelt}` ")).unwrap().split_once(": ").unwrap();
        assert_eq!(suggested, format!("did you mean `{name}`?"));
        messages.add(
            &key.path,
            &key.path,
            &error,
            format!("unknown key `KEY` {place}: did you mean `NAME`?"),
        );
    }
    assert_golden("keys-misspelt", &messages.report());
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

#[test]
fn every_key_that_a_reload_finds_changed_is_named() {
    for key in keys() {
        // A reload refuses contracts that the program does not serve.
        let Some(value) = valid(&key).filter(|_| key.path != "main.serves") else {
            continue;
        };
        let (_, name) = split(&key.path);
        let with = parse(&document(&key.path, name, &value)).unwrap();
        let without = parse(&document(&key.path, "", "")).unwrap();
        for differences in [without.differences(&with), with.differences(&without)] {
            assert!(!differences.is_empty(), "{}", key.path);
            let named = differences.iter().flat_map(|table| {
                let root = table.table.split('.').next().unwrap();
                table.keys.iter().map(move |key| format!("{root}.{}", key.key))
            });
            let expected = named_as(&key.path);
            let is_it = |named: String| {
                named == expected
                    || named.starts_with(&format!("{expected}."))
                    || expected.starts_with(&format!("{named}."))
            };
            // These add and remove extensions, and change what extensions inherit.
            let is_indirect = ["include", "extension.id", "extension.instances", "limits.NAME.inherits"]
                .contains(&&*key.path);
            assert!(is_indirect || named.clone().any(is_it), "{}: {:?}", key.path, named.collect::<Vec<_>>());
        }
        assert!(with.differences(&with).is_empty(), "{}", key.path);
    }
}

/// The key as a difference names it, as far as the operator has not chosen it. Limits of a class show in the
/// extensions that have it.
fn named_as(path: &str) -> String {
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    let rest = rest.strip_prefix("NAME.").unwrap_or(rest);
    let rest = rest.split(".NAME").next().unwrap();
    if root == "limits" { format!("extension.limits.{rest}") } else { format!("{root}.{rest}") }
}

/// The only error of a file, as it is shown and its message.
pub(super) fn refused_one(text: &str) -> (String, String) {
    let errors = parse(text).unwrap_err();
    assert_eq!(errors.iter().count(), 1, "{errors}");
    (errors.to_string(), errors.iter().next().unwrap().message().to_owned())
}

/// What a refusal of one thing underlines.
pub(super) fn underlined(error: &str) -> &str {
    let lines: Vec<_> = error.lines().collect();
    let [_, source, marks] = lines[..] else { panic!("{error}") };
    &source[marks.find('^').unwrap()..marks.trim_end().len()]
}

/// The table of a key, and its name there.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}
