//! Files that are read or refused, and the messages.

mod cases;
mod environment;
mod hostile;
mod keys;
mod main_config;
mod peers;
mod queues;
mod refused;
mod restart;
mod rust;

use std::path::{Path, PathBuf};

use self::refused::{Messages, assert_golden, broken_files, parse_error, refused};
use super::{Config, ConfigErrors, Loader, environment::Environment, shape::Shape};

/// Fewer than there are broken files.
const FEWEST: usize = 20;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/config")
}

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    parse_in(text, &golden())
}

/// [`Loader::parse`] without the environment of the tests.
pub(crate) fn parse_in(text: &str, dir: &Path) -> Result<Config, ConfigErrors> {
    Loader::new().parse_with(text.to_owned(), "weir.toml", dir, &Environment::default())
}

/// [`Loader::load`] without the environment of the tests.
fn load(path: &Path) -> Result<Config, ConfigErrors> {
    Loader::new().load_with(path, &Environment::default(), None)
}

fn written(size: u64) -> String {
    let shape = Shape::Size(0..=u64::MAX);
    let text = shape.text(size);
    assert_eq!(shape.number_in(&text), Some(size), "{text}");
    text
}
