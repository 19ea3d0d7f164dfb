//! The contracts of Weir's own extensions: names and types, shared by those who fulfil them and those
//! who call them.

pub mod device_info;
pub mod echo;
pub mod settings;
pub mod storage;
pub mod telemetry;
