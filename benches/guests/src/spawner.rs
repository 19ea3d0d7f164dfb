//! An extension that spawns tasks on the SDK's executor, and waits for them.

use std::process::ExitCode;

use weir_sdk::{Context, Contract, Error, Extension, Operation};

const CONTRACT: Contract = Contract::new("spawner@1");

/// Arguments: rounds, and tasks of a round. Waits for each round, and answers the number of ended tasks.
const SPAWN: Operation<(u32, u32), u32> = CONTRACT.operation("spawn");

weir_sdk::manifest! { id: "spawner", fulfills: &[CONTRACT] }

fn main() -> ExitCode {
    Extension::new(MANIFEST, ())
        .on(SPAWN, async |(), ctx: &Context, (times, at_once)| spawn(ctx, times, at_once).await)
        .run()
}

async fn spawn(ctx: &Context, times: u32, at_once: u32) -> Result<u32, Error> {
    let mut ended = 0;
    for _ in 0..times {
        let spawned: Vec<_> = (0..at_once).map(|_| ctx.spawn(async { 1 })).collect();
        for task in spawned {
            ended += task.await;
        }
    }
    Ok(ended)
}
