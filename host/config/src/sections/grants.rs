//! The keys under `grants`, of extensions and of hooks.

use super::{HOST_DIR, plain_path, split};
use crate::{
    check::GrantLocations,
    grants::{DirGrant, Grants, check_variable},
    section::{Located, Section},
};

const GUEST_DIR: &str = "an absolute path, as in `/data`";

pub(super) fn grants(section: &mut Section<'_, '_>) -> (Grants, GrantLocations) {
    let (mut dirs, mut locations) = (Vec::new(), GrantLocations::default());
    section.tables("dirs", |dir| {
        dir.require("host", HOST_DIR);
        dir.require("guest", GUEST_DIR);
        let host = plain_path(dir, "host", HOST_DIR);
        let guest = dir.text("guest", GUEST_DIR, str::parse);
        let mode = dir.text("mode", "`ro` or `rw`", str::parse);
        if let (Some(host), Some(guest)) = (host, guest) {
            locations.hosts.push(host.location);
            locations.guests.push(guest.location);
            dirs.push(DirGrant {
                host: host.value,
                guest: guest.value,
                mode: mode.map(Located::into_value).unwrap_or_default(),
            });
        }
    });
    let env = section.values("env", check_variable);
    let (net, _) = split(section.texts("net", "an address with a port, as in `example.com:443`", str::parse));
    (Grants { dirs, env, net }, locations)
}
