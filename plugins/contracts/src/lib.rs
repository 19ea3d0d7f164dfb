//! The contracts of Weir's own extensions: names and types, shared by owners and callers.

pub mod courier;
pub mod device_info;
pub mod echo;
pub mod settings;
pub mod storage;
pub mod telemetry;
