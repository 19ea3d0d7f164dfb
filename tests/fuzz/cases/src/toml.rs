//! Bytes as the operator's files.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use weir_host::config::ConfigErrors;

use crate::scratch;

/// Time to read and check a few files. A quadratic mistake takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads the input as the operator's files, split at its NULs. The first is the main file, which includes the
/// others from `conf.d`.
///
/// The result is a configuration that passes its own check, or a list of errors. Errors are fit for a
/// terminal and name a file, and a line and column that it has.
pub fn toml(data: &[u8]) {
    let dir = scratch();
    let conf_d = dir.path().join("conf.d");
    fs::create_dir(&conf_d).unwrap();
    let main = dir.path().join("weir.toml");
    for (number, text) in data.split(|byte| *byte == 0).enumerate() {
        let path = match number {
            0 => main.clone(),
            _ => conf_d.join(format!("{number}.toml")),
        };
        fs::write(path, text).unwrap();
    }

    let start = Instant::now();
    let loaded = weir_host::load(&main);
    assert!(start.elapsed() < PATIENCE, "it took {:?}", start.elapsed());
    match loaded {
        Ok(config) => {
            config.check().unwrap();
            config.warnings().iter().for_each(|warning| check_text(warning));
        }
        Err(errors) => check_errors(&errors, dir.path()),
    }
}

fn check_errors(errors: &ConfigErrors, dir: &Path) {
    assert!(errors.iter().count() > 0, "an error without a reason");
    check_text(&errors.to_string());
    for error in errors.iter() {
        let (Some(file), Some((line, column))) = (error.file(), error.line_and_column()) else {
            // An unreadable file has no lines.
            assert!(error.message().starts_with("cannot read"), "no place: {error}");
            continue;
        };
        if !Path::new(file).starts_with(dir) {
            // Included by its absolute path.
            continue;
        }
        let text = fs::read_to_string(file).unwrap();
        let columns = text.split('\n').nth(line - 1).map(|line| line.chars().count() + 1);
        assert!(columns.is_some_and(|columns| (1..=columns).contains(&column)), "no such place: {error}");
    }
}

fn check_text(text: &str) {
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "not fit for a terminal: {text:?}");
}
