//! What a `package-lock.json` says, in its forms from npm 7 on.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::{Dependency, Origin, reference};

/// Where the registry that all use has its files.
const MAIN: &str = "https://registry.npmjs.org/";

/// The folder of packages. What follows its last occurrence in a path is a package's name.
const FOLDER: &str = "node_modules/";

#[derive(Deserialize)]
struct Lock {
    packages: BTreeMap<String, Package>,
}

#[derive(Deserialize)]
struct Package {
    /// The package's own name, if its folder has another.
    name: Option<String>,
    version: Option<String>,
    resolved: Option<String>,
    integrity: Option<String>,
    #[serde(default)]
    dev: bool,
    #[serde(default)]
    link: bool,
    #[serde(default)]
    dependencies: BTreeMap<String, String>,
}

/// Returns the references to the project's own dependencies, and all dependencies by their references, without those that only
/// tools need. What depends on what is left out: the folders of packages decide that.
pub(super) fn dependencies(text: &str) -> Result<(Vec<String>, BTreeMap<String, Dependency>), String> {
    let Lock { packages } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let of_project = packages.get("").map(|package| &package.dependencies);
    let (mut direct, mut found) = (Vec::new(), BTreeMap::new());
    for (path, package) in &packages {
        let Some((_, name)) = path.rsplit_once(FOLDER) else { continue };
        let Some(version) = package.version.clone().filter(|_| !package.dev && !package.link) else {
            continue;
        };
        let own = package.name.as_deref().unwrap_or(name);
        let url = url(own, &version, package.resolved.as_deref());
        let is_direct = path.strip_prefix(FOLDER) == Some(name);
        if is_direct && of_project.is_some_and(|names| names.contains_key(name)) {
            direct.push(url.clone());
        }
        let digits = package.integrity.as_ref().and_then(|text| text.strip_prefix("sha512-"));
        let digits = digits.and_then(|digits| STANDARD.decode(digits).ok());
        let hash = digits.map(|digits| ("SHA-512", hex::encode(digits)));
        found.insert(url, Dependency { name: own.to_owned(), version, hash, depends_on: None });
    }
    Ok((direct, found))
}

fn url(name: &str, version: &str, resolved: Option<&str>) -> String {
    let with_commit = resolved.map(|resolved| resolved.replacen('#', "@", 1)).unwrap_or_default();
    let origin = match resolved {
        None => Origin::Main,
        Some(resolved) if resolved.starts_with(MAIN) => Origin::Main,
        Some(resolved) if resolved.starts_with("git") => Origin::Other("vcs_url", &with_commit),
        Some(resolved) if resolved.starts_with("http") => Origin::Other("download_url", resolved),
        Some(_) => Origin::Project,
    };
    reference("npm", name, version, &origin)
}
