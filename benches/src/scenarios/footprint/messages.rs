//! Waiting messages of each sort, beside a bounded channel of equal structures.

use anyhow::{Result, ensure};

use super::NAME;
use crate::{
    figure::{Figure, Unit},
    scenarios::{
        Bench,
        device::{Device, Site},
    },
};

/// Receivers of messages never receive, and have room for all. `idle` answers.
const RECEIVERS: &str = r#"
[limits.roomy]
inherits = "min"
inbox = { messages = 65536, bytes = "256 MiB" }
in-flight = 65536
message-size = "1 KiB"
fuel-per-message = 1_000_000_000_000_000
cpu-share = "100%"

[queue.jobs]
messages = 65536
bytes = "256 MiB"

[[extension]]
id = "mute"
path = "bench-guest.cwasm"
class = "roomy"
fulfills = ["mute@1"]
config = { kind = "mute" }

[[extension]]
id = "stalled"
path = "bench-guest.cwasm"
class = "roomy"
subscribes = ["paced"]
config = { kind = "stalled" }

[[extension]]
id = "idle"
path = "answering.cwasm"
class = "roomy"
when-full = "block"
limits.inbox = { messages = 64, bytes = "64 KiB" }
fulfills = ["idle.n0@1"]
config = { contract = "idle.n0@1" }
"#;

/// The sorts, and the grants of their senders.
const SORTS: [(&str, &str); 4] = [
    ("request", r#"wants = ["mute@1"]"#),
    ("response", r#"wants = ["idle.n0@1"]"#),
    ("event", r#"publishes = ["paced"]"#),
    ("job", r#"puts = ["jobs"]"#),
];

pub(super) fn figures(site: &Site, bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.scale.pick(50_000, 50_000, 1000);
    let senders: String = SORTS.iter().map(|(sort, grants)| sender(sort, grants)).collect();
    let mut weir = site.weir(&["answering", "bench-guest"], &format!("{RECEIVERS}{senders}"), &[])?;
    let mut native = site.native("threads", 1)?;
    let of_native = fill(&mut native, "native", count)?;
    let figure = |(sort, _): (&str, _)| {
        let each = fill(&mut weir, &format!("fill-{sort}@1"), count)?;
        Ok(Figure::new(NAME, format!("queued {sort}"), "private, each", Unit::Bytes, each).beside(of_native))
    };
    SORTS.into_iter().map(figure).collect()
}

fn sender(sort: &str, grants: &str) -> String {
    format!(
        "[[extension]]\nid = \"fill-{sort}\"\npath = \"bench-guest.cwasm\"\nclass = \"roomy\"\n\
         fulfills = [\"fill-{sort}@1\"]\n{grants}\nconfig = {{ kind = \"fill-{sort}\" }}\n\n"
    )
}

/// Growth of the process in bytes, for each waiting message.
fn fill(device: &mut Device, contract: &str, count: u32) -> Result<f64> {
    // Memory that the first call touches belongs to no message.
    device.ensure_answers(1)?;
    let before = device.process().memory()?.private_dirty;
    let said = device.call(contract, "fill", &count.to_string())?;
    ensure!(said == count.to_string(), "`{contract}` answers `{said}`");
    // Requests are answered in order: all before this one have been.
    device.ensure_answers(1)?;
    Ok(1024.0 * (device.process().memory()?.private_dirty - before) / f64::from(count))
}
