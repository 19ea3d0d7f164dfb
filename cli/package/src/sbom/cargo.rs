//! What a `Cargo.lock` says.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Dependency, Origin, reference};

/// The index of crates.io.
const MAIN: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

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

/// Returns the references to the project's own dependencies, and all dependencies by their references. The project is the package
/// with this name that comes from no registry. Without one, all packages count.
pub(super) fn dependencies(
    stem: &str,
    text: &str,
) -> Result<(Vec<String>, BTreeMap<String, Dependency>), String> {
    let Lock { package: packages } = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let is_project = |package: &&Package| {
        package.source.is_none() && package.name.replace('-', "_") == stem.replace('-', "_")
    };
    // `name`, or `name version` where there are several, or with the source, too, but not that of the project.
    let named = |dependency: &String| {
        let mut words = dependency.split(' ');
        let (name, version) = (words.next(), words.next());
        let source = words.next().map(|word| word.trim_matches(['(', ')']));
        let mut fit = packages.iter().filter(|package| {
            name == Some(&package.name) && version.is_none_or(|version| version == package.version)
        });
        match source {
            Some(source) => fit.find(|package| {
                package.source.as_deref().is_some_and(|of| of == source || without_commit(of).0 == source)
            }),
            None => fit.clone().find(|package| package.source.is_none()).or_else(|| fit.next()),
        }
    };
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

fn without_commit(source: &str) -> (&str, Option<&str>) {
    source.split_once('#').map_or((source, None), |(source, commit)| (source, Some(commit)))
}

fn url(Package { name, version, source, .. }: &Package) -> String {
    let Some(source) = source else { return reference("cargo", name, version, &Origin::Project) };
    if MAIN.contains(&&**source) {
        return reference("cargo", name, version, &Origin::Main);
    }
    if source.starts_with("git+") {
        let (place, commit) = without_commit(source);
        let place = place.split('?').next().unwrap_or_default();
        let place = commit.map_or_else(|| place.to_owned(), |commit| format!("{place}@{commit}"));
        return reference("cargo", name, version, &Origin::Other("vcs_url", &place));
    }
    let place = source.split_once('+').map_or(&**source, |(_, place)| place);
    reference("cargo", name, version, &Origin::Other("repository_url", place))
}
