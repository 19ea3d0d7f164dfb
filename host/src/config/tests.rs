//! What is read from files, what is refused, and with which words.

mod budget;
mod cases;
mod environment;
mod hostile;
mod keys;
mod rust;

use std::path::{Path, PathBuf};

use super::{Config, ConfigErrors};

/// Where the golden files are.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config")
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, "weir.toml", &golden())
}

fn parse_error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// Compares with the golden file of that name.
fn assert_golden(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(golden());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
