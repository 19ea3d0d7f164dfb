//! `echo@1`: answers with the bytes of the request, for tests and benchmarks.

use weir_sdk::{Contract, Operation, codec::Bytes};

/// The contract.
pub const CONTRACT: Contract = Contract::new("echo@1");

/// Answers with the bytes of the request.
pub const ECHO: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("echo");
