//! Writes packages: the same contents make the same bytes. A package is whole or not there.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::NamedTempFile;

use super::{
    BLOBS, COMPONENT_TYPE, CONFIG_TYPE, Contents, Descriptor, INDEX, INDEX_TYPE, ImageConfig, ImageManifest,
    Index, MANIFEST_TYPE, MARK, MARK_TEXT, MAX_CONFIG, MAX_MANIFEST, Names, Package, SIGNATURE, TAG, TITLE,
    VERSION, WholeManifest, WriteError, blob,
};
use crate::{Digest, digest};

/// Writes a package of this component: a tar if the name ends with `.tar`, else a directory. A package that is there is
/// replaced. Returns the digest of the manifest.
///
/// # Errors
///
/// Fails if a file cannot be read or written, a part is too large, or something else is in the way.
pub fn write(component: &Path, contents: &Contents, to: &Path) -> Result<Digest, WriteError> {
    let failed = |source| WriteError::Io { path: component.to_owned(), source };
    let mut file = File::open(component).map_err(failed)?;
    let (size, digest) = digest::copy(&mut file, &mut io::sink(), u64::MAX).map_err(failed)?;
    let Contents { id, version, created, imports, exports, documents, signature } = contents;
    let config = ImageConfig {
        created: created.clone(),
        architecture: "wasm".to_owned(),
        os: "wasip2".to_owned(),
        layer_digests: vec![digest],
        component: Some(Names { exports: exports.clone(), imports: imports.clone() }),
        weir: documents.clone(),
    };
    let config = json(&config);
    let mut layer = Descriptor::new(COMPONENT_TYPE, digest, size);
    layer.annotations.insert(TITLE.to_owned(), format!("{id}.wasm"));
    let mut manifest = ImageManifest {
        schema_version: 2,
        media_type: Some(MANIFEST_TYPE.to_owned()),
        config: Descriptor::new(CONFIG_TYPE, Digest::of(&config), config.len() as u64),
        layers: vec![layer],
        annotations: [(TITLE, id), (VERSION, version)]
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .into(),
    };
    if let Some(signature) = signature {
        manifest.annotations.insert(SIGNATURE.to_owned(), signature.clone());
    }
    lay_out(&manifest, &json(&manifest), &config, component, to)
}

impl Package {
    /// Writes the package anew with this signature of its component, as [`write()`] does.
    ///
    /// # Errors
    ///
    /// The errors of [`write()`].
    pub fn write_signed(&self, signature: &str, to: &Path) -> Result<Digest, WriteError> {
        let failed =
            |source: serde_json::Error| WriteError::Io { path: to.to_owned(), source: source.into() };
        let mut manifest: WholeManifest = serde_json::from_slice(&self.manifest).map_err(failed)?;
        manifest.known.annotations.insert(SIGNATURE.to_owned(), signature.to_owned());
        lay_out(&manifest.known, &json(&manifest), &self.config, &self.component, to)
    }
}

impl Descriptor {
    fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self { media_type: media_type.to_owned(), digest, size, annotations: Default::default() }
    }
}

fn lay_out(
    manifest: &ImageManifest,
    text: &[u8],
    config: &[u8],
    component: &Path,
    to: &Path,
) -> Result<Digest, WriteError> {
    for (what, size, most) in [("config", config.len(), MAX_CONFIG), ("manifest", text.len(), MAX_MANIFEST)] {
        let size = size as u64;
        if size > most {
            return Err(WriteError::TooLarge { what, size, most });
        }
    }
    let mut descriptor = Descriptor::new(MANIFEST_TYPE, Digest::of(text), text.len() as u64);
    let tag = manifest.annotations.get(VERSION).filter(|version| is_tag(version));
    descriptor.annotations.extend(tag.map(|version| (TAG.to_owned(), version.clone())));
    let digest = descriptor.digest;
    let index =
        Index { schema_version: 2, media_type: Some(INDEX_TYPE.to_owned()), manifests: vec![descriptor] };
    let index = json(&index);
    let mut blobs =
        vec![(blob(&digest), Part::Bytes(text)), (blob(&manifest.config.digest), Part::Bytes(config))];
    blobs
        .extend(manifest.layers.iter().map(|layer| (blob(&layer.digest), Part::File(component, layer.size))));
    blobs.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut parts =
        vec![(MARK.to_owned(), Part::Bytes(MARK_TEXT.as_bytes())), (INDEX.to_owned(), Part::Bytes(&index))];
    parts.extend(blobs);
    let failed = |source| WriteError::Io { path: to.to_owned(), source };
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if to.extension().is_some_and(|extension| extension == "tar") {
        in_tar(&parts, parent, to).map_err(failed)?;
    } else {
        if to.symlink_metadata().is_ok() && !is_replaceable(to) {
            return Err(WriteError::InTheWay(to.to_owned()));
        }
        in_directory(&parts, parent, to).map_err(failed)?;
    }
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)?;
    Ok(digest)
}

/// Whether OCI takes it for a tag. A version with build metadata is none, because of its `+`.
fn is_tag(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphanumeric() || first == '_')
        && characters.all(|other| other.is_ascii_alphanumeric() || "_.-".contains(other))
        && text.len() <= 128
}

/// Whether it is an empty directory, or a layout with nothing but one image.
fn is_replaceable(to: &Path) -> bool {
    let Ok(entries) = fs::read_dir(to) else { return false };
    let of_a_layout = ["blobs", INDEX, MARK];
    let mut names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let is_alone = names.all(|name| name.is_ok_and(|name| of_a_layout.iter().any(|known| name == *known)));
    let index = fs::read(to.join(INDEX)).ok();
    let images = index.map(|text| serde_json::from_slice::<Index>(&text).map(|index| index.manifests.len()));
    is_alone && images.is_none_or(|images| images.is_ok_and(|images| images <= 1))
}

/// A file of a package.
enum Part<'a> {
    Bytes(&'a [u8]),
    /// So many bytes of this file.
    File(&'a Path, u64),
}

fn in_directory(parts: &[(String, Part<'_>)], parent: &Path, to: &Path) -> io::Result<()> {
    let made = tempfile::Builder::new().prefix(".weir-package-").tempdir_in(parent)?;
    fs::create_dir_all(made.path().join(BLOBS))?;
    for (name, part) in parts {
        let mut file = File::create_new(made.path().join(name))?;
        match part {
            Part::Bytes(bytes) => file.write_all(bytes)?,
            Part::File(path, _) => drop(io::copy(&mut File::open(path)?, &mut file)?),
        }
        file.sync_all()?;
    }
    fs::set_permissions(made.path(), Permissions::from_mode(0o755))?;
    match renameat_with(CWD, made.path(), CWD, to, RenameFlags::EXCHANGE) {
        // What was there has the name of the temporary directory now, and goes with it.
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::NOENT) => {
            fs::rename(made.path(), to)?;
            let _has_another_name = made.keep();
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn in_tar(parts: &[(String, Part<'_>)], parent: &Path, to: &Path) -> io::Result<()> {
    let made = tempfile::Builder::new()
        .prefix(".weir-package-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(parent)?;
    let mut tar = tar::Builder::new(BufWriter::new(made));
    let mut has_folders = false;
    for (name, part) in parts {
        if name.starts_with(BLOBS) && !has_folders {
            for folder in ["blobs/", "blobs/sha256/"] {
                append(&mut tar, folder, tar::EntryType::Directory, 0o755, 0, io::empty())?;
            }
            has_folders = true;
        }
        match part {
            Part::Bytes(bytes) => {
                append(&mut tar, name, tar::EntryType::Regular, 0o644, bytes.len() as u64, *bytes)?;
            }
            Part::File(path, size) => {
                append(&mut tar, name, tar::EntryType::Regular, 0o644, *size, File::open(path)?)?;
            }
        }
    }
    let made = tar.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    made.as_file().sync_all()?;
    made.persist(to).map_err(|error| error.error)?;
    Ok(())
}

/// Appends an entry that has no time and no owner, so that the same package is the same file.
fn append(
    tar: &mut tar::Builder<BufWriter<NamedTempFile>>,
    name: &str,
    kind: tar::EntryType,
    mode: u32,
    size: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_path(PathBuf::from(name))?;
    header.set_cksum();
    tar.append(&header, content)
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    // Maps of texts and numbers always serialize.
    serde_json::to_vec(value).unwrap_or_default()
}
