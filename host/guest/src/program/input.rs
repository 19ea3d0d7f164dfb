//! The component or artifact of an extension, in a file or in memory, once it is measured and hashed.
//!
//! A file's content is not kept. Reading all of it again fails if the content has changed.

use std::{
    fs,
    io::{self, Read, Seek, Write},
    os::fd::OwnedFd,
    path::{Component, Path},
    time::SystemTime,
};

use bytes::Bytes;
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};
use sha2::{Digest, Sha256};
use weir_config::{ArtifactHash, ComponentSource, Limits};

use super::{
    artifact, code,
    error::LoadFault,
    signature::Signature,
    stamp::{self, FileStamp},
};

/// The kind of content, as its first bytes claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputKind {
    /// A component.
    Component,
    /// A compiled and signed component.
    Artifact,
}

/// A component or an artifact that was read once.
#[derive(Debug)]
pub(super) struct ComponentInput {
    content: Content,
    pub(super) kind: InputKind,
    pub(super) bytes: u64,
    pub(super) hash: ArtifactHash,
    /// The stamp of a file, taken before the file was read. None for content in memory, and for a file whose stamp
    /// might not show a change.
    pub(super) stamp: Option<FileStamp>,
}

#[derive(Debug)]
enum Content {
    File(fs::File),
    Memory(Bytes),
}

/// The most bytes read of a component, and of an artifact's code.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputLimits {
    pub(super) file_size: u64,
    pub(super) code_size: u64,
}

impl From<&Limits> for InputLimits {
    fn from(limits: &Limits) -> Self {
        Self { file_size: limits.file_size, code_size: limits.code_size }
    }
}

impl ComponentInput {
    /// Opens a component or an artifact within these limits, and reads it once. A file must be in `plugin_dir`, if
    /// given.
    pub(super) fn open(
        source: &ComponentSource,
        plugin_dir: Option<&Path>,
        limits: InputLimits,
    ) -> Result<Self, LoadFault> {
        match source {
            ComponentSource::Path(path) => Self::in_file(path, plugin_dir, limits),
            ComponentSource::Bytes(bytes) => Self::in_memory(bytes.clone(), limits),
        }
    }

    pub(super) fn in_file(
        path: &Path,
        plugin_dir: Option<&Path>,
        limits: InputLimits,
    ) -> Result<Self, LoadFault> {
        let now = SystemTime::now();
        let mut file = open(path, plugin_dir)?;
        let metadata = file.metadata().map_err(LoadFault::Read)?;
        if !metadata.is_file() {
            return Err(LoadFault::NotAFile);
        }
        let bytes = metadata.len();
        let kind = kind(&file, bytes, limits)?;
        let stamp =
            Some(FileStamp::from(&metadata)).filter(|stamp| stamp.is_settled(now) && stamp::is_exact(&file));
        file.rewind().map_err(LoadFault::Read)?;
        let hash = copy(&mut file, bytes, &mut io::sink())?;
        Ok(Self { content: Content::File(file), kind, bytes, hash, stamp })
    }

    fn in_memory(content: Bytes, limits: InputLimits) -> Result<Self, LoadFault> {
        let bytes = content.len() as u64;
        let kind = kind(&*content, bytes, limits)?;
        let hash = ArtifactHash::from_bytes(Sha256::digest(&content).into());
        Ok(Self { content: Content::Memory(content), kind, bytes, hash, stamp: None })
    }

    /// Reads the first `bytes` bytes, or all if there are fewer.
    pub(super) fn start(&mut self, bytes: u64) -> Result<Vec<u8>, LoadFault> {
        let mut start = Vec::new();
        match &mut self.content {
            Content::File(file) => {
                file.rewind().map_err(LoadFault::Read)?;
                file.take(bytes).read_to_end(&mut start)
            }
            Content::Memory(content) => content.take(bytes).read_to_end(&mut start),
        }
        .map_err(LoadFault::Read)?;
        Ok(start)
    }

    /// Writes the content to `to`. Fails at the end if it is not what was hashed.
    pub(super) fn copy_to(&mut self, to: &mut impl Write) -> Result<(), LoadFault> {
        let copied = match &mut self.content {
            Content::File(file) => {
                file.rewind().map_err(LoadFault::Read)?;
                copy(file, self.bytes, to)?
            }
            // Content in memory is hashed again too, because an embedder's memory may be a mapped file.
            Content::Memory(content) => copy(&mut &**content, self.bytes, to)?,
        };
        if copied == self.hash { Ok(()) } else { Err(LoadFault::Changed) }
    }

    /// Reads the whole content. Fails if it is not what was hashed.
    pub(super) fn read(&mut self) -> Result<Vec<u8>, LoadFault> {
        let mut content = Vec::new();
        content
            .try_reserve_exact(usize::try_from(self.bytes).unwrap_or(usize::MAX))
            .map_err(|_| LoadFault::Read(io::ErrorKind::OutOfMemory.into()))?;
        self.copy_to(&mut content)?;
        Ok(content)
    }
}

/// Reads the file with a component's signature. It must be in `plugin_dir`, if given. Returns none if it is not there.
pub(super) fn read_signature(path: &Path, plugin_dir: Option<&Path>) -> Result<Option<Vec<u8>>, LoadFault> {
    let file = match open(path, plugin_dir) {
        Err(LoadFault::Read(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if !file.metadata().map_err(LoadFault::Read)?.is_file() {
        return Err(LoadFault::NotAFile);
    }
    let mut text = Vec::new();
    // With one byte more than a signature can have, a larger file is refused as another text is.
    file.take(Signature::MAX_BYTES as u64 + 1).read_to_end(&mut text).map_err(LoadFault::Read)?;
    Ok(Some(text))
}

/// Returns the kind of content that begins like this. Fails if it is of no kind that can be loaded, or its size is not
/// within the limits.
fn kind(start: impl Read, bytes: u64, limits: InputLimits) -> Result<InputKind, LoadFault> {
    let InputLimits { file_size, code_size } = limits;
    let too_large = || LoadFault::TooLarge { bytes, allowed: file_size };
    let code = bytes.saturating_sub(artifact::HEADER as u64);
    if bytes > file_size && code > code_size {
        return Err(too_large());
    }
    let kind = claimed(start)?;
    match kind {
        InputKind::Component if bytes > file_size => return Err(too_large()),
        InputKind::Artifact => code::check(code, code_size)?,
        InputKind::Component => {}
    }
    Ok(kind)
}

/// Returns the kind that the first bytes claim. Fails if they are those of a core module, of machine code, or of
/// anything else.
fn claimed(start: impl Read) -> Result<InputKind, LoadFault> {
    let mut first = Vec::with_capacity(8);
    start.take(8).read_to_end(&mut first).map_err(LoadFault::Read)?;
    match &*first {
        b"\0asm\x0d\0\x01\0" => Ok(InputKind::Component),
        b"\0asm\x01\0\0\0" => Err(LoadFault::CoreModule),
        // The version of the format, in the last byte, does not matter here.
        first if first.get(..7) == artifact::MAGIC.get(..7) => Ok(InputKind::Artifact),
        elf if elf.starts_with(b"\x7fELF") => Err(LoadFault::NotSigned),
        _ => Err(LoadFault::NotWasm),
    }
}

/// Copies and hashes exactly this many bytes. Fails if there are fewer or more.
fn copy(from: &mut impl Read, bytes: u64, to: &mut impl Write) -> Result<ArtifactHash, LoadFault> {
    let mut hashing = Hashing { hash: Sha256::new(), to };
    let copied = io::copy(&mut from.take(bytes.saturating_add(1)), &mut hashing).map_err(LoadFault::Read)?;
    if copied == bytes {
        Ok(ArtifactHash::from_bytes(hashing.hash.finalize().into()))
    } else {
        Err(LoadFault::Changed)
    }
}

/// Hashes what is written through it.
struct Hashing<'w, W> {
    hash: Sha256,
    to: &'w mut W,
}

impl<W: Write> Write for Hashing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Opens a file to read it. Fails if the path is not below `plugin_dir`, if given, and follows no symlink there.
/// Without `plugin_dir`, only the path's last part must not be a symlink.
fn open(path: &Path, plugin_dir: Option<&Path>) -> Result<fs::File, LoadFault> {
    // A symlink at the end could lead elsewhere, and a FIFO without a writer would hang.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file_in = |dir: Option<&OwnedFd>, name: &Path| {
        let opened = match dir {
            Some(dir) => openat(dir, name, OFlags::RDONLY | flags, Mode::empty()),
            None => openat(CWD, name, OFlags::RDONLY | flags, Mode::empty()),
        };
        opened.map(fs::File::from).map_err(|error| match error {
            Errno::LOOP | Errno::NXIO => LoadFault::NotAFile,
            error => LoadFault::Read(error.into()),
        })
    };
    let Some(plugin_dir) = plugin_dir else { return file_in(None, path) };
    let inside = path.strip_prefix(plugin_dir).map_err(|_| LoadFault::Outside)?;
    let mut at = plugin_dir.to_owned();
    // The operator's directory may be a symlink itself. Inside it, where others may write, no symlink is followed.
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir =
        openat(CWD, plugin_dir, directory, Mode::empty()).map_err(|error| LoadFault::Read(error.into()))?;
    let mut parts = inside.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(LoadFault::Outside) };
        if parts.peek().is_none() {
            return file_in(Some(&dir), name.as_ref());
        }
        at.push(name);
        dir =
            openat(&dir, name, directory | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => LoadFault::Detour(at.clone()),
                error => LoadFault::Read(error.into()),
            })?;
    }
    Err(LoadFault::NotAFile)
}
