//! On the SDK: `updated@1` answers `work` with the name of its version. What the version does is in its bytes, where a
//! test writes it, so that each has a hash of its own:
//!
//! | name | what it does |
//! | --- | --- |
//! | `good…` | it answers after a millisecond |
//! | `start` | it ends before it is ready |
//! | `fiftieth` | it traps at its fiftieth request |
//! | `errors` | it answers each fifth request with an error |
//! | `slow` | it takes three hundred times as long |
//! | `leak` | it keeps 64 KiB of each request |
//! | `again` | it starts once, and traps at its next start |
//! | `data` | it writes a file in `/data`, and traps when it reads that at a request |

use std::{fs, hint::black_box, path::Path, process::ExitCode, sync::Mutex};

use test_guests::VERSION;
use wasip2::clocks::monotonic_clock::subscribe_duration;
use weir_sdk::{Context, Contract, Error, Extension, Operation, codec::Bytes};

const CONTRACT: Contract = Contract::new("updated@1");
const WORK: Operation<Vec<u8>, Vec<u8>, Bytes> = CONTRACT.bytes("work");

const LEFT: &str = "/data/left";

weir_sdk::manifest! { id: "updated", version: "1.0.0", data_since: Some("1.0.0"), fulfills: &[CONTRACT] }

#[derive(Default)]
struct Done {
    requests: Mutex<u64>,
    kept: Mutex<Vec<Vec<u8>>>,
}

fn main() -> ExitCode {
    let name = name();
    match &*name {
        "start" => return ExitCode::FAILURE,
        "again" if Path::new(LEFT).exists() => panic!("it finds what it has left"),
        "again" => fs::write(LEFT, "").unwrap_or_else(|error| panic!("{error}")),
        _ => {}
    }
    Extension::new(MANIFEST, Done::default())
        .on(WORK, async move |done: &Done, _: &Context, _| work(&name, done))
        .run()
}

fn name() -> String {
    // Else the compiler would decide here, before the test writes the name.
    let bytes = black_box(&VERSION).iter().skip_while(|byte| **byte != b':').skip(1);
    let name = bytes.take_while(|byte| byte.is_ascii_alphanumeric()).copied().collect();
    String::from_utf8(name).unwrap_or_default()
}

fn work(name: &str, done: &Done) -> Result<Vec<u8>, Error> {
    let number = {
        let mut requests = done.requests.lock().map_err(|error| Error::handler("lock", error))?;
        *requests += 1;
        *requests
    };
    let pause = if name == "slow" { 300 } else { 1 };
    subscribe_duration(pause * 1_000_000).block();
    match name {
        "fiftieth" if number == 50 => panic!("it is the fiftieth request"),
        "errors" if number.is_multiple_of(5) => return Err(Error::handler("fifth", number)),
        "leak" => {
            let mut kept = done.kept.lock().map_err(|error| Error::handler("lock", error))?;
            kept.push(vec![1; 65_536]);
        }
        "data" if Path::new(LEFT).exists() => panic!("it cannot read what it has written"),
        "data" => fs::write(LEFT, "").map_err(|error| Error::handler("io", error))?,
        _ => {}
    }
    Ok(name.as_bytes().to_vec())
}
