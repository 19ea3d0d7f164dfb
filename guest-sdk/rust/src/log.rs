//! Lines for Main's log, under this extension's id.
//!
//! ```
//! use weir_sdk::log;
//!
//! log::info("volume changed", &[("from", &3), ("to", &5)]);
//! log::warn("the battery is low", &[]);
//! ```
//!
//! At most 4096 bytes of a message and 32 fields of 4096 bytes together are kept; of a field, 64 bytes of the
//! name and 1024 of the value. Output to stdout or stderr reaches Main's log, too, without structure.

use std::fmt::Display;

#[cfg(target_family = "wasm")]
use crate::bindings::weir::iec::log;
use crate::bindings::weir::iec::log::Level;

/// Logs a line for following one request through the code.
pub fn trace(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Trace, message, fields);
}

/// Logs a line for the developer of the extension.
pub fn debug(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Debug, message, fields);
}

/// Logs a line for the operator.
pub fn info(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Info, message, fields);
}

/// Logs that something is wrong and was dealt with.
pub fn warn(message: &str, fields: &[(&str, &dyn Display)]) {
    write(Level::Warn, message, fields);
}

/// Logs that something is wrong and was not dealt with.
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

/// Writes the line to standard error, since there is no Main. `cargo test` shows it for a failed test.
#[cfg(not(target_family = "wasm"))]
fn write(level: Level, message: &str, fields: &[(&str, &dyn Display)]) {
    let fields: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    eprintln!("{level:?} {message}{fields}");
}
