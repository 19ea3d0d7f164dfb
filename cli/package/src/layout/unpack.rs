//! Unpacks the tar of a package into a private directory. Every entry must be harmless, also one that is not needed.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufReader, Read},
    path::Path,
};

use tar::{Archive, Entry, EntryType, PaxExtensions};
use tempfile::TempDir;

use super::{
    BLOBS, MAX_CONFIG, MAX_MANIFEST, ReadError,
    read::{io_error, is_of_a_layout, open},
};
use crate::{Digest, digest};

/// The most entries. A package has seven, and what copies of it add is little.
const MAX_ENTRIES: usize = 256;

/// The most bytes of a header with attributes of one file. They hold times and the like.
const MAX_ATTRIBUTES: u64 = 16 * 1024;

/// Attributes of PAX that do not change what an entry is, and the beginnings of names of others.
const ATTRIBUTES: [&str; 8] = ["mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment"];
const ATTRIBUTES_OF_TOOLS: [&str; 2] = ["SCHILY.", "LIBARCHIVE."];

/// Unpacks what belongs to the layout in a tar, whose component has at most `most` bytes, into a private directory.
///
/// # Errors
///
/// Fails if it is no tar, or is damaged. An entry that could lead out of the package is refused, whether it is needed or
/// not.
pub fn unpack_private(path: &Path, most: u64) -> Result<TempDir, ReadError> {
    let private = TempDir::with_prefix("weir-package-");
    let private = private.map_err(|source| io_error(&std::env::temp_dir(), source))?;
    unpack(path, private.path(), most)?;
    Ok(private)
}

/// Unpacks what belongs to a layout into a new directory. Blobs are verified against their names.
pub(super) fn unpack(path: &Path, to: &Path, component: u64) -> Result<(), ReadError> {
    let file = open(path).map_err(|source| io_error(path, source))?;
    fs::create_dir_all(to.join(BLOBS)).map_err(|source| io_error(to, source))?;
    let damaged = |error: io::Error| ReadError::Tar {
        path: path.to_owned(),
        message: digest::shown(&error.to_string()),
    };
    let mut archive = Archive::new(BufReader::new(file));
    // Raw: names and sizes are those of each header alone.
    let entries = archive.entries().map_err(damaged)?.raw(true);
    let mut names = BTreeSet::new();
    let mut room = component.saturating_add(MAX_CONFIG).saturating_add(2 * MAX_MANIFEST);
    for (count, entry) in entries.enumerate() {
        let mut entry = entry.map_err(damaged)?;
        let shown: String = entry.path_bytes().escape_ascii().to_string().chars().take(256).collect();
        let refused = |why: &str| ReadError::Entry { name: shown.clone(), why: why.to_owned() };
        if count == MAX_ENTRIES {
            return Err(refused(&format!("it is one too many, of at most {MAX_ENTRIES}")));
        }
        let size = entry.size();
        room = room.checked_sub(size).ok_or_else(|| refused("all entries together are too large"))?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Directory => {}
            EntryType::XHeader | EntryType::XGlobalHeader => {
                attributes(&mut entry, size).map_err(|why| refused(&why))?;
                continue;
            }
            other => return Err(refused(kind(other))),
        }
        let name = safe_name(&entry).map_err(refused)?;
        if !names.insert(name.clone()) {
            return Err(refused("there is another of that name"));
        }
        if entry.header().entry_type() == EntryType::Directory {
            if size > 0 {
                return Err(refused("a directory has no content"));
            }
        } else if is_of_a_layout(&name) {
            unpack_file(&mut entry, &name, &to.join(&name)).map_err(|error| match error {
                Fault::Io(error) => damaged(error),
                Fault::Of(error) => error,
            })?;
        }
    }
    Ok(())
}

enum Fault {
    Io(io::Error),
    Of(ReadError),
}

fn unpack_file(entry: &mut impl Read, name: &str, to: &Path) -> Result<(), Fault> {
    let digest: Option<Digest> = match name.strip_prefix(BLOBS).map(|rest| rest.trim_start_matches('/')) {
        Some(digits) => Some(format!("sha256:{digits}").parse().map_err(|error: crate::DigestError| {
            Fault::Of(ReadError::Entry { name: name.to_owned(), why: error.to_string() })
        })?),
        None => None,
    };
    let mut file = File::create_new(to).map_err(|error| Fault::Of(io_error(to, error)))?;
    let (_, found) = digest::copy(entry, &mut file, u64::MAX).map_err(Fault::Io)?;
    match digest {
        Some(expected) if expected != found => Err(Fault::Of(ReadError::Damaged {
            name: name.to_owned(),
            expected: expected.to_string(),
            found: found.to_string(),
        })),
        _ => Ok(()),
    }
}

/// The name of an entry without `./`, or what is wrong with it.
fn safe_name<R: Read>(entry: &Entry<'_, R>) -> Result<String, &'static str> {
    let bytes = entry.path_bytes();
    let name = str::from_utf8(&bytes).map_err(|_| "its name is not UTF-8")?;
    if name.starts_with('/') {
        return Err("its path is absolute");
    }
    if name.contains(['\0', '\\']) {
        return Err("its name has characters that no package has");
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err("its path has a `..`");
    }
    Ok(parts.join("/"))
}

/// Reads the attributes of the next entry. Refuses those that would change its name, kind or size.
fn attributes(entry: &mut impl Read, size: u64) -> Result<(), String> {
    if size > MAX_ATTRIBUTES {
        return Err(format!("its attributes have more than {MAX_ATTRIBUTES} bytes"));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    for attribute in PaxExtensions::new(&bytes) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let key = attribute.key().map_err(|_| "an attribute's name is not UTF-8")?;
        let is_harmless =
            ATTRIBUTES.contains(&key) || ATTRIBUTES_OF_TOOLS.iter().any(|start| key.starts_with(start));
        if !is_harmless {
            return Err(format!("it has the attribute `{}`, which no package needs", key.escape_debug()));
        }
    }
    Ok(())
}

/// What is wrong with an entry of this kind.
fn kind(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Link => "it is a hard link",
        EntryType::Symlink => "it is a symbolic link",
        EntryType::Char | EntryType::Block => "it is a device",
        EntryType::Fifo => "it is a FIFO",
        EntryType::GNUSparse => "it is sparse",
        EntryType::GNULongName | EntryType::GNULongLink => "its name is longer than a package needs",
        _ => "it is neither a file nor a directory",
    }
}
