//! Functions of `wasi:filesystem` that only look, or set times. They refuse a name that is too long without copying it.
//! They also mend two points in which wasmtime-wasi departs from POSIX: paths with a slash or a dot at their end
//! (<https://github.com/bytecodealliance/wasmtime/issues/14380>), and directories with names that are not UTF-8.

use std::{collections::VecDeque, io, sync::Arc};

use rustix::fs::{AtFlags, Dir, FileType, statat};
use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource, ResourceType},
};
use wasmtime_wasi::{
    filesystem::{WasiFilesystemCtxView, WasiFilesystemView},
    p2::{
        FsResult,
        bindings::filesystem::types::{
            Descriptor, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, HostDescriptor,
            MetadataHashValue, NewTimestamp, PathFlags,
        },
    },
};

use super::{Name, VERSION, done, named};
use crate::{quota::blocking, sandbox::Guest};

/// How many entries of a directory are read at once.
const ENTRIES: usize = 256;

/// The hash of an entry that no path leads to.
const OF_NOTHING: MetadataHashValue = MetadataHashValue { lower: 1, upper: 0 };

/// A directory whose entries a guest reads.
struct Listing {
    /// The directory, until all its entries are read or reading fails.
    dir: Option<Dir>,
    entries: VecDeque<Result<DirectoryEntry, ErrorCode>>,
}

/// Replaces WASI's functions that look, or set times.
pub(super) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    replace!(linker,
        "[method]descriptor.stat-at" => stat_at,
        "[method]descriptor.metadata-hash-at" => metadata_hash_at,
        "[method]descriptor.set-times-at" => set_times_at,
        "[method]descriptor.readlink-at" => readlink_at,
        "[method]descriptor.read-directory" => read_directory,
        "[method]directory-entry-stream.read-directory-entry" => next_entry,
    );
    let mut files = linker.instance(&format!("wasi:filesystem/types@{VERSION}"))?;
    files.resource("directory-entry-stream", ResourceType::host::<Listing>(), |mut store, id| {
        store.data_mut().sandbox_mut().table.delete(Resource::<Listing>::new_own(id))?;
        Ok(())
    })
}

async fn stat_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, follow, path): (Resource<Descriptor>, PathFlags, Name),
) -> FsResult<DescriptorStat> {
    let path = named(&mut store, path)?;
    store.data_mut().filesystem().stat_at(dir, followed(follow, &path), path).await
}

async fn metadata_hash_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, follow, path): (Resource<Descriptor>, PathFlags, Name),
) -> FsResult<MetadataHashValue> {
    let path = named(&mut store, path)?;
    let (follow, is_for_show) = (followed(follow, &path), is_for_show(&path));
    match store.data_mut().filesystem().metadata_hash_at(dir, follow, path).await {
        Err(error) if is_for_show && matches!(error.downcast_ref(), Some(ErrorCode::NoEntry)) => {
            Ok(OF_NOTHING)
        }
        hash => hash,
    }
}

async fn set_times_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, follow, path, access, change): (Resource<Descriptor>, PathFlags, Name, NewTimestamp, NewTimestamp),
) -> FsResult<()> {
    let path = named(&mut store, path)?;
    store.data_mut().filesystem().set_times_at(dir, follow, path, access, change).await
}

async fn readlink_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, path): (Resource<Descriptor>, Name),
) -> FsResult<String> {
    let path = named(&mut store, path)?;
    store.data_mut().filesystem().readlink_at(dir, path).await
}

/// Whether a path may name an entry that is listed under another name than it has. Libraries ask for the hash of each
/// entry when they list a directory, and would fail at such an entry.
fn is_for_show(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains(char::REPLACEMENT_CHARACTER))
}

/// Returns how to follow a path. A path that ends in `/` or `/.` names what a symlink leads to.
fn followed(flags: PathFlags, path: &str) -> PathFlags {
    match path.ends_with('/') || path.ends_with("/.") {
        true => flags | PathFlags::SYMLINK_FOLLOW,
        false => flags,
    }
}

/// Returns the path of a directory to remove, without slashes at its end: with them, wasmtime-wasi would remove `.` in
/// it. Fails for a path that ends in `..`, where the guest may write: that directory is never empty, because it
/// contains the one that the path came through.
pub(super) async fn of_directory(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: String,
) -> FsResult<String> {
    let path = without_slash(&path).map(str::to_owned).unwrap_or(path);
    if path.rsplit('/').next() != Some("..") || !may_write(files, dir) {
        return Ok(path);
    }
    kind(files, dir, &path).await?;
    Err(ErrorCode::NotEmpty.into())
}

/// Returns the path without the slashes at its end, if it has some.
fn without_slash(path: &str) -> Option<&str> {
    path.ends_with('/').then(|| path.trim_end_matches('/')).filter(|name| !name.is_empty())
}

/// Fails for a path to unlink that ends in a slash, where the guest may write. Such a path names a directory, so
/// nothing is unlinked.
pub(super) async fn check_unlinked(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: &str,
) -> FsResult<()> {
    let Some(name) = without_slash(path).filter(|_| may_write(files, dir)) else { return Ok(()) };
    Err(match kind(files, dir, name).await? {
        DescriptorType::Directory => ErrorCode::IsDirectory.into(),
        _ => ErrorCode::NotDirectory.into(),
    })
}

/// Fails for the path of a new file or symlink that ends in a slash, where the guest may write. Only directories are
/// made under such a path.
pub(super) async fn check_new(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: &str,
) -> FsResult<()> {
    let Some(name) = without_slash(path).filter(|_| may_write(files, dir)) else { return Ok(()) };
    kind(files, dir, name).await?;
    Err(ErrorCode::Exist.into())
}

/// Fails if the new name of a file ends in a slash, where the guest may write. If the file itself is not there, fails
/// with that error.
pub(super) async fn check_linked(
    files: &mut WasiFilesystemCtxView<'_>,
    (dir, path): (&Resource<Descriptor>, &str),
    (other, new): (&Resource<Descriptor>, &str),
) -> FsResult<()> {
    if without_slash(new).is_some() {
        kind(files, dir, path).await?;
    }
    check_new(files, other, new).await
}

/// Returns the kind of entry at a path, without following a symlink that the path names.
async fn kind(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: &str,
) -> FsResult<DescriptorType> {
    let follow = followed(PathFlags::empty(), path);
    let stat = files.stat_at(Resource::new_borrow(dir.rep()), follow, path.to_owned()).await?;
    Ok(stat.type_)
}

/// Whether the guest may write in this directory. If not, the checks here pass, and WASI's own function returns the
/// error.
fn may_write(files: &WasiFilesystemCtxView<'_>, dir: &Resource<Descriptor>) -> bool {
    matches!(files.table.get(dir), Ok(Descriptor::Dir(dir)) if !dir.perms.write_not_permitted())
}

async fn read_directory<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir,): (Resource<Descriptor>,),
) -> FsResult<Resource<Listing>> {
    let sandbox = store.data_mut().sandbox_mut();
    sandbox.meter.enter_wasi();
    let Descriptor::Dir(dir) = sandbox.table.get(&dir)? else { return Err(ErrorCode::NotDirectory.into()) };
    let dir = Arc::clone(&dir.dir);
    let dir = blocking(sandbox.may_block, move || Dir::read_from(&*dir)).await.map_err(io::Error::from)?;
    let listing = Listing { dir: Some(dir), entries: VecDeque::new() };
    Ok(store.data_mut().sandbox_mut().table.push(listing)?)
}

async fn next_entry<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (id,): (Resource<Listing>,),
) -> FsResult<Option<DirectoryEntry>> {
    let sandbox = store.data_mut().sandbox_mut();
    sandbox.meter.enter_wasi();
    let listing = sandbox.table.get_mut(&id)?;
    if listing.entries.is_empty()
        && let Some(dir) = listing.dir.take()
    {
        let read = blocking(sandbox.may_block, move || read_some(dir)).await;
        *store.data_mut().sandbox_mut().table.get_mut(&id)? = read;
    }
    let listing = store.data_mut().sandbox_mut().table.get_mut(&id)?;
    Ok(listing.entries.pop_front().transpose()?)
}

/// Reads the next entries of a directory, at most [`ENTRIES`].
fn read_some(mut dir: Dir) -> Listing {
    let mut entries = VecDeque::with_capacity(ENTRIES);
    while entries.len() < ENTRIES {
        match dir.read() {
            None => return Listing { dir: None, entries },
            Some(Err(error)) => {
                entries.push_back(Err(io::Error::from(error).into()));
                return Listing { dir: None, entries };
            }
            Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Some(Ok(entry)) => {
                let type_ = match entry.file_type() {
                    // Not every file system tells the kind in the listing.
                    FileType::Unknown => dir
                        .fd()
                        .and_then(|dir| statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW))
                        .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                    known => known,
                };
                // A name that is not UTF-8 is listed with U+FFFD for what is wrong, so that programs see why a
                // directory is not empty. No path leads to such an entry.
                let name = entry.file_name().to_string_lossy().into_owned();
                entries.push_back(Ok(DirectoryEntry { type_: descriptor_type(type_), name }));
            }
        }
    }
    Listing { dir: Some(dir), entries }
}

/// Returns the kind as wasmtime-wasi's answers to `stat` have it.
fn descriptor_type(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::Fifo | FileType::Socket | FileType::Unknown => DescriptorType::Unknown,
    }
}
