//! `echo@1`: answers with what it was sent, for tests and benchmarks.

use weir_sdk::{Contract, Operation, codec::Bytes};

/// The contract.
pub const CONTRACT: Contract = Contract::new("echo@1");

/// Answers with the bytes that it was sent.
pub const ECHO: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("echo");
