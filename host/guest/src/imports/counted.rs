//! Functions of `wasi:filesystem` that change directories. They count what they add, and fail when a granted directory
//! has no room for it.

use std::{
    collections::HashMap,
    fs::File,
    sync::{Arc, Weak},
};

use futures_util::{FutureExt, future::BoxFuture};
use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource, ResourceTableError},
};
use wasmtime_wasi::{
    filesystem::{WasiFilesystemCtxView, WasiFilesystemView},
    p2::{
        DynOutputStream, FsResult,
        bindings::filesystem::{
            preopens::Host,
            types::{
                Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, Filesize,
                HostDescriptor, OpenFlags, PathFlags,
            },
        },
    },
};

use super::{Name, Payload, VERSION, done, named, narrowed::has_room_for_file, paths, short};
use crate::{
    abi::Handed,
    quota::{Amount, BLOCK, CountedStream, Quota, blocks},
    sandbox::Guest,
};

/// Open files and directories that a quota counts.
#[derive(Default)]
pub(crate) struct CountedFiles {
    /// The quotas of granted directories, by their guest paths.
    grants: Vec<(String, Quota)>,
    /// The quotas of open files and directories, by the address of the file. A weak reference keeps the address unique.
    opened: HashMap<usize, (Weak<File>, Quota)>,
}

impl CountedFiles {
    pub(crate) fn new(grants: Vec<(String, Quota)>) -> Self {
        Self { grants, opened: HashMap::new() }
    }

    /// Returns the quota of the granted directory at this path of the guest, if it has one.
    fn granted(&self, guest: &str) -> Option<Quota> {
        let (_, quota) = self.grants.iter().find(|(path, _)| path == guest)?;
        Some(quota.clone())
    }

    fn quota(&self, descriptor: &Descriptor) -> Option<Quota> {
        let (_, quota) = self.opened.get(&(Arc::as_ptr(file(descriptor)) as usize))?;
        Some(quota.clone())
    }

    /// Registers an open file or directory. Forgets those that were closed whenever there is no room for one more.
    fn add(&mut self, descriptor: &Descriptor, quota: Quota) {
        if self.opened.len() == self.opened.capacity() {
            self.opened.retain(|_, (file, _)| file.strong_count() > 0);
        }
        let file = file(descriptor);
        self.opened.insert(Arc::as_ptr(file) as usize, (Arc::downgrade(file), quota));
    }
}

/// Returns the open file of a descriptor, which for a directory is the directory itself.
fn file(descriptor: &Descriptor) -> &Arc<File> {
    match descriptor {
        Descriptor::File(file) => &file.file,
        Descriptor::Dir(dir) => &dir.dir,
    }
}

/// Replaces WASI's functions that open, add, change or remove files and directories.
pub(super) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    linker
        .instance(&format!("wasi:filesystem/preopens@{VERSION}"))?
        .func_wrap("get-directories", |mut store: StoreContextMut<'_, G>, (): ()| {
            Ok((directories(&mut store)?,))
        })?;
    replace!(linker,
        "[method]descriptor.open-at" => open_at,
        "[method]descriptor.write" => write,
        "[method]descriptor.set-size" => set_size,
        "[method]descriptor.create-directory-at" => create_directory_at,
        "[method]descriptor.symlink-at" => symlink_at,
        "[method]descriptor.link-at" => link_at,
        "[method]descriptor.rename-at" => rename_at,
        "[method]descriptor.unlink-file-at" => unlink_file_at,
        "[method]descriptor.remove-directory-at" => remove_directory_at,
    );
    let mut files = linker.instance(&format!("wasi:filesystem/types@{VERSION}"))?;
    files.func_wrap(
        "[method]descriptor.write-via-stream",
        |mut store: StoreContextMut<'_, G>, (file, at): (Resource<Descriptor>, Filesize)| {
            let counted = counted(&mut store, &file)?;
            let stream = store.data_mut().filesystem().write_via_stream(file, at);
            done(count_stream(&mut store, counted, stream, Some(at)))
        },
    )?;
    files.func_wrap(
        "[method]descriptor.append-via-stream",
        |mut store: StoreContextMut<'_, G>, (file,): (Resource<Descriptor>,)| {
            let counted = counted(&mut store, &file)?;
            let stream = store.data_mut().filesystem().append_via_stream(file);
            done(count_stream(&mut store, counted, stream, None))
        },
    )
}

async fn open_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, follow, path, open, flags): (Resource<Descriptor>, PathFlags, Name, OpenFlags, DescriptorFlags),
) -> FsResult<Resource<Descriptor>> {
    let path = named(&mut store, path)?;
    open_named(&mut store, dir, follow, path, open, flags).await
}

async fn write<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (file, bytes, at): (Resource<Descriptor>, Payload, Filesize),
) -> FsResult<Filesize> {
    let counted = counted(&mut store, &file)?;
    let Handed::Whole(bytes) = bytes else { return Err(ErrorCode::MessageSize.into()) };
    let bytes = bytes.as_le_slice(&store).to_vec();
    match counted {
        None => store.data_mut().filesystem().write(file, bytes, at).await,
        Some((quota, counted)) => Ok(quota.write(counted, bytes, Some(at)).await? as u64),
    }
}

async fn set_size<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (file, size): (Resource<Descriptor>, Filesize),
) -> FsResult<()> {
    match counted(&mut store, &file)? {
        None => store.data_mut().filesystem().set_size(file, size).await,
        Some((quota, counted)) => Ok(quota.set_size(counted, size).await?),
    }
}

async fn create_directory_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, path): (Resource<Descriptor>, Name),
) -> FsResult<()> {
    let path = named(&mut store, path)?;
    change(&mut store, vec![entry(&dir, &path)], Some(0), |mut files| {
        async move { files.create_directory_at(dir, path).await }.boxed()
    })
    .await
}

async fn symlink_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, target, path): (Resource<Descriptor>, Name, Name),
) -> FsResult<()> {
    let (path, target) = (named(&mut store, path)?, short(target)?);
    paths::check_new(&mut store.data_mut().filesystem(), &dir, &path).await?;
    let bytes = target.len() as u64;
    change(&mut store, vec![entry(&dir, &path)], Some(bytes), |mut files| {
        async move { files.symlink_at(dir, target, path).await }.boxed()
    })
    .await
}

async fn link_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, follow, path, other, new): (Resource<Descriptor>, PathFlags, Name, Resource<Descriptor>, Name),
) -> FsResult<()> {
    let (path, new) = (named(&mut store, path)?, short(new)?);
    if counted(&mut store, &dir)?.is_some() || counted(&mut store, &other)?.is_some() {
        // Refused, because a file with two names could be counted under either.
        return Err(ErrorCode::NotPermitted.into());
    }
    let mut files = store.data_mut().filesystem();
    if !follow.contains(PathFlags::SYMLINK_FOLLOW) {
        paths::check_linked(&mut files, (&dir, &path), (&other, &new)).await?;
    }
    files.link_at(dir, follow, path, other, new).await
}

async fn rename_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, path, other, new): (Resource<Descriptor>, Name, Resource<Descriptor>, Name),
) -> FsResult<()> {
    let (path, new) = (named(&mut store, path)?, short(new)?);
    change(&mut store, vec![entry(&dir, &path), entry(&other, &new)], None, |mut files| {
        async move { files.rename_at(dir, path, other, new).await }.boxed()
    })
    .await
}

async fn unlink_file_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, path): (Resource<Descriptor>, Name),
) -> FsResult<()> {
    let path = named(&mut store, path)?;
    paths::check_unlinked(&mut store.data_mut().filesystem(), &dir, &path).await?;
    change(&mut store, vec![entry(&dir, &path)], None, |mut files| {
        async move { files.unlink_file_at(dir, path).await }.boxed()
    })
    .await
}

async fn remove_directory_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, path): (Resource<Descriptor>, Name),
) -> FsResult<()> {
    let path = named(&mut store, path)?;
    let path = paths::of_directory(&mut store.data_mut().filesystem(), &dir, path).await?;
    change(&mut store, vec![entry(&dir, &path)], None, |mut files| {
        async move { files.remove_directory_at(dir, path).await }.boxed()
    })
    .await
}

/// Opens a file or directory, or makes a new file if there is room. What is opened in a counted directory has the quota
/// of that directory.
pub(super) async fn open_named<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    dir: Resource<Descriptor>,
    follow: PathFlags,
    path: String,
    open: OpenFlags,
    flags: DescriptorFlags,
) -> FsResult<Resource<Descriptor>> {
    if !has_room_for_file(store) {
        return Err(ErrorCode::InsufficientMemory.into());
    }
    let Some((quota, _)) = counted(store, &dir)? else {
        return store.data_mut().filesystem().open_at(dir, follow, path, open, flags).await;
    };
    let opened = if open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
        let entry = (dir.rep(), follow, path.clone());
        let new = open.contains(OpenFlags::CREATE).then_some(0);
        change(store, vec![entry], new, |mut files| {
            async move { files.open_at(dir, follow, path, open, flags).await }.boxed()
        })
        .await?
    } else {
        store.data_mut().filesystem().open_at(dir, follow, path, open, flags).await?
    };
    let sandbox = store.data_mut().sandbox_mut();
    let descriptor = sandbox.table.get(&opened)?.clone();
    sandbox.counted.add(&descriptor, quota.clone());
    if let Descriptor::File(file) = descriptor {
        quota.opened(&file.file).await;
    }
    Ok(opened)
}

/// Returns the granted directories, and registers those that are counted.
fn directories<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
    let directories = store.data_mut().filesystem().get_directories()?;
    let sandbox = store.data_mut().sandbox_mut();
    for (descriptor, guest) in &directories {
        if let Some(quota) = sandbox.counted.granted(guest) {
            sandbox.counted.add(sandbox.table.get(descriptor)?, quota);
        }
    }
    Ok(directories)
}

/// Returns the quota of an open file or directory, if it has one, and the file itself. Charges for the call here,
/// because the quota may refuse the call before WASI's own function charges for it.
fn counted<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    descriptor: &Resource<Descriptor>,
) -> Result<Option<(Quota, Arc<File>)>, ResourceTableError> {
    let sandbox = store.data_mut().sandbox_mut();
    sandbox.meter.enter_wasi();
    if sandbox.counted.grants.is_empty() {
        return Ok(None);
    }
    let descriptor = sandbox.table.get(descriptor)?;
    Ok(sandbox.counted.quota(descriptor).map(|quota| (quota, file(descriptor).clone())))
}

/// Replaces a stream by one that counts, if the file is in a counted directory.
fn count_stream<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    counted: Option<(Quota, Arc<File>)>,
    stream: FsResult<Resource<DynOutputStream>>,
    at: Option<u64>,
) -> FsResult<Resource<DynOutputStream>> {
    let stream = stream?;
    if let Some((quota, file)) = counted {
        *store.data_mut().sandbox_mut().table.get_mut(&stream)? =
            Box::new(CountedStream::new(quota, file, at));
    }
    Ok(stream)
}

/// A directory's handle, a path in it, and whether to follow a symlink there.
type EntryPath = (u32, PathFlags, String);

/// Returns the path of an entry where no symlink is followed.
fn entry(dir: &Resource<Descriptor>, path: &str) -> EntryPath {
    (dir.rep(), PathFlags::empty(), path.to_owned())
}

/// Calls `act`, which changes these entries, and counts the change if they are in a counted directory. Refuses to make
/// an entry of `new` bytes without room, and a change of entries that are not counted together.
async fn change<G: Guest, T>(
    store: &mut StoreContextMut<'_, G>,
    entries: Vec<EntryPath>,
    new: Option<u64>,
    act: impl for<'a> FnOnce(WasiFilesystemCtxView<'a>) -> BoxFuture<'a, FsResult<T>>,
) -> FsResult<T> {
    let mut quotas = Vec::with_capacity(entries.len());
    for (dir, ..) in &entries {
        let counted = counted(store, &Resource::new_borrow(*dir))?;
        quotas.push(counted.map(|(quota, _)| quota));
    }
    let mut pairs = quotas.iter().zip(quotas.iter().skip(1));
    if pairs.any(|(one, other)| !Quota::are_together(one.as_ref(), other.as_ref())) {
        return Err(ErrorCode::CrossDevice.into());
    }
    let Some(quota) = quotas.into_iter().next().flatten() else {
        return act(store.data_mut().filesystem()).await;
    };
    let turn = quota.turn().await;
    let before = amount(store, &entries).await;
    let (turn, has_room) = match new {
        Some(bytes) if before.files == 0 => turn.has_room(bytes).await,
        _ => (turn, true),
    };
    if !has_room {
        return Err(ErrorCode::InsufficientSpace.into());
    }
    let done_so = act(store.data_mut().filesystem()).await;
    let after = amount(store, &entries).await;
    turn.changed(before, after).await;
    done_so
}

/// Returns how many of these entries exist, and the bytes that they count as.
async fn amount<G: Guest>(store: &mut StoreContextMut<'_, G>, entries: &[EntryPath]) -> Amount {
    let mut amount = Amount::default();
    for (dir, follow, path) in entries {
        let mut files = store.data_mut().filesystem();
        let stat = files.stat_at(Resource::new_borrow(*dir), *follow, path.clone()).await;
        if let Ok(DescriptorStat { type_, size, .. }) = stat {
            let is_dir = type_ == DescriptorType::Directory;
            amount.files += 1;
            amount.bytes += if is_dir { BLOCK } else { blocks(size) };
        }
    }
    amount
}
