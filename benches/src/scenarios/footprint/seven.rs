//! Main with the extensions of `plugins/` and two on the raw channel.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::scenarios::{
    device::{Device, Site},
    tasks::PATIENCE,
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

/// Each has worked once.
pub(super) fn start(site: &Site) -> Result<Device> {
    let mut device = site.weir(&COMPONENTS, EXTENSIONS, &[])?;
    ensure_answers(&mut device)?;
    Ok(device)
}

/// A setting is on disk, its change was counted, and the others answer.
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
