//! On the SDK: `slow` waits for another contract, `quick` answers at once.

use std::process::ExitCode;

use weir_sdk::{Context, Contract, Error, Extension, Operation, codec::Bytes};

const CONTRACT: Contract = Contract::new("waiter@1");
const SLOW: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("slow");
const QUICK: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("quick");

const GATE: Contract = Contract::new("gate@1");
const PASS: Operation<Vec<u8>, Vec<u8>, Bytes> = GATE.bytes("pass");

weir_sdk::manifest! { id: "waiter", fulfills: &[CONTRACT], requires: &[GATE] }

fn main() -> ExitCode {
    Extension::new(MANIFEST, ())
        .on(SLOW, async |(), context: &Context, payload| context.call(PASS, &payload).await)
        .on(QUICK, async |(), _: &Context, payload| Ok::<_, Error>(payload))
        .run()
}
