//! The SBOM: a CycloneDX document of the crates that are in a build.
//!
//! This module writes it itself, because `cargo-cyclonedx` 0.5.9 takes features from `cargo metadata`, and so names
//! crates that are in no build of `weir` for devices (TLS, stores, HTTP). That tool also writes a file beside every
//! manifest of the workspace, with the path of the checkout.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    VERSION,
    build::{Build, WEIR, epoch},
    packages::{Id, Package, Packages},
};
use crate::{files, run::output};

/// Writes the SBOM, and returns its path.
pub(super) fn write(packages: &Packages, to: &Path, build: &Build) -> Result<PathBuf> {
    let path = to.join(format!("{}.cdx.json", build.name()));
    let text = serde_json::to_string_pretty(&document(packages, build, &time()?))?;
    files::write(&path, text + "\n")?;
    Ok(path)
}

fn document(packages: &Packages, build: &Build, time: &str) -> Value {
    let is_weir = |id: &Id| id.0 == WEIR.0;
    let is_program = |id: &Id| build.programs().iter().any(|(package, _)| *package == id.0);
    let kind = |id: &Id| if is_program(id) { "application" } else { "library" };
    let of_others = packages.0.iter().filter(|(id, _)| !is_weir(id));
    let weir = packages.0.iter().find(|(id, _)| is_weir(id));
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist", "version": VERSION }] },
            "component": weir.map(|(id, package)| component(id, package, "application")),
            "properties": [
                { "name": "weir:target", "value": build.target.triple },
                { "name": "weir:features", "value": build.features().join(" ") },
            ],
        },
        "components": of_others.map(|(id, package)| component(id, package, kind(id))).collect::<Vec<_>>(),
        "dependencies": packages.0.iter().map(|(id, package)| json!({
            "ref": reference(id),
            "dependsOn": package.dependencies.iter().map(reference).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn component(id: &Id, package: &Package, kind: &str) -> Value {
    let required = [
        ("type", json!(kind)),
        ("bom-ref", json!(reference(id))),
        ("name", json!(id.0)),
        ("version", json!(id.1)),
        ("scope", json!("required")),
        ("licenses", json!([{ "expression": package.licence }])),
        ("purl", json!(reference(id))),
    ];
    let optional = [
        ("description", package.description.as_deref().map(|text| json!(text.trim()))),
        ("hashes", package.checksum.as_ref().map(|sum| json!([{ "alg": "SHA-256", "content": sum }]))),
        ("externalReferences", package.repository.as_ref().map(|url| json!([{ "type": "vcs", "url": url }]))),
    ];
    let given = optional.into_iter().filter_map(|(key, value)| Some((key, value?)));
    required.into_iter().chain(given).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A crate's package URL, in which a `+` is escaped.
fn reference((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn time() -> Result<String> {
    let time = format!("--date=@{}", epoch()?);
    Ok(output(Command::new("date").args(["--utc", &time, "+%Y-%m-%dT%H:%M:%SZ"]))?.trim_end().to_owned())
}
