//! Environment variables for classes of limits.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use super::*;
use crate::{LIMIT_KEYS, LimitSource, Limits, environment::Environment, shape::Shape};

/// A class that inherits from a built-in one, a class that inherits from it, and an extension of each kind.
const CLASSES: &str = "
    [limits.small]
    inherits = 'min'
    memory = '2 MiB'
    [limits.a-b]
    inherits = 'small'
    message-size = '32 KiB'
    [[extension]]
    id = 'default'
    path = 'a.wasm'
    [[extension]]
    id = 'small'
    path = 'a.wasm'
    class = 'small'
    [[extension]]
    id = 'a-b'
    path = 'a.wasm'
    class = 'a-b'
    limits.stack = '128 KiB'
";

fn parse_with<N: AsRef<OsStr>>(text: &str, variables: &[(N, &str)]) -> Result<Config, ConfigErrors> {
    let variables = variables.iter().map(|(name, value)| (name.as_ref().to_owned(), OsString::from(value)));
    Loader::new().parse_with(text.to_owned(), "weir.toml", &golden(), &variables.collect())
}

fn limits(variables: &[(&str, &str)]) -> [Limits; 3] {
    let config = parse_with(CLASSES, variables).unwrap();
    let limits: Vec<_> = config.extensions.into_iter().map(|extension| extension.limits).collect();
    limits.try_into().unwrap()
}

#[test]
fn a_variable_changes_a_built_in_class_and_those_that_inherit_from_it() {
    let [default, small, a_b] =
        limits(&[("WEIR_LIMITS_MIN_STACK", "2 MiB"), ("WEIR_LIMITS_MEDIUM_STACK", "3 MiB")]);
    assert_eq!((default.stack, small.stack), (3 << 20, 2 << 20));
    // An extension's own limits come first.
    assert_eq!(a_b.stack, 128 << 10);

    let [_, small, a_b] =
        limits(&[("WEIR_LIMITS_MIN_MEMORY", "3 MiB"), ("WEIR_LIMITS_MIN_LOG_RATE", "1_0_0")]);
    // The class itself sets it.
    assert_eq!((small.memory, a_b.memory), (2 << 20, 2 << 20));
    assert_eq!((small.log_rate, a_b.log_rate), (100, 100));
}

#[test]
fn a_variable_goes_before_what_the_file_says_of_the_class() {
    let [default, small, a_b] = limits(&[
        ("WEIR_LIMITS_SMALL_MEMORY", "1048576"),
        ("WEIR_LIMITS_A_B_CPU_SHARE", "2.5%"),
        ("OTHER", "1"),
    ]);
    assert_eq!((default.memory, small.memory, a_b.memory), (33 << 19, 1 << 20, 1 << 20));
    assert_eq!((small.cpu_share, a_b.cpu_share), ("10%".parse().unwrap(), "2.5%".parse().unwrap()));
    let memory = LIMIT_KEYS.iter().find(|key| key.name == "memory").unwrap();
    let variable = LimitSource::Environment("WEIR_LIMITS_SMALL_MEMORY".to_owned());
    assert_eq!([small.source(memory), a_b.source(memory)], [variable.clone(), variable]);
    assert_eq!(default.source(memory), LimitSource::Class("medium".to_owned()));
}

#[test]
fn every_limit_of_every_class_can_be_changed_by_a_variable() {
    for class in ["min", "medium", "max", "small"] {
        for key in &LIMIT_KEYS {
            let part = |name: &str| name.to_uppercase().replace(['-', '.'], "_");
            let variable = format!("WEIR_LIMITS_{}_{}", part(class), part(key.name));
            let (value, number) = match &key.shape {
                Shape::Size(_) if key.name == "compile-memory" => ("96 MiB", 96 << 20),
                Shape::Size(_) => ("96 KiB", 96 << 10),
                Shape::Time(_) => ("1min 17s", 77_000_000_000),
                Shape::Share(_) => ("7%", 700),
                Shape::Count(range) if range.contains(&77_000_000) => ("77_000_000", 77_000_000),
                _ => ("7", 7),
            };
            // The smallest messages contradict nothing.
            let text =
                format!("[limits.small]\n[[extension]]\nid = 'a'\npath = 'a.wasm'\nclass = '{class}'\n");
            let least = format!("WEIR_LIMITS_{}_MESSAGE_SIZE", part(class));
            let mut variables = vec![(&*variable, value)];
            variables.extend((variable != least).then_some((&*least, "1 KiB")));
            let config = parse_with(&text, &variables).unwrap();
            let limits = &config.extensions[0].limits;
            assert_eq!((key.get)(limits), Some(number), "{variable}");
            assert_eq!(limits.source(key), LimitSource::Environment(variable.clone()));
        }
    }
}

#[test]
fn a_variable_that_is_no_limit_is_refused() {
    let mut report = String::new();
    for (name, value) in [
        ("WEIR_LIMITS_MEDUIM_STACK", "2 MiB"),
        ("WEIR_LIMITS_HUGE_MEMORY", "2 MiB"),
        ("WEIR_LIMITS_MEDIUM_STAK", "2 MiB"),
        ("WEIR_LIMITS_MEDIUM_INHERITS", "min"),
        ("WEIR_LIMITS_SMALL_CPU-SHARE", "5%"),
        ("WEIR_LIMITS_min_memory", "2 MiB"),
        ("WEIR_LIMITS_A-B_MEMORY", "2 MiB"),
        ("WEIR_LIMITS_SMAL_MEMROY", "2 MiB"),
        ("WEIR_LIMITS_INBOX_BYTES", "2 MiB"),
        ("WEIR_LIMITS_MEMORY", "2 MiB"),
        ("WEIR_LIMITS_MEDIUM_", "2 MiB"),
        ("WEIR_LIMITS_MEDIUM", "2 MiB"),
        ("WEIR_LIMITS__MEMORY", "2 MiB"),
        ("WEIR_LIMITS_\u{1b}[31m", "2 MiB"),
        ("WEIR_LIMITS_", "2 MiB"),
        ("WEIR_LIMITS", "2 MiB"),
        ("WEIR_LIMIT_SMALL_MEMORY", "2 MiB"),
        ("WEIR_LIMITMEDUIM_STACK", "2 MiB"),
        ("WEIR_LIMITED", "yes"),
    ] {
        let error = parse_with(CLASSES, &[(name, value)]).unwrap_err();
        let keys: Vec<_> = error.iter().map(|error| error.key()).collect();
        assert_eq!(keys, [name.replace('\u{1b}', "\\u{1b}")]);
        report.push_str(&format!("# {name}={value}\n{error}\n\n").replace('\u{1b}', "ESC"));
    }
    let lossy = OsStr::from_bytes(b"WEIR_LIMITS_MIN_MEM\xffORY");
    report.push_str(&format!("# not UTF-8\n{}\n\n", parse_with(CLASSES, &[(lossy, "2 MiB")]).unwrap_err()));
    let twice = [("WEIR_LIMITS_MIN_MEMORY", "2 MiB"), ("WEIR_LIMITS_MIN_MEMORY", "3 MiB")];
    report.push_str(&format!("# twice\n{}\n", parse_with(CLASSES, &twice).unwrap_err()));
    assert_golden("variables-unknown", &report);
}

#[test]
fn a_variable_that_could_mean_two_limits_is_refused_and_both_are_named() {
    let class = |name: &str| format!("[limits.{name}]\n");
    let variable = [("WEIR_LIMITS_BATCH_COMPILE_MEMORY", "96 MiB")];
    parse_with(&class("batch"), &variable).unwrap();
    parse_with(&class("batch-compile"), &variable).unwrap();
    let error = parse_with(&(class("batch") + &class("batch-compile")), &variable).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`WEIR_LIMITS_BATCH_COMPILE_MEMORY` could be `memory` of the class `batch-compile` or \
         `compile-memory` of the class `batch`: give one of these classes another name"
    );
}

#[test]
fn a_variable_with_a_value_that_the_limit_cannot_have_is_refused() {
    let mut messages = Messages::default();
    for key in &LIMIT_KEYS {
        let variable = format!("WEIR_LIMITS_MAX_{}", key.name.to_uppercase().replace(['-', '.'], "_"));
        let (low, high);
        let mut values = vec!["", " ", "-1", "nan", "much", "\u{1b}[2J"];
        match &key.shape {
            Shape::Count(range) => {
                (low, high) = ((range.start() - 1).to_string(), (range.end() + 1).to_string());
                values.extend([
                    &low,
                    &high,
                    "99999999999999999999",
                    " 5000",
                    "5000 ",
                    "_5000",
                    "5__000",
                    "+5000",
                    "5e3",
                    "0x1000",
                ]);
            }
            Shape::Size(range) => {
                (low, high) = (written(range.start() - 1), written(range.end() + 1));
                values.extend([
                    &low,
                    &high,
                    low.trim_end_matches(" B"),
                    high.trim_end_matches(" B"),
                    "0",
                    "\"1 MiB\"",
                    "'1 MiB'",
                    " 1 MiB",
                    "1 MiB ",
                    "1 mebi",
                    "99999999999999999999 GiB",
                    "0x100000",
                ]);
            }
            Shape::Time(_) => values.extend([
                "5",
                "0s",
                "999us 999ns",
                "1day 1ns",
                "25h",
                " 5s",
                "5s ",
                "'5s'",
                "99999999999999999999s",
            ]),
            Shape::Share(_) => values.extend(["5", "0.05", "0%", "0.09%", "101%", " 5%", "5% "]),
            shape => panic!("{shape}"),
        }
        for value in values {
            let error = parse_with("", &[(&variable, value)]).unwrap_err();
            let error = error.to_string();
            let shape = error.replace(&variable, "VARIABLE").replace(&key.shape.to_string(), "SHAPE");
            let shape = shape.replace(&format!("`{}`", value.escape_default()), "`VALUE`");
            let case = format!("{variable}={value}").replace('\u{1b}', "ESC");
            messages.add(key.name, &case, &error, shape);
        }
    }
    let value = OsStr::from_bytes(b"2 MiB\xff").to_owned();
    let environment: Environment = [("WEIR_LIMITS_MIN_STACK".into(), value)].into_iter().collect();
    let error = Loader::new().parse_with(String::new(), "weir.toml", &golden(), &environment).unwrap_err();
    let report = format!("{}# not UTF-8\n{error}\n", messages.report());
    assert_golden("variables-out-of-range", &report);
}

#[test]
fn a_variable_that_contradicts_another_limit_is_named() {
    let mut report = String::new();
    for variables in [
        // Within a built-in class, and with the file's values for another.
        &[("WEIR_LIMITS_MEDIUM_MESSAGE_SIZE", "2 MiB")] as &[_],
        &[("WEIR_LIMITS_A_B_INBOX_BYTES", "16 KiB")],
        // Two variables, one for a parent class.
        &[("WEIR_LIMITS_MIN_MESSAGE_SIZE", "256 KiB"), ("WEIR_LIMITS_SMALL_MEMORY", "128 KiB")],
        // With the file's values for inheriting classes.
        &[("WEIR_LIMITS_MIN_INBOX_BYTES", "16 MiB"), ("WEIR_LIMITS_MIN_MESSAGE_SIZE", "4 MiB")],
        &[("WEIR_LIMITS_MEDIUM_FUEL_PER_MESSAGE", "1000000")],
    ] {
        let errors = parse_with(CLASSES, variables).unwrap_err();
        report.push_str(&format!("# {variables:?}\n{errors}\n\n"));
    }
    assert_golden("variables-contradicting", &report);
}

#[test]
fn a_class_that_a_broken_file_may_define_is_not_reported_missing() {
    let errors =
        parse_with("[limits.small]\nmemroy = 1\n[", &[("WEIR_LIMITS_SMALL_MEMORY", "1 MiB")]).unwrap_err();
    assert!(!errors.to_string().contains("WEIR_LIMITS_"), "{errors}");

    let errors = parse_with("[", &[("WEIR_LIMIT_SMALL_MEMORY", "1 MiB")]).unwrap_err();
    assert!(errors.to_string().contains("`WEIR_LIMIT_SMALL_MEMORY` is not a variable of Weir"), "{errors}");
}
