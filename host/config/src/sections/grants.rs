//! The keys under `grants`, of extensions and hooks.

use std::ops::RangeInclusive;

use weir_names::StoreName;

use super::{HOST_DIR, plain_path, split};
use crate::{
    check::GrantLocations,
    grants::{DirGrant, DirMode, Grants, HttpGrant, StoreGrant, check_variable},
    section::{Located, Section},
    shape::Shape,
};

const HTTP_TARGET: &str = "a URL, as in `https://api.example.com/v1`";
const HTTP_METHOD: &str = "a method, as in `GET`";
const ADDRESSES: &str = "`loopback`, `link-local`, `private`, `shared`, or addresses as in `192.168.7.0/24`";

const STORE: &str = "the name of a store";
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
    let mut http = Vec::new();
    section.tables("http", |grant| http.extend(http_grant(grant)));
    let stores = section.located_texts_and_tables(
        "stores",
        STORE,
        |text| text.parse::<StoreName>().map(StoreGrant::from),
        store,
    );
    let (stores, stores_at) = split(stores);
    locations.stores = stores_at;
    (Grants { dirs, env, net, http, stores }, locations)
}

/// `None` after reporting a missing name.
fn store(section: &mut Section<'_, '_>) -> Option<Located<StoreGrant>> {
    section.require("name", STORE);
    let name = section.text("name", STORE, str::parse::<StoreName>);
    let mode = section.text("mode", "`ro` or `rw`", str::parse);
    let name = name?;
    let mode = mode.map_or(DirMode::Rw, Located::into_value);
    Some(Located { value: StoreGrant { name: name.value, mode }, location: name.location })
}

fn http_grant(grant: &mut Section<'_, '_>) -> Option<HttpGrant> {
    grant.require("to", HTTP_TARGET);
    let to = grant.text("to", HTTP_TARGET, str::parse);
    let methods = grant.some_texts("methods", HTTP_METHOD, str::parse);
    let addresses = grant.texts("addresses", ADDRESSES, str::parse);
    let mut granted = HttpGrant::new(to?.into_value());
    if let Some(methods) = methods {
        granted.methods = split(methods).0;
    }
    granted.addresses = split(addresses).0;
    Some(granted)
}
