//! The dependencies of a component in the form of CycloneDX 1.6, from the lock files of its project.

mod cargo;
mod npm;

use std::{collections::BTreeMap, path::Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::{Contents, Digest};

/// What stays as it is in a package URL.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Why a lock file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Its name is that of no known form.
    #[error("`{0}` is not read: lock files are `Cargo.lock` and `package-lock.json`")]
    Unknown(String),
    /// It is not of the form that its name says.
    #[error("`{name}` is not valid: {message}")]
    Invalid {
        /// The name of the file.
        name: String,
        /// What is wrong with it.
        message: String,
    },
}

/// Where a package of others comes from.
enum Origin<'a> {
    /// The registry that all use.
    Main,
    /// This place, as the qualifier of a package URL says it.
    Other(&'static str, &'a str),
    /// A directory or a file of the project.
    Project,
}

/// A package of others that a component is made of.
#[derive(Debug)]
struct Dependency {
    name: String,
    version: String,
    /// The algorithm's name in CycloneDX, and hexadecimal digits.
    hash: Option<(&'static str, String)>,
    /// References. `None` if the lock file does not say.
    depends_on: Option<Vec<String>>,
}

/// Returns the SBOM of a component whose file has this stem. `locks` are the paths of lock files and their texts. If a
/// `Cargo.lock` has a package of the project that is named as the stem, only its dependencies are listed, else all.
///
/// # Errors
///
/// Fails if a lock file is of another kind or not valid.
pub fn sbom(
    stem: &str,
    contents: &Contents,
    digest: &Digest,
    locks: &[(&Path, String)],
) -> Result<Value, LockError> {
    let mut found: BTreeMap<String, Dependency> = BTreeMap::new();
    let mut direct: Vec<String> = Vec::new();
    for (path, text) in locks {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let invalid = |message| LockError::Invalid { name: path.display().to_string(), message };
        let (of_project, of_lock) = match &*name {
            "Cargo.lock" => cargo::dependencies(stem, text).map_err(invalid)?,
            "package-lock.json" => npm::dependencies(text).map_err(invalid)?,
            _ => return Err(LockError::Unknown(path.display().to_string())),
        };
        direct.extend(of_project);
        found.extend(of_lock);
    }
    let Contents { id, version, created, .. } = contents;
    let reference = format!("{id}@{version}");
    let component = json!({
        "type": "application",
        "bom-ref": reference,
        "name": id,
        "version": version,
        "hashes": [{ "alg": "SHA-256", "content": digest.hex() }],
    });
    let of_component = json!({ "ref": reference, "dependsOn": direct });
    let of_others = found.iter().filter_map(|(url, dependency)| {
        Some(json!({ "ref": url, "dependsOn": dependency.depends_on.as_ref()? }))
    });
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "tools": { "components": [{
                "type": "application", "name": "weir package", "version": env!("CARGO_PKG_VERSION"),
            }] },
            "component": component,
        },
        "components": found.iter().map(|(url, dependency)| library(url, dependency)).collect::<Vec<_>>(),
        "dependencies": std::iter::once(of_component).chain(of_others).collect::<Vec<_>>(),
    }))
}

fn library(url: &str, Dependency { name, version, hash, .. }: &Dependency) -> Value {
    let mut library = json!({ "type": "library", "bom-ref": url, "name": name, "version": version });
    if let Some(library) = library.as_object_mut() {
        library.extend(url.starts_with("pkg:").then(|| ("purl".to_owned(), json!(url))));
        library.extend(hash.as_ref().map(|(algorithm, digits)| {
            ("hashes".to_owned(), json!([{ "alg": algorithm, "content": digits }]))
        }));
    }
    library
}

/// How the SBOM refers to a package: by its URL, <https://github.com/package-url/purl-spec>. The URL of another origin
/// says so. A package of the project has none: that would be another package of the same name.
fn reference(kind: &str, name: &str, version: &str, origin: &Origin<'_>) -> String {
    let escaped = |text| utf8_percent_encode(text, &PLAIN);
    let named = format!("{kind}/{}@{}", escaped(name), escaped(version));
    match origin {
        Origin::Main => format!("pkg:{named}"),
        Origin::Other(qualifier, url) => format!("pkg:{named}?{qualifier}={}", escaped(url)),
        Origin::Project => format!("project:{named}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARGO: &str = r#"
version = 4
[[package]]
name = "my-echo"
version = "0.1.0"
dependencies = ["planted", "twice 1.0.0"]
[[package]]
name = "planted"
version = "1.2.3+build"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00ff"
dependencies = ["twice 2.0.0"]
[[package]]
name = "twice"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "twice"
version = "2.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "of-another"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
"#;

    /// One name and version from three places, and a registry of others.
    const SOURCES: &str = r#"
version = 4
[[package]]
name = "echo"
version = "0.1.0"
dependencies = [
 "same 1.0.0",
 "same 1.0.0 (git+https://host/same?branch=main)",
 "same 1.0.0 (registry+https://github.com/rust-lang/crates.io-index)",
 "theirs",
]
[[package]]
name = "same"
version = "1.0.0"
source = "git+https://host/same?branch=main#abc"
[[package]]
name = "same"
version = "1.0.0"
[[package]]
name = "same"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00ff"
[[package]]
name = "theirs"
version = "1.0.0"
source = "sparse+https://theirs/index/"
"#;

    #[test]
    fn a_package_is_taken_for_that_of_a_registry_only_if_it_comes_from_there() {
        let sbom = made("echo", "Cargo.lock", SOURCES).unwrap();
        let expected = [
            "pkg:cargo/same@1.0.0",
            "pkg:cargo/same@1.0.0?vcs_url=git%2Bhttps%3A//host/same%40abc",
            "pkg:cargo/theirs@1.0.0?repository_url=https%3A//theirs/index/",
            "project:cargo/same@1.0.0",
        ];
        assert_eq!(refs(&sbom), expected);
        let [plain, git, theirs, own] = expected;
        assert_eq!(sbom["dependencies"][0]["dependsOn"], json!([own, git, plain, theirs]));
        assert_eq!(sbom["components"][0]["hashes"][0]["content"], "00ff");
        assert_eq!(sbom["components"][1]["hashes"], Value::Null);
        assert_eq!(
            (&sbom["components"][3]["purl"], &sbom["components"][0]["purl"]),
            (&Value::Null, &json!(plain))
        );

        let text = r#"{ "packages": {
            "node_modules/a": { "version": "1.0.0", "resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz" },
            "node_modules/b/node_modules/a": { "version": "1.0.0", "resolved": "git+ssh://git@host/a.git#abc" },
            "node_modules/c/node_modules/a": { "version": "1.0.0", "resolved": "file:a.tgz" },
            "node_modules/d/node_modules/a": { "version": "1.0.0", "resolved": "https://host/a.tgz" },
            "node_modules/alias": { "version": "2.0.0", "name": "real" }
        } }"#;
        let sbom = made("echo", "package-lock.json", text).unwrap();
        assert_eq!(
            refs(&sbom),
            [
                "pkg:npm/a@1.0.0",
                "pkg:npm/a@1.0.0?download_url=https%3A//host/a.tgz",
                "pkg:npm/a@1.0.0?vcs_url=git%2Bssh%3A//git%40host/a.git%40abc",
                "pkg:npm/real@2.0.0",
                "project:npm/a@1.0.0",
            ]
        );
    }

    fn made(stem: &str, name: &str, text: &str) -> Result<Value, String> {
        let contents = Contents { id: "echo".to_owned(), version: "1.0.0".to_owned(), ..Contents::default() };
        let locks = [(Path::new(name), text.to_owned())];
        sbom(stem, &contents, &Digest::of(b""), &locks).map_err(|error| error.to_string())
    }

    fn refs(sbom: &Value) -> Vec<&str> {
        sbom["components"].as_array().unwrap().iter().map(|it| it["bom-ref"].as_str().unwrap()).collect()
    }

    #[test]
    fn the_dependencies_of_a_crate_are_those_that_its_lock_file_leads_to() {
        let sbom = made("my_echo", "some/Cargo.lock", CARGO).unwrap();
        let planted = "pkg:cargo/planted@1.2.3%2Bbuild";
        assert_eq!(refs(&sbom), [planted, "pkg:cargo/twice@1.0.0", "pkg:cargo/twice@2.0.0"]);
        assert_eq!(sbom["components"][0]["hashes"], json!([{ "alg": "SHA-256", "content": "00ff" }]));
        assert_eq!(
            sbom["dependencies"][0],
            json!({ "ref": "echo@1.0.0", "dependsOn": [planted, "pkg:cargo/twice@1.0.0"] })
        );
        assert_eq!(
            sbom["dependencies"][1],
            json!({ "ref": planted, "dependsOn": ["pkg:cargo/twice@2.0.0"] })
        );
        let all = made("unknown", "Cargo.lock", CARGO).unwrap();
        assert_eq!(refs(&all).len(), 5);
    }

    #[test]
    fn the_dependencies_of_a_project_in_javascript_are_without_those_of_its_tools() {
        let text = r#"{ "lockfileVersion": 3, "packages": {
            "": { "name": "echo", "dependencies": { "planted": "1" } },
            "node_modules/planted": { "version": "1.0.1", "integrity": "sha512-AP8=" },
            "node_modules/planted/node_modules/@scope/in": { "version": "2.0.0" },
            "node_modules/tool": { "version": "3.0.0", "dev": true },
            "linked": { "version": "1.0.0" },
            "node_modules/linked": { "resolved": "linked", "link": true }
        } }"#;
        let sbom = made("echo", "package-lock.json", text).unwrap();
        assert_eq!(refs(&sbom), ["pkg:npm/%40scope/in@2.0.0", "pkg:npm/planted@1.0.1"]);
        assert_eq!(sbom["components"][1]["hashes"][0]["content"], "00ff");
        assert_eq!(
            sbom["dependencies"],
            json!([{ "ref": "echo@1.0.0", "dependsOn": ["pkg:npm/planted@1.0.1"] }])
        );
    }

    #[test]
    fn another_lock_file_is_refused_by_its_name() {
        let refused = "`a/go.sum` is not read: lock files are `Cargo.lock` and `package-lock.json`";
        assert_eq!(made("echo", "a/go.sum", ""), Err(refused.to_owned()));
        for (name, text) in [("Cargo.lock", "package = 1"), ("package-lock.json", "{}")] {
            assert!(made("echo", name, text).unwrap_err().contains("is not valid: "), "{name}");
        }
    }
}
