//! Crates: their manifests, and what Cargo packs.

use std::{collections::BTreeSet, path::PathBuf, process::Command};

use anyhow::Result;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, camino::Utf8Path};

use super::{NAMES, PACKAGES, Release, VERSION, in_tarball};
use crate::run::{cargo, output, root, run, target_dir};

/// What Cargo itself puts into a package.
const OF_CARGO: [&str; 3] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"];

impl Release {
    /// Packs every crate, and checks manifests and files. With the index of the registry, versions of dependencies are
    /// sought there, too, for the lock files in the packages.
    pub(super) fn crates(&mut self, with_index: bool) -> Result<()> {
        let metadata = MetadataCommand::new()
            .current_dir(root()?)
            .no_deps()
            .other_options(["--offline".to_owned()])
            .exec()?;
        let ours: Vec<_> =
            metadata.workspace_packages().into_iter().filter(|package| is_published(package)).collect();
        let before = self.findings.len();
        self.crates_are_those_of_the_table(&metadata, &ours);
        for package in &ours {
            self.manifest(package);
            self.dependencies(&metadata, package);
        }
        // Cargo would say only the first of what was found.
        if self.findings.len() > before {
            return Ok(());
        }
        let mut pack = cargo(["package", "--no-verify", "--allow-dirty", "--quiet"])?;
        // Another step packs some of them meanwhile.
        let packages = target_dir()?.join(PACKAGES);
        pack.env("CARGO_TARGET_DIR", &packages);
        if !with_index {
            pack.args(["--offline", "--exclude-lockfile"]);
        }
        run(pack.args(ours.iter().map(|package| format!("--package={}", package.name))))?;
        for package in ours {
            let stem = format!("{}-{VERSION}", package.name);
            let archive = packages.join(format!("package/{stem}.crate"));
            let files: BTreeSet<_> =
                in_tarball(&archive)?.into_iter().filter(|file| !OF_CARGO.contains(&file.as_str())).collect();
            let readme =
                output(Command::new("tar").arg("-xzOf").arg(&archive).arg(format!("{stem}/README.md")));
            self.contents("crates", &package.name, &files, Some(&readme.unwrap_or_default()))?;
        }
        Ok(())
    }

    fn crates_are_those_of_the_table(&mut self, metadata: &Metadata, ours: &[&Package]) {
        let table = self.names.crates.clone();
        for package in ours {
            let folder = package
                .manifest_path
                .parent()
                .and_then(|folder| folder.strip_prefix(&metadata.workspace_root).ok());
            let in_table = table.get(package.name.as_str()).map(PathBuf::as_path);
            if in_table != folder.map(Utf8Path::as_std_path) {
                self.find(
                    &package.name,
                    format!("is not in `{NAMES}` with its folder"),
                    "write it there, or `publish = false` into its manifest",
                );
            }
        }
        for name in table.keys() {
            if !ours.iter().any(|package| package.name == *name) {
                self.find(
                    name,
                    format!("is in `{NAMES}`, and there is no such crate to publish"),
                    "remove it there",
                );
            }
        }
    }

    fn manifest(&mut self, package: &Package) {
        let name = package.name.as_str();
        self.compare(name, "`version`", Some(&package.version.to_string()), VERSION);
        let has = [
            ("authors", !package.authors.is_empty()),
            ("categories", !package.categories.is_empty()),
            ("description", package.description.is_some()),
            ("keywords", !package.keywords.is_empty()),
            ("license", package.license.is_some()),
            ("readme", package.readme.is_some()),
            ("repository", package.repository.is_some()),
            ("rust-version", package.rust_version.is_some()),
        ];
        for (key, _) in has.iter().filter(|(_, has)| !has) {
            self.find(
                name,
                format!("its manifest has no `{key}`"),
                format!("write `{key}.workspace = true`"),
            );
        }
        let is_library = package.targets.iter().any(|target| target.is_lib());
        let shows_all = package.metadata.pointer("/docs/rs/all-features").is_some_and(|all| all == true);
        if is_library && !package.features.is_empty() && !shows_all {
            self.find(
                name,
                "docs.rs would not show its features",
                "write `all-features = true` below `[package.metadata.docs.rs]`",
            );
        }
    }

    /// Dependencies inside the repository need a version, and are published, too.
    fn dependencies(&mut self, metadata: &Metadata, package: &Package) {
        for dependency in package.dependencies.iter().filter(|dependency| dependency.path.is_some()) {
            let name = &dependency.name;
            let has_version = !dependency.req.comparators.is_empty();
            // Cargo leaves such a dependency out of the package: only tests need it.
            if dependency.kind == DependencyKind::Development && !has_version {
                continue;
            }
            if dependency.req.to_string() != format!("^{VERSION}") {
                self.find(
                    &package.name,
                    format!("its dependency `{name}` has the version `{}`", dependency.req),
                    format!("write `version = \"{VERSION}\"` beside the path"),
                );
            }
            if !metadata.packages.iter().any(|other| other.name == *name && is_published(other)) {
                self.find(
                    &package.name,
                    format!("its dependency `{name}` is not published"),
                    "publish it, or do without it",
                );
            }
        }
    }
}

fn is_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|registries| !registries.is_empty())
}
