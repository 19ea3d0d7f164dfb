//! The crates that are in a build: those that Cargo links, without what only makes the build.
//!
//! `cargo metadata` joins the features of all members of the workspace, and so names crates that are in no program.
//! `cargo tree` selects them as a build does.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::build::Build;
use crate::{
    files,
    run::{cargo, output},
};

/// How the names of files with a licence or a notice begin, in lower case.
const LICENCES: [&str; 5] = ["license", "licence", "copying", "notice", "copyright"];

/// A crate's name and version.
pub(super) type Id = (String, String);

#[derive(Debug)]
pub(super) struct Package {
    /// The licence as an expression of SPDX. Empty if the crate names none.
    pub(super) licence: String,
    pub(super) description: Option<String>,
    pub(super) repository: Option<String>,
    /// The directory of the crate's sources.
    pub(super) directory: PathBuf,
    /// SHA-256 of the crate's file at crates.io, in hexadecimal digits. `None` for crates of this repository.
    pub(super) checksum: Option<String>,
    pub(super) dependencies: Vec<Id>,
}

#[derive(Debug)]
pub(super) struct Packages(pub(super) BTreeMap<Id, Package>);

impl Packages {
    pub(super) fn of(build: &Build) -> Result<Self> {
        let edges = edges(&tree(build)?)?;
        let (metadata, checksums) = (metadata(build)?, checksums()?);
        let mut packages = BTreeMap::new();
        for described in metadata.as_array().into_iter().flatten() {
            let text = |key: &str| described.get(key).and_then(Value::as_str).map(str::to_owned);
            let id = (text("name").unwrap_or_default(), text("version").unwrap_or_default());
            let Some(dependencies) = edges.get(&id) else { continue };
            let manifest = PathBuf::from(text("manifest_path").context("a package without a manifest")?);
            let package = Package {
                // A slash is an older form of `OR`.
                licence: text("license").unwrap_or_default().replace('/', " OR "),
                description: text("description"),
                repository: text("repository"),
                directory: manifest.parent().context("a manifest lies in no directory")?.to_owned(),
                checksum: checksums.get(&id).cloned(),
                dependencies: dependencies.clone(),
            };
            packages.insert(id, package);
        }
        anyhow::ensure!(packages.len() == edges.len(), "`cargo metadata` lacks packages of `cargo tree`");
        Ok(Self(packages))
    }
}

/// The crates of a build as Cargo prints them: each line is the depth and the crate, as in `2toml v1.2.1`.
fn tree(build: &Build) -> Result<String> {
    let mut tree = cargo(["tree", "--locked", "--target", build.target.triple])?;
    for (package, _) in build.programs() {
        tree.args(["--package", package]);
    }
    tree.args(["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", "{p}"]);
    output(tree.args(build.features()))
}

/// What each crate of a tree depends on. Where the tree repeats a crate, it leaves out the crate's dependencies.
fn edges(tree: &str) -> Result<BTreeMap<Id, Vec<Id>>> {
    let (mut edges, mut path) = (BTreeMap::<Id, Vec<Id>>::new(), Vec::new());
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let name = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let depth: usize = line[..line.len() - name.len()].parse()?;
        let mut words = name.split(' ');
        let (name, version) = words.next().zip(words.next()).context("a crate without a version")?;
        let id = (name.to_owned(), version.trim_start_matches('v').to_owned());
        path.truncate(depth);
        if let Some(parent) = path.last() {
            let children = edges.entry(Id::clone(parent)).or_default();
            if !children.contains(&id) {
                children.push(id.clone());
            }
        }
        edges.entry(id.clone()).or_default();
        path.push(id);
    }
    Ok(edges)
}

fn metadata(build: &Build) -> Result<Value> {
    let mut metadata = cargo(["metadata", "--locked", "--format-version", "1"])?;
    let text = output(metadata.args(["--filter-platform", build.target.triple]))?;
    let metadata: Value = serde_json::from_str(&text).context("`cargo metadata` printed no JSON")?;
    metadata.get("packages").cloned().context("`cargo metadata` names no packages")
}

fn checksums() -> Result<BTreeMap<Id, String>> {
    let lock: toml::Table = files::read("Cargo.lock")?.parse().context("`Cargo.lock` is no TOML")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).context("no packages")?;
    let of = |package: &toml::Value| {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.iter().filter_map(of).collect())
}

/// Licences of all crates, as their authors want them passed on: each text once, below the crates that have it.
pub(super) fn licences(packages: &Packages) -> Result<String> {
    let mut text =
        "Programs of Weir contain these crates. Below each group of crates stands a text that their authors \
                    want passed on.\n"
            .to_owned();
    let mut texts = BTreeMap::<String, Vec<&Id>>::new();
    // Crates of this repository are under the licence that the file `LICENSE` beside this one has.
    for (id, package) in packages.0.iter().filter(|(_, package)| package.checksum.is_some()) {
        write!(text, "\n{} {}: {}", id.0, id.1, package.licence)?;
        for kept in kept(package)? {
            texts.entry(kept).or_default().push(id);
        }
    }
    for (kept, ids) in &texts {
        let names: Vec<_> = ids.iter().map(|(name, version)| format!("{name} {version}")).collect();
        write!(text, "\n\n{}\n{}\n\n{}", "=".repeat(80), names.join(", "), kept.trim_end())?;
    }
    Ok(text + "\n")
}

/// The licences and notices that lie in the folder of one crate.
fn kept(package: &Package) -> Result<Vec<String>> {
    let entries = fs::read_dir(&package.directory)
        .with_context(|| format!("cannot read `{}`", package.directory.display()))?;
    let mut texts = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if LICENCES.iter().any(|known| name.starts_with(known)) && entry.file_type()?.is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_gives_what_each_crate_depends_on() {
        let tree = "0weir v0.1.0 (/a b/cli)\n1a v1.0.0\n2c v2.0.0\n1b v1.1.0\n2a v1.0.0 (*)\n2c v3.0.0\n";
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let edges = edges(tree).unwrap();
        assert_eq!(edges[&id("weir", "0.1.0")], [id("a", "1.0.0"), id("b", "1.1.0")]);
        assert_eq!(edges[&id("a", "1.0.0")], [id("c", "2.0.0")]);
        assert_eq!(edges[&id("b", "1.1.0")], [id("a", "1.0.0"), id("c", "3.0.0")]);
        assert_eq!(edges[&id("c", "3.0.0")], []);
        assert_eq!(edges.len(), 5);
    }
}
