//! Lines for Main's log, under this extension's id.
//!
//! ```
//! use weir_sdk::log;
//!
//! log::info("volume changed", &[("from", &3), ("to", &5)]);
//! log::warn("the battery is low", &[]);
//! ```
//!
//! At most 4096 bytes of a message and 32 fields of 4096 bytes together are kept, of each 64 bytes of the name and 1024 of
//! the value. What is printed to stdout or stderr ends up in Main's log, too, without its structure.

use std::fmt::Display;

#[cfg(target_family = "wasm")]
use crate::bindings::weir::iec::log;
use crate::bindings::weir::iec::log::Level;

/// For following one request through the code.
pub fn trace(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Trace, message, fields);
}

/// For whoever develops the extension.
pub fn debug(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Debug, message, fields);
}

/// For whoever operates it.
pub fn info(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Info, message, fields);
}

/// Something is wrong and was dealt with.
pub fn warn(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Warn, message, fields);
}

/// Something is wrong and was not dealt with.
pub fn error(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Error, message, fields);
}

#[cfg(target_family = "wasm")]
fn write(level: Level, message: &str, fields: &[(&str, &dyn Display)]) {
    let fields: Vec<log::Field> = fields
        .iter()
        .map(|(name, value)| log::Field { name: (*name).to_owned(), value: value.to_string() })
        .collect();
    log::write(level, message, &fields);
}

/// Where there is no Main, to stderr, which `cargo test` shows of a test that fails.
#[cfg(not(target_family = "wasm"))]
fn write(level: Level, message: &str, fields: &[(&str, &dyn Display)]) {
    let fields: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    eprintln!("{level:?} {message}{fields}");
}
