//! Key-value stores: programs that know only the standard, extensions that ask by `store@1`, and the operator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod hostile;
mod standard;
mod support;
