//! What Cargo tells of a project.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::project::Project;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    /// `None` if dependencies were not asked for.
    resolve: Option<Resolve>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    manifest_path: PathBuf,
    /// `None`: the package is on this machine.
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

/// The directories of the project's packages, and of those on this machine that they depend on, also through others.
pub(super) fn local_packages(project: &Project) -> Vec<PathBuf> {
    let Some(metadata) = metadata(project, &["--offline"]) else { return Vec::new() };
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let nodes: BTreeMap<_, _> = nodes.map(|node| (node.id.as_str(), &node.dependencies)).collect();
    let mut next: Vec<_> = own(project, &metadata).map(|package| package.id.as_str()).collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = next.pop() {
        if reached.insert(id) {
            next.extend(nodes.get(id).copied().into_iter().flatten().map(String::as_str));
        }
    }
    let packages = metadata.packages.iter().filter(|package| reached.contains(package.id.as_str()));
    let local = packages.filter(|package| package.source.is_none());
    local.filter_map(|package| Some(package.manifest_path.parent()?.to_owned())).collect()
}

/// The names of what a build makes of the project's packages, as [`component_name`] has them.
pub(super) fn component_names(project: &Project) -> BTreeSet<String> {
    let Some(metadata) = metadata(project, &["--no-deps", "--offline"]) else { return BTreeSet::new() };
    let targets = own(project, &metadata).flat_map(|package| &package.targets);
    let made = targets.filter(|target| target.kind.iter().any(|kind| kind == "bin" || kind == "cdylib"));
    made.map(|target| target.name.replace('-', "_")).collect()
}

/// Cargo writes `-` of a library's name as `_`.
pub(super) fn component_name(component: &Path) -> Option<String> {
    Some(component.file_stem()?.to_str()?.replace('-', "_"))
}

/// The package in the project's directory. Without one there, those of the workspace.
fn own<'a>(project: &Project, metadata: &'a Metadata) -> impl Iterator<Item = &'a Package> {
    let dir = |package: &Package| fs::canonicalize(package.manifest_path.parent()?).ok();
    let mut packages = metadata.packages.iter();
    let here =
        packages.find(|package| dir(package).as_ref() == Some(&project.dir)).map(|package| &package.id);
    let is_own = move |package: &&Package| match here {
        Some(id) => package.id == *id,
        None => metadata.workspace_members.contains(&package.id),
    };
    metadata.packages.iter().filter(is_own)
}

fn metadata(project: &Project, more: &[&str]) -> Option<Metadata> {
    let arguments = [&["metadata", "--format-version", "1"][..], more].concat();
    let output = project.command("cargo", &arguments).output().ok()?;
    output.status.success().then(|| serde_json::from_slice(&output.stdout).ok())?
}
