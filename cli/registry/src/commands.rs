//! The commands: what each takes of its registry, and what it prints.

use std::path::Path;

use anyhow::Result;

use crate::{
    layout::{Layout, NewLayout},
    manifest::Package,
    reference::Reference,
    registry::Registry,
};

/// Fetches a manifest and all its blobs into a new directory. Returns what was fetched, with its digest.
pub(crate) async fn pull(
    registry: &mut Registry,
    reference: &Reference,
    to: &Path,
    max: u64,
) -> Result<String> {
    let layout = NewLayout::begin(to)?;
    let (manifest, media_type) = registry.manifest(reference).await?;
    let package = Package::read(&manifest, &media_type, max)?;
    for (digest, size) in &package.blobs {
        registry.blob(digest, *size, &layout.blob(digest)).await?;
    }
    layout.finish(reference, &manifest, &package)?;
    Ok(pinned(reference, &package))
}

/// Brings the one manifest of a layout, and its blobs. Returns what was brought, with its digest.
pub(crate) async fn push(registry: &mut Registry, layout: Layout, reference: &Reference) -> Result<String> {
    let Layout { package, manifest, blobs, .. } = &layout;
    if let Some(digest) = reference.digest {
        anyhow::ensure!(
            digest == package.digest,
            "the manifest is `{}`, and the reference pins `{digest}`",
            package.digest
        );
    }
    for blob in blobs {
        registry.upload(blob).await?;
    }
    registry.put_manifest(reference, manifest.clone()).await?;
    Ok(pinned(reference, package))
}

fn pinned(reference: &Reference, package: &Package) -> String {
    Reference { digest: Some(package.digest), ..reference.clone() }.to_string()
}
