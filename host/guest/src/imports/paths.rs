//! Functions of `wasi:filesystem` for which wasmtime-wasi departs from POSIX: paths with a slash or a dot at their end
//! (<https://github.com/bytecodealliance/wasmtime/issues/14380>), and directories with names that are not UTF-8.

use std::{collections::VecDeque, sync::Arc};

use rustix::fs::{AtFlags, Dir, FileType, statat};
use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource, ResourceType},
};
use wasmtime_wasi::{
    filesystem::{WasiFilesystemCtxView, WasiFilesystemView},
    p2::bindings::filesystem::types::{
        Descriptor, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, HostDescriptor,
        MetadataHashValue, PathFlags,
    },
};

use super::{Async, Name, VERSION, done, named};
use crate::{quota::blocking, sandbox::Guest};

/// Entries of a directory that are read at once.
const ENTRIES: usize = 256;

/// The hash of an entry to which no path leads.
const OF_NOTHING: MetadataHashValue = MetadataHashValue { lower: 1, upper: 0 };

type Outcome<T> = Result<T, ErrorCode>;

/// A directory whose entries a guest reads.
struct Listing {
    /// None once all has been read.
    dir: Option<Dir>,
    entries: VecDeque<Outcome<DirectoryEntry>>,
}

/// Replaces WASI's definitions.
pub(super) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut files = linker.instance(&format!("wasi:filesystem/types@{VERSION}"))?;
    files.func_wrap_async(
        "[method]descriptor.stat-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, follow, path): (Resource<Descriptor>, PathFlags, Name)|
         -> Async<'_, Outcome<DescriptorStat>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                done(store.data_mut().filesystem().stat_at(dir, followed(follow, &path), path).await)
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.metadata-hash-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, follow, path): (Resource<Descriptor>, PathFlags, Name)|
         -> Async<'_, Outcome<MetadataHashValue>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                let (follow, is_for_show) = (followed(follow, &path), is_for_show(&path));
                let hash = done(store.data_mut().filesystem().metadata_hash_at(dir, follow, path).await)?;
                Ok(match hash {
                    (Err(ErrorCode::NoEntry),) if is_for_show => (Ok(OF_NOTHING),),
                    hash => hash,
                })
            })
        },
    )?;
    files.resource("directory-entry-stream", ResourceType::host::<Listing>(), |mut store, id| {
        store.data_mut().sandbox_mut().table.delete(Resource::<Listing>::new_own(id))?;
        Ok(())
    })?;
    files.func_wrap_async(
        "[method]descriptor.read-directory",
        |mut store: StoreContextMut<'_, G>,
         (dir,): (Resource<Descriptor>,)|
         -> Async<'_, Outcome<Resource<Listing>>> {
            Box::new(async move { Ok((read_directory(&mut store, &dir).await?,)) })
        },
    )?;
    files.func_wrap_async(
        "[method]directory-entry-stream.read-directory-entry",
        |mut store: StoreContextMut<'_, G>,
         (listing,): (Resource<Listing>,)|
         -> Async<'_, Outcome<Option<DirectoryEntry>>> {
            Box::new(async move { Ok((next_entry(&mut store, &listing).await?,)) })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Whether a path may name an entry that is listed with another name than it has. Libraries ask for the hash of each entry
/// as they list a directory, and would end with an error there.
fn is_for_show(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains(char::REPLACEMENT_CHARACTER))
}

/// How a path is followed: one that ends in `/` or `/.` names what a symlink leads to.
fn followed(flags: PathFlags, path: &str) -> PathFlags {
    match path.ends_with('/') || path.ends_with("/.") {
        true => flags | PathFlags::SYMLINK_FOLLOW,
        false => flags,
    }
}

/// The path of a directory to remove. Slashes at its end mean nothing there; wasmtime-wasi would remove `.` in it. Fails
/// for `..` at its end: that directory has at least the one on the way to it.
pub(super) async fn of_directory(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: String,
) -> wasmtime::Result<Outcome<String>> {
    let path = without_slash(&path).map(str::to_owned).unwrap_or(path);
    if path.rsplit('/').next() != Some("..") || !may_write(files, dir) {
        return Ok(Ok(path));
    }
    Ok(kind(files, dir, &path).await?.and(Err(ErrorCode::NotEmpty)))
}

/// The path before its last slashes, if there are some.
fn without_slash(path: &str) -> Option<&str> {
    path.ends_with('/').then(|| path.trim_end_matches('/')).filter(|name| !name.is_empty())
}

/// Fails for a path to unlink that ends in a slash. Such a path names a directory, so nothing is unlinked.
pub(super) async fn check_unlinked(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: &str,
) -> wasmtime::Result<Outcome<()>> {
    let Some(name) = without_slash(path).filter(|_| may_write(files, dir)) else { return Ok(Ok(())) };
    Ok(Err(match kind(files, dir, name).await? {
        Ok(DescriptorType::Directory) => ErrorCode::IsDirectory,
        Ok(_) => ErrorCode::NotDirectory,
        Err(error) => error,
    }))
}

/// Fails for the path of a new file or symlink that ends in a slash: only directories are made under such a path.
pub(super) async fn check_new(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: &str,
) -> wasmtime::Result<Outcome<()>> {
    let Some(name) = without_slash(path).filter(|_| may_write(files, dir)) else { return Ok(Ok(())) };
    Ok(kind(files, dir, name).await?.and(Err(ErrorCode::Exist)))
}

/// Fails for such a path as a new name of a file, and if that file is not there.
pub(super) async fn check_linked(
    files: &mut WasiFilesystemCtxView<'_>,
    (dir, path): (&Resource<Descriptor>, &str),
    (other, new): (&Resource<Descriptor>, &str),
) -> wasmtime::Result<Outcome<()>> {
    if without_slash(new).is_some()
        && let Err(error) = kind(files, dir, path).await?
    {
        return Ok(Err(error));
    }
    check_new(files, other, new).await
}

/// What is there, without following a symlink that the path names.
async fn kind(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    path: &str,
) -> wasmtime::Result<Outcome<DescriptorType>> {
    let follow = followed(PathFlags::empty(), path);
    match files.stat_at(Resource::new_borrow(dir.rep()), follow, path.to_owned()).await {
        Ok(stat) => Ok(Ok(stat.type_)),
        Err(error) => Ok(Err(error.downcast()?)),
    }
}

/// Otherwise WASI's own function says why not.
fn may_write(files: &WasiFilesystemCtxView<'_>, dir: &Resource<Descriptor>) -> bool {
    matches!(files.table.get(dir), Ok(Descriptor::Dir(dir)) if !dir.perms.write_not_permitted())
}

async fn read_directory<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    dir: &Resource<Descriptor>,
) -> wasmtime::Result<Outcome<Resource<Listing>>> {
    let sandbox = store.data_mut().sandbox_mut();
    sandbox.meter.enter_wasi();
    let Descriptor::Dir(dir) = sandbox.table.get(dir)? else { return Ok(Err(ErrorCode::NotDirectory)) };
    let dir = Arc::clone(&dir.dir);
    match blocking(sandbox.may_block, move || Dir::read_from(&*dir)).await {
        Ok(dir) => {
            let listing = Listing { dir: Some(dir), entries: VecDeque::new() };
            Ok(Ok(store.data_mut().sandbox_mut().table.push(listing)?))
        }
        Err(error) => Ok(Err(std::io::Error::from(error).into())),
    }
}

async fn next_entry<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    id: &Resource<Listing>,
) -> wasmtime::Result<Outcome<Option<DirectoryEntry>>> {
    let sandbox = store.data_mut().sandbox_mut();
    sandbox.meter.enter_wasi();
    let listing = sandbox.table.get_mut(id)?;
    if listing.entries.is_empty()
        && let Some(dir) = listing.dir.take()
    {
        let read = blocking(sandbox.may_block, move || read_some(dir)).await;
        *store.data_mut().sandbox_mut().table.get_mut(id)? = read;
    }
    let listing = store.data_mut().sandbox_mut().table.get_mut(id)?;
    Ok(listing.entries.pop_front().transpose())
}

/// The next entries of a directory.
fn read_some(mut dir: Dir) -> Listing {
    let mut entries = VecDeque::with_capacity(ENTRIES);
    while entries.len() < ENTRIES {
        match dir.read() {
            None => return Listing { dir: None, entries },
            Some(Err(error)) => {
                entries.push_back(Err(std::io::Error::from(error).into()));
                return Listing { dir: None, entries };
            }
            Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Some(Ok(entry)) => {
                let type_ = match entry.file_type() {
                    // Not every file system says it here.
                    FileType::Unknown => dir
                        .fd()
                        .and_then(|dir| statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW))
                        .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                    known => known,
                };
                // A name that is not UTF-8 is shown, with U+FFFD in place of what is wrong: programs count it, and see
                // why a directory is not empty. No path leads to it.
                let name = entry.file_name().to_string_lossy().into_owned();
                entries.push_back(Ok(DirectoryEntry { type_: descriptor_type(type_), name }));
            }
        }
    }
    Listing { dir: Some(dir), entries }
}

/// As in wasmtime-wasi's answers to `stat`.
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
