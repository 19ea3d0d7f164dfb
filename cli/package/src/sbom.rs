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

/// A package of others that a component is made of.
#[derive(Debug)]
struct Dependency {
    name: String,
    version: String,
    /// The algorithm's name in CycloneDX, and hexadecimal digits.
    hash: Option<(&'static str, String)>,
    /// Package URLs. `None` if the lock file does not say.
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
    let mut library = json!({
        "type": "library", "bom-ref": url, "name": name, "version": version, "purl": url,
    });
    if let (Some((algorithm, digits)), Some(library)) = (hash, library.as_object_mut()) {
        library.insert("hashes".to_owned(), json!([{ "alg": algorithm, "content": digits }]));
    }
    library
}

/// The URL of a package: <https://github.com/package-url/purl-spec>.
fn package_url(kind: &str, name: &str, version: &str) -> String {
    let escaped = |text| utf8_percent_encode(text, &PLAIN);
    format!("pkg:{kind}/{}@{}", escaped(name), escaped(version))
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

    fn made(stem: &str, name: &str, text: &str) -> Result<Value, String> {
        let contents = Contents { id: "echo".to_owned(), version: "1.0.0".to_owned(), ..Contents::default() };
        let locks = [(Path::new(name), text.to_owned())];
        sbom(stem, &contents, &Digest::of(b""), &locks).map_err(|error| error.to_string())
    }

    fn refs(sbom: &Value) -> Vec<&str> {
        sbom["components"].as_array().unwrap().iter().map(|it| it["purl"].as_str().unwrap()).collect()
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
