//! What a `Cargo.lock` says.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Dependency, package_url};

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// Returns the URLs of the project's own dependencies, and all dependencies by their URLs. The project is the package
/// with this name that comes from no registry. Without one, all packages count.
pub(super) fn dependencies(
    stem: &str,
    text: &str,
) -> Result<(Vec<String>, BTreeMap<String, Dependency>), String> {
    let Lock { package: packages } = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let is_project = |package: &&Package| {
        package.source.is_none() && package.name.replace('-', "_") == stem.replace('-', "_")
    };
    // `name`, or `name version` where there are several, or with the source, too.
    let named = |dependency: &String| {
        let mut words = dependency.split(' ');
        let (name, version) = (words.next(), words.next());
        packages.iter().find(|package| {
            name == Some(&package.name) && version.is_none_or(|version| version == package.version)
        })
    };
    let url = |package: &Package| package_url("cargo", &package.name, &package.version);
    let of = |package: &Package| package.dependencies.iter().filter_map(named).collect::<Vec<_>>();
    let project = packages.iter().find(is_project);
    let mut open = project.map_or_else(|| packages.iter().collect(), of);
    let direct: Vec<String> = open.iter().copied().map(url).collect();
    let (mut found, mut seen) = (BTreeMap::new(), BTreeSet::new());
    while let Some(package) = open.pop() {
        if !seen.insert(url(package)) {
            continue;
        }
        let depends_on = of(package);
        let dependency = Dependency {
            name: package.name.clone(),
            version: package.version.clone(),
            hash: package.checksum.clone().map(|digits| ("SHA-256", digits)),
            depends_on: Some(depends_on.iter().copied().map(url).collect()),
        };
        found.insert(url(package), dependency);
        open.extend(depends_on);
    }
    Ok((direct, found))
}
