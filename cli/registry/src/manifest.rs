//! Manifests: the one file of a registry that is read here, for the blobs that it names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_package::Digest;

/// The media type of a manifest, as the OCI image specification has it.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media type of a list of manifests.
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Docker's own lists and manifests, which are older than the standard's.
pub(crate) const OF_DOCKER: [&str; 2] = [
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// Most bytes of a manifest, as registries have it.
pub(crate) const MANIFEST_MAX: u64 = 4 << 20;

/// Most layers of a manifest.
const LAYERS_MAX: usize = 64;

/// A blob that a manifest names, or a manifest that an index names.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// What is read of a manifest. All else in it is passed on as it is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u32,
    artifact_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
}

/// A manifest whose blobs are known, and bounded.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) digest: Digest,
    pub(crate) artifact_type: Option<String>,
    /// Each blob once, with its size.
    pub(crate) blobs: BTreeMap<Digest, u64>,
}

/// Why a manifest is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("the manifest is a list of several: name one of them by its digest")]
    Index,
    #[error("the manifest has the media type `{0}`, and only `{MANIFEST}` is taken")]
    MediaType(String),
    #[error("the manifest cannot be read: {0}")]
    Invalid(#[from] serde_json::Error),
    #[error("the manifest has the schema version {0}, and only 2 is taken")]
    SchemaVersion(u32),
    #[error("the manifest has {0} layers, and at most {LAYERS_MAX} are taken")]
    Layers(usize),
    #[error("the manifest names the blob `{0}` twice, with different sizes")]
    TwoSizes(Digest),
    #[error(
        "the blobs have {total} bytes in all, and at most {max} are taken: `--max-size` would allow more"
    )]
    Size { total: u128, max: u64 },
}

impl Package {
    /// Reads a manifest. `media_type` is what the registry, or the index of a layout, says that it is.
    pub(crate) fn read(bytes: &[u8], media_type: &str, max: u64) -> Result<Self, ManifestError> {
        // A list has no `config`, so its type is looked at first.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed {
            media_type: Option<String>,
        }
        let typed: Typed = serde_json::from_slice(bytes)?;
        for found in typed.media_type.as_deref().into_iter().chain([media_type]) {
            match found {
                MANIFEST => {}
                INDEX => return Err(ManifestError::Index),
                other if other == OF_DOCKER[1] => return Err(ManifestError::Index),
                other => return Err(ManifestError::MediaType(other.chars().take(200).collect())),
            }
        }
        let manifest: Manifest = serde_json::from_slice(bytes)?;
        if manifest.schema_version != 2 {
            return Err(ManifestError::SchemaVersion(manifest.schema_version));
        }
        if manifest.layers.len() > LAYERS_MAX {
            return Err(ManifestError::Layers(manifest.layers.len()));
        }
        let mut blobs = BTreeMap::new();
        for Descriptor { digest, size, .. } in manifest.layers.iter().chain([&manifest.config]) {
            if blobs.insert(*digest, *size).is_some_and(|before| before != *size) {
                return Err(ManifestError::TwoSizes(*digest));
            }
        }
        let total = blobs.values().map(|size| u128::from(*size)).sum();
        if total > u128::from(max) {
            return Err(ManifestError::Size { total, max });
        }
        Ok(Self { digest: Digest::of(bytes), artifact_type: manifest.artifact_type, blobs })
    }
}
