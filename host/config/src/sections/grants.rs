//! The keys under `grants`, of extensions and hooks.

use std::ops::RangeInclusive;

use super::{HOST_DIR, plain_path, split};
use crate::{
    check::GrantLocations,
    grants::{DirGrant, DirMode, Grants, check_variable},
    section::{Located, Section},
    shape::Shape,
};

const GUEST_DIR: &str = "an absolute path, as in `/data`";

/// From one block to more than any file system has.
const MAX_BYTES: RangeInclusive<u64> = 4 << 10..=1 << 50;

/// From one entry to as many as can be counted in seconds.
const MAX_FILES: RangeInclusive<u64> = 1..=1_000_000;

pub(super) fn grants(section: &mut Section<'_, '_>) -> (Grants, GrantLocations) {
    let (mut dirs, mut locations) = (Vec::new(), GrantLocations::default());
    section.tables("dirs", |dir| {
        dir.require("host", HOST_DIR);
        dir.require("guest", GUEST_DIR);
        let host = plain_path(dir, "host", HOST_DIR);
        let guest = dir.text("guest", GUEST_DIR, str::parse);
        let mode = dir.text("mode", "`ro` or `rw`", str::parse);
        let max_bytes = dir.number("max-bytes", &Shape::Size(MAX_BYTES));
        let max_files = dir.number("max-files", &Shape::Count(MAX_FILES));
        if mode.as_ref().is_none_or(|mode| mode.value == DirMode::Ro) {
            let mode = mode.as_ref().map(|mode| mode.location.clone());
            for (key, bound) in [("max-bytes", &max_bytes), ("max-files", &max_files)] {
                if let Some(bound) = bound {
                    let message = format!("`{key}` bounds writes, which need `mode = \"rw\"`");
                    dir.contradiction(
                        [(key, Some(bound.location.clone())), ("mode", mode.clone())],
                        &message,
                    );
                }
            }
        }
        if let (Some(host), Some(guest)) = (host, guest) {
            locations.hosts.push(host.location);
            locations.guests.push(guest.location);
            dirs.push(DirGrant {
                host: host.value,
                guest: guest.value,
                mode: mode.map(Located::into_value).unwrap_or_default(),
                max_bytes: max_bytes.map(Located::into_value),
                max_files: max_files.map(Located::into_value),
            });
        }
    });
    let env = section.values("env", check_variable);
    let (net, _) = split(section.texts("net", "an address with a port, as in `example.com:443`", str::parse));
    (Grants { dirs, env, net }, locations)
}
