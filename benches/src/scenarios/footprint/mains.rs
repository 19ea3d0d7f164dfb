//! The Mains that are looked at: with the extensions of `plugins/` and two on the raw channel, and with messages that
//! wait.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::NAME;
use crate::{
    figure::{Figure, Unit},
    scenarios::{
        Bench,
        device::{Device, PATIENCE, Site},
    },
};

const COMPONENTS: [&str; 7] =
    ["device-info", "storage", "settings", "telemetry", "echo", "answering", "bench-guest"];

/// The five of `examples/device.toml`, and two more.
const EXTENSIONS: &str = r#"
[[extension]]
id = "device-info"
path = "device-info.cwasm"
class = "min"
fulfills = ["device.info@1"]
grants.dirs = [
    { host = "/proc", guest = "/proc" },
    { host = "/etc", guest = "/etc" },
    { host = "/usr/lib", guest = "/usr/lib" },
]

[store.storage]

[[extension]]
id = "storage"
path = "storage.cwasm"
fulfills = ["local.storage@1"]
grants.stores = ["storage"]

[[extension]]
id = "settings"
path = "settings.cwasm"
fulfills = ["settings@1"]
requires = ["local.storage@1"]
publishes = ["settings.changed.>"]

[[extension]]
id = "telemetry"
path = "telemetry.cwasm"
class = "min"
fulfills = ["telemetry@1"]
wants = ["local.storage@1"]
subscribes = ["settings.changed.>"]
config = { topics = "settings.changed.>", save-after-s = 5 }

[[extension]]
id = "echo"
path = "echo.cwasm"
class = "min"
fulfills = ["echo@1"]

[[extension]]
id = "idle"
path = "answering.cwasm"
class = "min"
fulfills = ["idle.n6@1"]
config = { contract = "idle.n6@1" }

[[extension]]
id = "asleep"
path = "bench-guest.cwasm"
class = "min"
config = { kind = "asleep-in-receive" }
"#;

/// Two extensions that never receive, with room for all messages, and `idle`, which answers.
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

/// The sorts of messages, and the grants of their senders.
const SORTS: [(&str, &str); 4] = [
    ("request", r#"wants = ["mute@1"]"#),
    ("response", r#"wants = ["idle.n0@1"]"#),
    ("event", r#"publishes = ["paced"]"#),
    ("job", r#"puts = ["jobs"]"#),
];

/// Main with 7 extensions, all of which have worked once.
pub(super) fn seven(site: &Site) -> Result<Device> {
    let mut device = site.weir(&COMPONENTS, EXTENSIONS, &[])?;
    ensure_answers(&mut device)?;
    Ok(device)
}

/// Fails unless a setting gets to the disk, its change is counted, and the other extensions answer.
pub(super) fn ensure_answers(device: &mut Device) -> Result<()> {
    device.call("settings@1", "set", r#"{"key":"volume","value":7}"#)?;
    for (contract, operation, argument, expected) in [
        ("settings@1", "get", r#"{"key":"volume"}"#, "7"),
        ("local.storage@1", "list", r#"{"prefix":""}"#, "volume"),
        ("device.info@1", "memory", "{}", "total_kib"),
        ("echo@1", "echo", "whole", "whole"),
    ] {
        let said = device.call(contract, operation, argument)?;
        ensure!(said.contains(expected), "{contract} {operation}: `{said}`");
    }
    // Events are delivered without a reply, so poll for the effect.
    let end = Instant::now() + PATIENCE;
    while !device.call("telemetry@1", "snapshot", "{}")?.contains("settings.changed.volume") {
        ensure!(Instant::now() < end, "telemetry counts no change");
    }
    device.ensure_answers(7)
}

/// Waiting messages of each sort, beside a bounded channel of equal structures.
pub(super) fn queued_messages(site: &Site, bench: &Bench) -> Result<Vec<Figure>> {
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
