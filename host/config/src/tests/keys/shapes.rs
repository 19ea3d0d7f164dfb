//! Tests of every key, by the shape of its value. Tests of the gateway include this file, too.

use super::{
    every::{refused_one, split, underlined},
    *,
};

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    let report = report(|key| match &key.shape {
        Shape::Flag => vec!["1", "\"yes\""],
        Shape::Count(_) => vec!["\"5\"", "1.5", "nan"],
        Shape::CountOr(..) => vec!["1.5", "[]"],
        Shape::Size(_) => vec!["true", "1.5", "nan"],
        Shape::Time(_) => vec!["5", "[]"],
        Shape::Share(_) => vec!["5", "0.05", "nan"],
        Shape::Text(_) | Shape::Choice(_) => vec!["5"],
        Shape::Texts(_) => vec!["\"a\"", "[5]"],
        Shape::TextsAndTables(_) => vec!["\"a\"", "{}", "[5]", "[[]]"],
        Shape::Values | Shape::ValuesAndTables => vec!["\"a\"", "{ a = [] }"],
        Shape::Table => vec!["5", "[]"],
        Shape::Tables => vec!["5", "{}", "[5]"],
        Shape::Named | Shape::NamedTexts(_) | Shape::NamedTextsAndTables(_) => vec!["5", "[]", "{ a = 5 }"],
    });
    assert_golden("keys-wrong-type", &report);
}

#[test]
fn a_value_out_of_range_is_refused() {
    let report = report(|key| match &key.shape {
        Shape::Count(range) => {
            let below = range.start().checked_sub(1);
            let around = below.into_iter().chain([range.end() + 1]).map(|number| number.to_string());
            ["-1".to_owned()].into_iter().chain(around).chain(["99999999999999999999".to_owned()]).collect()
        }
        Shape::CountOr(..) => vec!["0".to_owned(), "65".to_owned(), "\"many\"".to_owned()],
        Shape::Size(range) => {
            let below = range.start().checked_sub(1);
            let around = || below.into_iter().chain([range.end() + 1]);
            let zero = below.map(|_| 0);
            let numbers = zero.into_iter().chain(around()).map(|number| number.to_string());
            let sizes = around().map(|size| format!("\"{}\"", written(size)));
            let others = ["-1", "\"99999999999999999999 GiB\"", "\"much\""].map(ToOwned::to_owned);
            numbers.chain(sizes).chain(others).collect()
        }
        Shape::Time(range) => vec![
            "\"0s\"".to_owned(),
            "\"-1s\"".to_owned(),
            "\"999us 999ns\"".to_owned(),
            format!("\"{} 1ns\"", key.shape.text(range.end().as_nanos().try_into().unwrap())),
            format!("\"{}h\"", range.end().as_secs() / 3600 + 1),
            "\"99999999999999999999s\"".to_owned(),
            "\"soon\"".to_owned(),
        ],
        Shape::Share(range) => ["0%", "-5%", "0.09%", "100.01%", "99999999999999999999%", "nan%", "5"]
            .into_iter()
            .filter(|share| *range.start() > 0 || !["0%", "0.09%"].contains(share))
            .map(|share| format!("\"{share}\""))
            .collect(),
        Shape::Text(_) | Shape::Choice(_) => vec![r#""\u0000""#.to_owned(), "\"\"".to_owned()],
        Shape::Texts(_) | Shape::TextsAndTables(_) => vec![r#"["\u0000"]"#.to_owned()],
        Shape::Values | Shape::ValuesAndTables => {
            vec!["{ a = nan }".to_owned(), "{ a = 99999999999999999999 }".to_owned()]
        }
        // Every value of the type is valid, or the keys within are tested.
        Shape::Flag | Shape::Table | Shape::Tables | Shape::Named => Vec::new(),
        Shape::NamedTexts(_) => vec!["{ a = [] }".to_owned()],
        Shape::NamedTextsAndTables(_) => vec![r#"{ a = "\u0000" }"#.to_owned()],
    });
    assert_golden("keys-out-of-range", &report);
}

/// The messages about all these values of each key. Each underlines the value, or what is wrong in it.
fn report<V: AsRef<str>>(values: impl Fn(&KnownKey) -> Vec<V>) -> String {
    let mut messages = Messages::default();
    for key in keys() {
        let (_, name) = split(&key.path);
        for value in values(&key) {
            let value = value.as_ref();
            let (error, message) = refused_one(&document(&key.path, name, value));
            let wrong = underlined(&error);
            let is_within = value.starts_with(['[', '{']) && value.contains(wrong);
            assert!(wrong == value || is_within, "{error}");
            let (before, rest) = message.split_once('`').unwrap();
            let (at, rest) = rest.split_once('`').unwrap();
            assert!(
                at.ends_with(name) || at.contains(&format!("{name}[")) || at.contains(&format!("{name}.")),
                "{error}"
            );
            let shape = rest.replace(&key.shape.to_string(), "SHAPE");
            let shape = shape.replace(&format!("`{}`", wrong.trim_matches('"')), "`VALUE`");
            messages.add(at, &format!("{} = {value}", key.path), &error, format!("{before}`KEY`{shape}"));
        }
    }
    messages.report()
}
