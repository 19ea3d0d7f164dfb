//! Reads packages. They are hostile input: each size has a bound, and each blob must have its digest.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::{
    BLOBS, COMPONENT_TYPE, CONFIG_TYPE, Contents, Descriptor, INDEX, INDEX_TYPE, ImageConfig, ImageManifest,
    Index, Layers, MANIFEST_TYPE, MARK, MAX_CONFIG, MAX_MANIFEST, MAX_SIGNATURE, Package, ReadError,
    SIGNATURE, TITLE, VERSION, blob, unpack,
};
use crate::digest;

/// Reads a package whose component has at most `most` bytes: a directory, or a tar. Nothing is written but to a private
/// directory, which goes with the package.
///
/// # Errors
///
/// Fails if a file is missing, damaged, too large or not of a package. An entry of a tar that could lead out of the
/// package is refused, whether it is needed or not.
pub fn read(path: &Path, most: u64) -> Result<Package, ReadError> {
    let private =
        TempDir::with_prefix("weir-package-").map_err(|source| io_error(&std::env::temp_dir(), source))?;
    let metadata = fs::metadata(path).map_err(|source| io_error(path, source))?;
    let unpacked = private.path().join("layout");
    let layout = if metadata.is_dir() {
        Layout { root: path.to_owned(), component: private.path().join("component.wasm") }
    } else if metadata.is_file() {
        // The file that is named may be a link. What is in a package may not.
        let file = path.canonicalize().map_err(|source| io_error(path, source))?;
        unpack::unpack(&file, &unpacked, most)?;
        Layout { root: unpacked, component: private.path().join("component.wasm") }
    } else {
        return Err(ReadError::OfOtherKind(path.to_owned()));
    };
    layout.package(private, most)
}

impl Package {
    /// What the package says of its component. No signature vouches for it, and a hostile package can make it take a
    /// gigabyte of memory.
    ///
    /// # Errors
    ///
    /// Fails if the package says something else than a package can say.
    pub fn contents(&self) -> Result<Contents, ReadError> {
        let name = blob(&self.digest);
        let ImageManifest { config, annotations, .. } = parse(&name, &self.manifest)?;
        let parsed: ImageConfig = parse(&blob(&config.digest), &self.config)?;
        let annotation = |key: &str| annotations.get(key).cloned().unwrap_or_default();
        let names = parsed.component.unwrap_or_default();
        Ok(Contents {
            id: annotation(TITLE),
            version: annotation(VERSION),
            created: parsed.created,
            imports: names.imports,
            exports: names.exports,
            documents: parsed.weir,
            signature: self.signature.clone(),
        })
    }
}

/// Opens a regular file, without waiting for a FIFO and without following a symlink.
///
/// # Errors
///
/// Fails if it is missing, of another kind, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// A layout in a directory, which others may be writing to: each file is read once.
struct Layout {
    root: PathBuf,
    /// Where the component goes.
    component: PathBuf,
}

impl Layout {
    fn package(self, private: TempDir, most: u64) -> Result<Package, ReadError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Mark {
            image_layout_version: String,
        }

        let mark: Mark = parse(MARK, &self.small(MARK, 4096)?)?;
        if mark.image_layout_version != "1.0.0" {
            return Err(invalid(MARK, "it is of another version of OCI's image layout than 1.0.0"));
        }
        let index: Index = parse(INDEX, &self.small(INDEX, MAX_MANIFEST)?)?;
        let is_index = index.media_type.as_deref().is_none_or(|media_type| media_type == INDEX_TYPE);
        let [descriptor] = &index.manifests[..] else {
            let why = format!("it lists {} images, and a package has one", index.manifests.len());
            return Err(invalid(INDEX, &why));
        };
        if index.schema_version != 2 || !is_index || descriptor.media_type != MANIFEST_TYPE {
            return Err(invalid(INDEX, "it lists something else than an image of OCI"));
        }
        let name = blob(&descriptor.digest);
        let text = self.blob(descriptor, MAX_MANIFEST)?;
        let manifest: ImageManifest = parse(&name, &text)?;
        let is_manifest = manifest.media_type.as_deref().is_none_or(|media_type| media_type == MANIFEST_TYPE);
        let [layer] = &manifest.layers[..] else {
            return Err(invalid(&name, "it has not one layer"));
        };
        if manifest.schema_version != 2
            || !is_manifest
            || manifest.config.media_type != CONFIG_TYPE
            || layer.media_type != COMPONENT_TYPE
        {
            return Err(invalid(&name, &format!("only `{CONFIG_TYPE}` with one `{COMPONENT_TYPE}` is read")));
        }
        let config = self.blob(&manifest.config, MAX_CONFIG)?;
        let layers: Layers = parse(&blob(&manifest.config.digest), &config)?;
        if layers.layer_digests != [layer.digest] {
            return Err(invalid(&blob(&manifest.config.digest), "`layerDigests` is not that of the layer"));
        }
        self.copy_component(layer, most)?;
        let signature = manifest.annotations.get(SIGNATURE).cloned();
        if signature.as_ref().is_some_and(|text| text.len() > MAX_SIGNATURE) {
            return Err(ReadError::TooLarge { name: SIGNATURE.to_owned(), most: MAX_SIGNATURE as u64 });
        }
        Ok(Package {
            signature,
            component: self.component,
            sha256: layer.digest,
            size: layer.size,
            digest: descriptor.digest,
            manifest: text,
            config,
            _private: private,
        })
    }

    fn open(&self, name: &str) -> Result<File, ReadError> {
        let path = self.root.join(name);
        open(&path).map_err(|source| io_error(&path, source))
    }

    /// Reads a file of at most `most` bytes.
    fn small(&self, name: &str, most: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        let read = self.open(name)?.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| io_error(&self.root.join(name), source))?;
        if bytes.len() as u64 > most {
            return Err(ReadError::TooLarge { name: name.to_owned(), most });
        }
        Ok(bytes)
    }

    /// Reads a blob of at most `most` bytes, which must be what its descriptor says.
    fn blob(&self, descriptor: &Descriptor, most: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        self.copy(descriptor, &mut bytes, most)?;
        Ok(bytes)
    }

    fn copy_component(&self, layer: &Descriptor, most: u64) -> Result<(), ReadError> {
        let failed = |source| io_error(&self.component, source);
        let mut file = File::create_new(&self.component).map_err(failed)?;
        self.copy(layer, &mut file, most)
    }

    fn copy(&self, descriptor: &Descriptor, to: &mut impl io::Write, most: u64) -> Result<(), ReadError> {
        let Descriptor { digest, size, .. } = descriptor;
        let name = blob(digest);
        if *size > most {
            return Err(ReadError::TooLarge { name, most });
        }
        let copied = match digest::copy(&mut self.open(&name)?, to, *size) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(invalid(&name, &format!("it has more than the {size} bytes of its descriptor")));
            }
            copied => copied,
        };
        let (copied, found) = copied.map_err(|source| io_error(&self.root.join(&name), source))?;
        if copied != *size {
            return Err(invalid(&name, &format!("it has {copied} bytes, and its descriptor says {size}")));
        }
        if found != *digest {
            return Err(ReadError::Damaged { name, expected: digest.to_string(), found: found.to_string() });
        }
        Ok(())
    }
}

fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, ReadError> {
    serde_json::from_slice(bytes).map_err(|error| invalid(name, &error.to_string()))
}

fn invalid(name: &str, why: &str) -> ReadError {
    ReadError::Invalid { name: name.to_owned(), why: digest::shown(why) }
}

pub(super) fn io_error(path: &Path, source: io::Error) -> ReadError {
    ReadError::Io { path: path.to_owned(), source }
}

/// Whether a package has files only below this name, or under it.
pub(super) fn is_of_a_layout(name: &str) -> bool {
    name == MARK || name == INDEX || name.strip_prefix(BLOBS).is_some_and(|rest| rest.starts_with('/'))
}
