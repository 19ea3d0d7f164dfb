//! What a project's tools and their files tell of it: the names of what Cargo makes, and the directories outside the
//! project of packages that it depends on by their paths.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use super::project::{Project, Tools};

/// Returns the directories of packages outside the project that it depends on by their paths. Packages that its tools
/// do not tell, as before the first build, are left out.
pub(super) fn of_dependencies(project: &Project) -> BTreeSet<PathBuf> {
    let found = match project.tools {
        Tools::Cargo => of_cargo(project),
        Tools::Npm => of_npm(&project.dir),
        Tools::Go => of_go(project),
        Tools::Python => of_python(&project.dir),
        Tools::Make | Tools::None => Vec::new(),
    };
    let real = found.into_iter().filter_map(|dir| fs::canonicalize(dir).ok());
    real.filter(|dir| dir.is_dir() && !dir.starts_with(&project.dir)).collect()
}

fn of_npm(dir: &Path) -> Vec<PathBuf> {
    let Ok(text) = fs::read(dir.join("package.json")) else { return Vec::new() };
    let Ok(package) = serde_json::from_slice::<Value>(&text) else { return Vec::new() };
    let named =
        ["dependencies", "devDependencies"].into_iter().filter_map(|key| package.get(key)?.as_object());
    let named = named.flat_map(|dependencies| dependencies.values()).filter_map(Value::as_str);
    let paths = named.filter_map(|named| named.strip_prefix("file:").or_else(|| named.strip_prefix("link:")));
    paths.map(|path| dir.join(path)).collect()
}

/// Returns the directories of the workspace's modules, and of local modules that replace others.
fn of_go(project: &Project) -> Vec<PathBuf> {
    let local =
        "{{if .Main}}{{.Dir}}{{else}}{{with .Replace}}{{if not .Version}}{{.Dir}}{{end}}{{end}}{{end}}";
    let listed = output_of(project, "go", &["list", "-m", "-f", local, "all"]).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed).into_owned();
    listed.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect()
}

/// Returns the packages that `requirements.txt` installs as links to their directories. A change of any other package
/// takes effect only when it is installed again.
fn of_python(dir: &Path) -> Vec<PathBuf> {
    let requirements = fs::read_to_string(dir.join("requirements.txt")).unwrap_or_default();
    let editable =
        requirements.lines().filter_map(|line| line.strip_prefix("-e ").or(line.strip_prefix("--editable ")));
    // The names of extras stand in brackets after the path.
    editable.filter_map(|path| path.trim().split('[').next()).map(|path| dir.join(path)).collect()
}

fn output_of(project: &Project, program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = project.command(program, arguments).output().ok()?;
    output.status.success().then_some(output.stdout)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    /// The graph of dependencies. `None` if it was not asked for.
    resolve: Option<Resolve>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    manifest_path: PathBuf,
    /// Where the package comes from. `None` means that it is on this machine.
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

/// Returns the directories of the project's packages, and of packages on this machine that they depend on, also through
/// others.
fn of_cargo(project: &Project) -> Vec<PathBuf> {
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

/// Returns the names of what a build makes of the project's packages, with `_` for `-`, to compare with a
/// [`component_name`].
pub(super) fn component_names(project: &Project) -> BTreeSet<String> {
    let Some(metadata) = metadata(project, &["--no-deps", "--offline"]) else { return BTreeSet::new() };
    let targets = own(project, &metadata).flat_map(|package| &package.targets);
    let made = targets.filter(|target| target.kind.iter().any(|kind| kind == "bin" || kind == "cdylib"));
    made.map(|target| target.name.replace('-', "_")).collect()
}

/// Returns the name of a component's file with `_` for `-`, since Cargo writes names of libraries so.
pub(super) fn component_name(component: &Path) -> Option<String> {
    Some(component.file_stem()?.to_str()?.replace('-', "_"))
}

/// Returns the package in the project's directory, or all packages of the workspace if there is none.
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
    serde_json::from_slice(&output_of(project, "cargo", &arguments)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a project in `project` depends on, with these files beside the configuration.
    fn of(dir: &Path, files: &[(&str, &str)]) -> BTreeSet<PathBuf> {
        for (file, text) in files.iter().chain(&[("project/weir.toml", "")]) {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        of_dependencies(&Project::load(&dir.join("project")).unwrap())
    }

    #[test]
    fn packages_that_are_dependencies_by_their_paths_are_found_in_each_language() {
        let package = |name: &str, dependency: &str| {
            format!(
                "[package]\nname = '{name}'\nversion = '0.1.0'\nedition = '2024'\n[workspace]\n[dependencies]\n{dependency}"
            )
        };
        let own = package("own", "near = { path = '../near' }");
        let (near, far) = (package("near", "far = { path = '../far' }"), package("far", ""));
        let npm = r#"{"dependencies":{"a":"file:../near","b":"^1"},"devDependencies":{"c":"link:../far"}}"#;
        let members = "[workspace]\nresolver = '3'\nmembers = ['project', 'near', 'far', 'other']";
        let alone = package("other", "");
        let [own_member, near_member, far_member, other_member] =
            [&own, &near, &far, &alone].map(|package| package.replace("[workspace]\n", ""));
        let cases: [&[(&str, &str)]; 4] = [
            // A member of the workspace that it does not depend on is left out.
            &[
                ("Cargo.toml", members),
                ("project/Cargo.toml", &*own_member),
                ("project/src/lib.rs", ""),
                ("near/Cargo.toml", &*near_member),
                ("near/src/lib.rs", ""),
                ("far/Cargo.toml", &*far_member),
                ("far/src/lib.rs", ""),
                ("other/Cargo.toml", &*other_member),
                ("other/src/lib.rs", ""),
            ],
            &[
                ("project/Cargo.toml", &*own),
                ("project/src/lib.rs", ""),
                ("near/Cargo.toml", &*near),
                ("near/src/lib.rs", ""),
                ("far/Cargo.toml", &*far),
                ("far/src/lib.rs", ""),
            ],
            &[("project/package.json", npm), ("near/a", ""), ("far/a", "")],
            &[
                ("project/app.py", ""),
                (
                    "project/requirements.txt",
                    "pytest\n-e ../near[extra]\n--editable ../far\n../copied\n-e .\n",
                ),
                ("near/a", ""),
                ("far/a", ""),
                ("copied/a", ""),
            ],
        ];
        for files in cases {
            let dir = tempfile::tempdir().unwrap();
            let real = fs::canonicalize(dir.path()).unwrap();
            let expected = BTreeSet::from([real.join("near"), real.join("far")]);
            assert_eq!(of(&real, files), expected, "{files:?}");
        }
    }
}
