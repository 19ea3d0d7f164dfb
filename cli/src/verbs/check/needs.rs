//! Compares what extensions need, by their manifests and imports, with what the file grants them.

use std::{collections::BTreeSet, fmt::Display};

use weir_host::{
    ExtensionConfig,
    component::{Inspection, Manifest, Needs},
    config::{DirMode, Grants, extend::listed},
};

/// Returns the fault if the extension may not call a contract that its manifest requires.
pub(in super::super) fn fault(extension: &ExtensionConfig, found: &Inspection) -> Option<String> {
    let required = &found.manifest.as_ref()?.requires;
    let missing: Vec<_> = required.iter().filter(|contract| !extension.may_call(contract)).collect();
    (!missing.is_empty()).then(|| {
        let missing = listed(missing.iter().map(|contract| contract.as_str()), " and ");
        format!(
            "by its manifest it cannot do without {missing}, and may not call that: add it to `requires` or `wants`"
        )
    })
}

/// Warns of what the extension's manifest and imports need and the file does not grant.
pub(in super::super) fn warnings(extension: &ExtensionConfig, found: &Inspection) -> Vec<String> {
    let needs = found.manifest.iter().flat_map(|manifest| {
        let of_channels = of_channels(extension, manifest).into_iter();
        of_channels.chain(of_grants(&extension.grants, &manifest.grants))
    });
    let missing = needs.filter(|(_, names, _)| !names.is_empty()).map(|(does, names, key)| {
        let names = listed(names, ", ");
        format!("by its manifest it {does} {names}, which its `{key}` does not have")
    });
    let id = &extension.id;
    let of_imports = of_imports(&extension.grants, found);
    let missing = missing.chain(of_imports).map(|text| format!("`{id}`: {text}"));
    missing.chain(of_size(extension, found)).collect()
}

/// Warns of a component that is larger than the extension's may be.
pub(in super::super) fn of_size(extension: &ExtensionConfig, found: &Inspection) -> Option<String> {
    let (id, allowed) = (&extension.id, extension.limits.file_size);
    (found.bytes > allowed).then(|| {
        format!(
            "`{id}`: Main does not load its component of {} bytes, because its `limits.file-size` is {allowed}: raise it",
            found.bytes
        )
    })
}

/// Warns of imported interfaces that reach nothing without a grant.
pub(super) fn of_imports(grants: &Grants, found: &Inspection) -> impl Iterator<Item = String> {
    let imports = |start: &str| found.imports.iter().any(|name| name.starts_with(start));
    let http = imports("wasi:http/outgoing-handler@") && grants.http.is_empty();
    let stores = imports("wasi:keyvalue/") && grants.stores.is_empty();
    let missing = [
        http.then(|| {
            "it imports `wasi:http` and has no `grants.http`: all its requests are refused".to_owned()
        }),
        stores.then(|| {
            "it imports `wasi:keyvalue` and has no `grants.stores`: it can open no store".to_owned()
        }),
    ];
    missing.into_iter().flatten()
}

/// What the extension does, the names that are not granted, and the key that lacks them.
type Missing = (&'static str, BTreeSet<String>, &'static str);

fn of_channels(extension: &ExtensionConfig, manifest: &Manifest) -> [Missing; 6] {
    let Manifest { fulfills, wants, publishes, subscribes, puts, takes, .. } = manifest;
    let calls = |contract: &_| extension.may_call(contract);
    let publishes = without(publishes, |topic| extension.publishes.iter().any(|grant| grant.covers(topic)));
    let hears = |topic: &_| extension.subscribes.iter().any(|grant| grant.topic.covers(topic));
    [
        ("serves", without(fulfills, |contract| extension.fulfills.contains(contract)), "fulfills"),
        ("calls", without(wants, calls), "wants"),
        ("publishes", publishes, "publishes"),
        ("subscribes to", without(subscribes, hears), "subscribes"),
        ("puts jobs into", without(puts, |queue| extension.puts.contains(queue)), "puts"),
        ("takes jobs of", without(takes, |queue| extension.takes.contains(queue)), "takes"),
    ]
}

fn of_grants(grants: &Grants, needs: &Needs) -> [Missing; 4] {
    let Needs { dirs, env, net, .. } = needs;
    let granted = |guest: &str| grants.dirs.iter().find(|grant| grant.guest.as_str() == guest);
    let opened = dirs.iter().filter(|dir| granted(&dir.guest).is_none());
    let writes = |guest: &str| granted(guest).is_none_or(|grant| grant.mode == DirMode::Rw);
    let written = dirs.iter().filter(|dir| dir.mode == "rw" && !writes(&dir.guest));
    let connects = |address: &String| grants.net.iter().any(|grant| grant.to_string() == *address);
    [
        ("opens", opened.map(|dir| dir.guest.clone()).collect(), "grants.dirs"),
        ("writes to", written.map(|dir| dir.guest.clone()).collect(), "grants.dirs` with the mode `rw"),
        ("reads the variables", without(env, |name| grants.env.contains_key(name)), "grants.env"),
        ("connects to", without(net, connects), "grants.net"),
    ]
}

/// Returns the names that are not granted.
fn without<T: Display>(names: &[T], is_granted: impl Fn(&T) -> bool) -> BTreeSet<String> {
    names.iter().filter(|name| !is_granted(name)).map(ToString::to_string).collect()
}
