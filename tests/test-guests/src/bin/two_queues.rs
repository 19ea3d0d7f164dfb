//! Works on two queues, two jobs of each at once. A job of `slow` takes a day, one of `quick` no time.

use std::{process::ExitCode, time::Duration};

use weir_sdk::{Context, Error, Extension, Queue, codec::Bytes};

const SLOW: Queue<Vec<u8>, Bytes> = Queue::bytes("slow");
const QUICK: Queue<Vec<u8>, Bytes> = Queue::bytes("quick");

weir_sdk::manifest! { id: "two-queues", takes: &[SLOW.name(), QUICK.name()] }

fn main() -> ExitCode {
    Extension::new(MANIFEST, ())
        .on_jobs(SLOW, 2, async |(), ctx: &Context, _: Vec<u8>| {
            ctx.sleep(Duration::from_secs(86_400)).await;
            Ok::<_, Error>(())
        })
        .on_jobs(QUICK, 2, async |(), _: &Context, _: Vec<u8>| Ok::<_, Error>(()))
        .run()
}
