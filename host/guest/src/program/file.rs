//! A file that may be an extension: opened where nothing leads astray, sized up, hashed.
//!
//! Holds none of the file's content. Who reads it again is told if that has changed.

use std::{
    fs,
    io::{self, Read, Seek, Write},
    os::fd::OwnedFd,
    path::{Component, Path},
    time::SystemTime,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};
use sha2::{Digest, Sha256};
use weir_config::ArtifactHash;

use super::{
    artifact,
    error::LoadFault,
    stamp::{self, FileStamp},
};

/// What a file claims to be by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A component.
    Component,
    /// A component that was compiled and signed.
    Artifact,
}

/// An open file.
#[derive(Debug)]
pub(super) struct PluginFile {
    file: fs::File,
    pub(super) kind: FileKind,
    pub(super) bytes: u64,
    pub(super) hash: ArtifactHash,
    /// Had before it was read. None: what is done to it meanwhile, or later, might not show.
    pub(super) stamp: Option<FileStamp>,
}

impl PluginFile {
    /// Opens a component of at most `file_size` bytes, or an artifact whose code has at most `code_size`, and reads
    /// through it once. Below `plugin_dir`, if there is one, no symlink is followed.
    pub(super) fn open(
        path: &Path,
        plugin_dir: Option<&Path>,
        file_size: u64,
        code_size: u64,
    ) -> Result<Self, LoadFault> {
        let now = SystemTime::now();
        let mut file = open(path, plugin_dir)?;
        let metadata = file.metadata().map_err(LoadFault::Read)?;
        if !metadata.is_file() {
            return Err(LoadFault::NotAFile);
        }
        let bytes = metadata.len();
        let code = bytes.saturating_sub(artifact::HEADER as u64);
        if bytes > file_size && code > code_size {
            return Err(LoadFault::TooLarge { bytes, allowed: file_size });
        }
        let kind = kind(&file)?;
        match kind {
            FileKind::Component if bytes > file_size => {
                return Err(LoadFault::TooLarge { bytes, allowed: file_size });
            }
            FileKind::Artifact => super::code::check(code, code_size)?,
            FileKind::Component => {}
        }
        let stamp =
            Some(FileStamp::from(&metadata)).filter(|stamp| stamp.is_settled(now) && stamp::is_exact(&file));
        file.rewind().map_err(LoadFault::Read)?;
        let hash = copy(&mut file, bytes, &mut io::sink())?;
        Ok(Self { file, kind, bytes, hash, stamp })
    }

    /// The first bytes of the file, at most so many.
    pub(super) fn start(&mut self, bytes: u64) -> Result<Vec<u8>, LoadFault> {
        let mut start = Vec::new();
        self.file.rewind().map_err(LoadFault::Read)?;
        (&self.file).take(bytes).read_to_end(&mut start).map_err(LoadFault::Read)?;
        Ok(start)
    }

    /// Writes the file's content, which is what was hashed, or fails at its end.
    pub(super) fn copy_to(&mut self, to: &mut impl Write) -> Result<(), LoadFault> {
        self.file.rewind().map_err(LoadFault::Read)?;
        if copy(&mut self.file, self.bytes, to)? == self.hash { Ok(()) } else { Err(LoadFault::Changed) }
    }

    /// The file's content, which is what was hashed.
    pub(super) fn read(&mut self) -> Result<Vec<u8>, LoadFault> {
        let mut content = Vec::new();
        content
            .try_reserve_exact(usize::try_from(self.bytes).unwrap_or(usize::MAX))
            .map_err(|_| LoadFault::Read(io::ErrorKind::OutOfMemory.into()))?;
        self.copy_to(&mut content)?;
        Ok(content)
    }
}

fn open(path: &Path, plugin_dir: Option<&Path>) -> Result<fs::File, LoadFault> {
    // What follows no symlink and waits for no writer cannot be led elsewhere, or hang.
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
    // The operator's own directory may be a symlink; what is in it is not the operator's alone.
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

fn kind(file: &fs::File) -> Result<FileKind, LoadFault> {
    let mut start = Vec::with_capacity(8);
    file.take(8).read_to_end(&mut start).map_err(LoadFault::Read)?;
    match &*start {
        b"\0asm\x0d\0\x01\0" => Ok(FileKind::Component),
        b"\0asm\x01\0\0\0" => Err(LoadFault::CoreModule),
        // Whatever the version of its format.
        start if start.get(..7) == artifact::MAGIC.get(..7) => Ok(FileKind::Artifact),
        elf if elf.starts_with(b"\x7fELF") => Err(LoadFault::NotSigned),
        _ => Err(LoadFault::NotWasm),
    }
}

/// Copies and hashes a file that must have this many bytes.
fn copy(file: &mut fs::File, bytes: u64, to: &mut impl Write) -> Result<ArtifactHash, LoadFault> {
    let mut hashing = Hashing { hash: Sha256::new(), to };
    let copied = io::copy(&mut file.take(bytes.saturating_add(1)), &mut hashing).map_err(LoadFault::Read)?;
    if copied == bytes {
        Ok(ArtifactHash::from_bytes(hashing.hash.finalize().into()))
    } else {
        Err(LoadFault::Changed)
    }
}

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
