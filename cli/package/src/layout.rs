//! The form of a package: an OCI image layout with one image, whose only layer is the component.
//!
//! Media types and the config are those of the CNCF's artifact for WebAssembly. Tools for that artifact refuse a second
//! layer, so what else a package holds is in its config, below `weir`. The signature is in the manifest's annotations,
//! because the config was written before it.

pub(crate) mod read;
pub(crate) mod unpack;
pub(crate) mod write;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::Digest;

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
const COMPONENT_TYPE: &str = "application/wasm";

const TITLE: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";
const TAG: &str = "org.opencontainers.image.ref.name";
const SIGNATURE: &str = "io.github.weir-rt.signature";

/// The file that says that a directory is a layout, and all of it.
const MARK: &str = "oci-layout";
const MARK_TEXT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
const INDEX: &str = "index.json";
const BLOBS: &str = "blobs/sha256";

/// The most bytes of `index.json`, and of a manifest. Registries take no larger manifest.
const MAX_MANIFEST: u64 = 4 << 20;

/// The most bytes of a config. An SBOM of a thousand dependencies takes half of a mebibyte.
const MAX_CONFIG: u64 = 16 << 20;

/// The most bytes of a signature. One takes about 400.
const MAX_SIGNATURE: usize = 4096;

/// What a package says of its component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The id that the author suggests.
    pub id: String,
    /// The component's version.
    pub version: String,
    /// When the package was made, as in RFC 3339.
    pub created: String,
    /// The names of the component's imports.
    pub imports: Vec<String>,
    /// The names of the component's exports.
    pub exports: Vec<String>,
    /// What comes with the component.
    pub documents: Documents,
    /// The detached signature of the component, as text.
    pub signature: Option<String>,
}

/// What comes with a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Documents {
    /// The manifest of the component's author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// The contracts that the component describes, as OpenRPC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contracts: Vec<Value>,
    /// A table for the operator's file, as TOML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stanza: Option<String>,
    /// The text of the licence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// The dependencies, in the form of CycloneDX.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sbom: Option<Value>,
}

/// A package that was read and verified against its digests. The component is in a private directory until this is
/// dropped.
#[derive(Debug)]
pub struct Package {
    /// The detached signature of the component, as text.
    pub signature: Option<String>,
    /// The file of the component.
    pub component: PathBuf,
    /// The digest of the component.
    pub sha256: Digest,
    /// The size of the component, in bytes.
    pub size: u64,
    /// The digest of the manifest, by which registries name the package.
    pub digest: Digest,
    manifest: Vec<u8>,
    config: Vec<u8>,
    /// Has the component.
    _private: TempDir,
}

/// Why a package cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// It is neither a directory nor a regular file.
    #[error("`{}` is neither a directory nor a regular file", .0.display())]
    OfOtherKind(PathBuf),
    /// The file is not a tar, or is cut off.
    #[error("`{}` is no tar, or is damaged: {message}", path.display())]
    Tar {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        message: String,
    },
    /// An entry of a tar does not belong in a package.
    #[error("the entry `{name}` of the tar is refused: {why}")]
    Entry {
        /// The name of the entry, with what is not ASCII escaped.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file is larger than any package needs.
    #[error("`{name}` has more than {most} bytes")]
    TooLarge {
        /// The file within the package.
        name: String,
        /// How many bytes are taken.
        most: u64,
    },
    /// A file has another content than its digest says.
    #[error("`{name}` is damaged: its content has the digest {found}, and {expected} was expected")]
    Damaged {
        /// The file within the package.
        name: String,
        /// The digest that was expected.
        expected: String,
        /// The digest of the content.
        found: String,
    },
    /// A file is missing, or says what a package cannot say.
    #[error("`{name}` is not of a package of a component: {why}")]
    Invalid {
        /// The file within the package.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Why a package cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// There is something else where the package would go.
    #[error("`{}` is there already and is not one package: remove it, or choose another place", .0.display())]
    InTheWay(PathBuf),
    /// A part is larger than what is taken when a package is read.
    #[error("the {what} would have {size} bytes, of at most {most}")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// Its size, in bytes.
        size: u64,
        /// How many bytes are taken.
        most: u64,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: Digest,
    size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    manifests: Vec<Descriptor>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageManifest {
    schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// A manifest with what other tools have written, which stays when the package is signed.
#[derive(Serialize, Deserialize)]
struct WholeManifest {
    #[serde(flatten)]
    known: ImageManifest,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The only part of a config that is read for a device. The rest of it can take a hundred times its size in memory.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layers {
    layer_digests: Vec<Digest>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageConfig {
    created: String,
    architecture: String,
    os: String,
    layer_digests: Vec<Digest>,
    component: Option<Names>,
    #[serde(default)]
    weir: Documents,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Names {
    exports: Vec<String>,
    imports: Vec<String>,
}

/// The place of a blob within a layout.
fn blob(digest: &Digest) -> String {
    format!("{BLOBS}/{}", digest.hex())
}
