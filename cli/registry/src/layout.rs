//! Directories in the form of an OCI image layout, with one manifest.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use weir_package::Digest;

use crate::{
    files,
    manifest::{Descriptor, INDEX, MANIFEST, MANIFEST_MAX, Package},
    reference::Reference,
};

/// The file that marks a layout, and its version.
const MARK: (&str, &str) = ("oci-layout", "1.0.0");

const LIST: &str = "index.json";

const BLOBS: &str = "blobs/sha256";

/// The annotation that names a manifest in a layout.
const NAME: &str = "org.opencontainers.image.ref.name";

/// Most bytes of the file that marks a layout.
const MARK_MAX: u64 = 4 << 10;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    image_layout_version: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    manifests: Vec<Descriptor>,
}

/// A layout that is being written, beside its place. Dropped, nothing of it is left.
pub(crate) struct NewLayout {
    directory: TempDir,
    place: PathBuf,
}

impl NewLayout {
    /// Begins a layout that will be at this path, where nothing may be.
    pub(crate) fn begin(place: &Path) -> Result<Self> {
        ensure!(
            place.symlink_metadata().is_err(),
            "`{}` is there already: name a new directory",
            place.display()
        );
        ensure!(place.file_name().is_some(), "`{}` names no new directory", place.display());
        let beside = match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // The mode is as the user's mask has it, as for any other directory.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        let directory =
            tempfile::Builder::new().prefix(".weir-registry-").permissions(mode).tempdir_in(beside);
        let directory = directory.with_context(|| format!("cannot write to `{}`", beside.display()))?;
        fs::create_dir_all(directory.path().join(BLOBS))?;
        Ok(Self { directory, place: place.to_owned() })
    }

    /// Where a blob belongs.
    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.directory.path().join(BLOBS).join(digest.hex())
    }

    /// Writes the manifest, whose blobs are there, and moves the layout to its place.
    pub(crate) fn finish(self, reference: &Reference, manifest: &[u8], package: &Package) -> Result<()> {
        let annotations = reference.tag.iter().map(|tag| (NAME.to_owned(), tag.clone())).collect();
        let descriptor = Descriptor {
            media_type: MANIFEST.to_owned(),
            digest: package.digest,
            size: u64::try_from(manifest.len())?,
            artifact_type: package.artifact_type.clone(),
            annotations,
        };
        let index =
            Index { schema_version: 2, media_type: Some(INDEX.to_owned()), manifests: vec![descriptor] };
        let (mark, version) = MARK;
        let mark = (mark, serde_json::to_vec(&Mark { image_layout_version: version.to_owned() })?);
        let write = || -> io::Result<()> {
            fs::write(self.blob(&package.digest), manifest)?;
            for (name, bytes) in [(LIST, serde_json::to_vec(&index)?), mark] {
                fs::write(self.directory.path().join(name), bytes)?;
            }
            // A directory that came there meanwhile is only replaced if it is empty.
            fs::rename(self.directory.path(), &self.place)
        };
        write().with_context(|| format!("cannot write `{}`", self.place.display()))?;
        // What is at its place has nothing to be removed any more.
        drop(self.directory.keep());
        Ok(())
    }
}

/// A blob of a layout. It is opened once: what comes into its place later is not sent in its stead.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) file: Arc<File>,
}

/// A layout with one manifest, whose blobs are there and are what they are called.
pub(crate) struct Layout {
    pub(crate) blobs: Vec<Blob>,
    pub(crate) manifest: Bytes,
    pub(crate) package: Package,
}

impl Layout {
    /// Opens a layout in a directory or a tar, and reads all its blobs.
    pub(crate) fn open(path: &Path, max: u64) -> Result<Self> {
        let metadata = fs::metadata(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        if metadata.is_dir() {
            return Self::of(path, max);
        }
        // Its blobs stay open when it is removed.
        Self::of(weir_package::unpack(path, max)?.path(), max)
    }

    fn of(root: &Path, max: u64) -> Result<Self> {
        let read = |name: &str, max| {
            let path = root.join(name);
            files::read(&path, max).with_context(|| format!("cannot read `{}`", path.display()))
        };
        let (mark, version) = MARK;
        let mark: Mark = serde_json::from_slice(&read(mark, MARK_MAX)?)
            .with_context(|| format!("`{}` is no layout", root.display()))?;
        let found = mark.image_layout_version;
        ensure!(
            found == version,
            "the layout has the version `{}`, and only {version} is taken",
            short(&found)
        );
        let index: Index = serde_json::from_slice(&read(LIST, MANIFEST_MAX)?)
            .with_context(|| format!("`{LIST}` cannot be read"))?;
        let [descriptor] = &index.manifests[..] else {
            bail!("`{LIST}` names {} manifests, and only one is taken", index.manifests.len())
        };
        let digest = descriptor.digest;
        let manifest = files::read(&root.join(BLOBS).join(digest.hex()), MANIFEST_MAX)
            .with_context(|| format!("cannot read the manifest `{digest}`"))?;
        let found = Digest::of(&manifest);
        ensure!(found == digest, "the manifest is `{found}`, and `{LIST}` names `{digest}`");
        let package = Package::read(&manifest, &descriptor.media_type, max)?;
        let mut blobs = Vec::new();
        for (digest, size) in &package.blobs {
            let blob = Blob::open(&root.join(BLOBS), *digest, *size);
            blobs.push(blob.with_context(|| format!("cannot take the blob `{digest}`"))?);
        }
        Ok(Self { blobs, manifest: manifest.into(), package })
    }
}

impl Blob {
    fn open(folder: &Path, digest: Digest, size: u64) -> Result<Self> {
        let mut file = weir_package::open(&folder.join(digest.hex()))?;
        let (read, found) = weir_package::copy(&mut file, &mut io::sink(), size)?;
        ensure!(read == size, "it has {read} bytes, and the manifest says {size}");
        ensure!(found == digest, "it is `{found}`");
        Ok(Self { digest, size, file: Arc::new(file) })
    }
}

fn short(text: &str) -> String {
    weir_names::harmless(text, 100)
}
