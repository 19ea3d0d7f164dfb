//! Functions of `wasi:filesystem` that fail when a granted directory has no room for what they add.

use std::{
    collections::HashMap,
    fs::File,
    sync::{Arc, Weak},
};

use futures_util::{FutureExt, future::BoxFuture};
use wasmtime::{
    StoreContextMut,
    component::{Linker, LinkerInstance, Resource},
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

use super::{Async, Name, Payload, VERSION, done, named, paths};
use crate::{
    abi::Handed,
    quota::{BLOCK, CountedStream, Found, Quota, blocks},
    sandbox::Guest,
};

type Outcome<T> = Result<T, ErrorCode>;

/// Open files and directories that a quota counts.
#[derive(Default)]
pub(crate) struct CountedFiles {
    /// By the guest's names of the directories.
    grants: Vec<(String, Quota)>,
    /// By address of the file, unique while it is listed.
    opened: HashMap<usize, (Weak<File>, Quota)>,
}

impl CountedFiles {
    pub(crate) fn new(grants: Vec<(String, Quota)>) -> Self {
        Self { grants, opened: HashMap::new() }
    }

    fn granted(&self, guest: &str) -> Option<Quota> {
        let (_, quota) = self.grants.iter().find(|(path, _)| path == guest)?;
        Some(quota.clone())
    }

    fn quota(&self, descriptor: &Descriptor) -> Option<Quota> {
        let (_, quota) = self.opened.get(&(Arc::as_ptr(file(descriptor)) as usize))?;
        Some(quota.clone())
    }

    fn add(&mut self, descriptor: &Descriptor, quota: Quota) {
        if self.opened.len() == self.opened.capacity() {
            self.opened.retain(|_, (file, _)| file.strong_count() > 0);
        }
        let file = file(descriptor);
        self.opened.insert(Arc::as_ptr(file) as usize, (Arc::downgrade(file), quota));
    }
}

fn file(descriptor: &Descriptor) -> &Arc<File> {
    match descriptor {
        Descriptor::File(file) => &file.file,
        Descriptor::Dir(dir) => &dir.dir,
    }
}

/// Replaces WASI's definitions.
pub(super) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker
        .instance(&format!("wasi:filesystem/preopens@{VERSION}"))?
        .func_wrap("get-directories", |mut store: StoreContextMut<'_, G>, (): ()| {
            Ok((directories(&mut store)?,))
        })?;
    let mut files = linker.instance(&format!("wasi:filesystem/types@{VERSION}"))?;
    files.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, follow, path, open, flags): (_, _, Name, _, _)|
         -> Async<'_, Outcome<_>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                open_at(&mut store, dir, follow, path, open, flags).await
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.write",
        |mut store: StoreContextMut<'_, G>,
         (file, bytes, at): (Resource<Descriptor>, Payload, Filesize)|
         -> Async<'_, Outcome<Filesize>> {
            Box::new(async move {
                let counted = counted(&mut store, &file)?;
                let bytes = match bytes {
                    Handed::Whole(bytes) => bytes.as_le_slice(&store).to_vec(),
                    Handed::TooLarge(_) => return Ok((Err(ErrorCode::MessageSize),)),
                };
                let Some((quota, counted)) = counted else {
                    return done(store.data_mut().filesystem().write(file, bytes, at).await);
                };
                done(quota.write(counted, bytes, Some(at)).await.map(|n| n as u64).map_err(Into::into))
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.set-size",
        |mut store: StoreContextMut<'_, G>,
         (file, size): (Resource<Descriptor>, Filesize)|
         -> Async<'_, Outcome<()>> {
            Box::new(async move {
                let Some((quota, counted)) = counted(&mut store, &file)? else {
                    return done(store.data_mut().filesystem().set_size(file, size).await);
                };
                done(quota.set_size(counted, size).await.map_err(Into::into))
            })
        },
    )?;
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
    )?;
    names(&mut files)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// The functions that create, change or remove names.
fn names<G: Guest>(files: &mut LinkerInstance<'_, G>) -> wasmtime::Result<()> {
    files.func_wrap_async(
        "[method]descriptor.create-directory-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, path): (Resource<Descriptor>, Name)|
         -> Async<'_, Outcome<()>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                let places = vec![place(&dir, &path)];
                change(&mut store, places, Some(0), |mut files| {
                    async move { files.create_directory_at(dir, path).await }.boxed()
                })
                .await
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.symlink-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, target, path): (Resource<Descriptor>, Name, Name)|
         -> Async<'_, Outcome<()>> {
            Box::new(async move {
                let (Ok(target), Ok(path)) = (target.0, named(&mut store, path)) else {
                    return Ok((Err(ErrorCode::NameTooLong),));
                };
                if let Err(error) = paths::check_new(&mut store.data_mut().filesystem(), &dir, &path).await? {
                    return Ok((Err(error),));
                }
                let (places, bytes) = (vec![place(&dir, &path)], target.len() as u64);
                change(&mut store, places, Some(bytes), |mut files| {
                    async move { files.symlink_at(dir, target, path).await }.boxed()
                })
                .await
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.link-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, follow, path, other, new): (
            Resource<Descriptor>,
            PathFlags,
            Name,
            Resource<Descriptor>,
            Name,
        )|
         -> Async<'_, Outcome<()>> {
            Box::new(async move {
                let (Ok(path), Ok(new)) = (named(&mut store, path), new.0) else {
                    return Ok((Err(ErrorCode::NameTooLong),));
                };
                if counted(&mut store, &dir)?.is_some() || counted(&mut store, &other)?.is_some() {
                    // A file with two names could be counted under either.
                    return Ok((Err(ErrorCode::NotPermitted),));
                }
                let mut files = store.data_mut().filesystem();
                if !follow.contains(PathFlags::SYMLINK_FOLLOW)
                    && let Err(error) = paths::check_linked(&mut files, (&dir, &path), (&other, &new)).await?
                {
                    return Ok((Err(error),));
                }
                done(files.link_at(dir, follow, path, other, new).await)
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.rename-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, path, other, new): (Resource<Descriptor>, Name, Resource<Descriptor>, Name)|
         -> Async<'_, Outcome<()>> {
            Box::new(async move {
                let (Ok(path), Ok(new)) = (named(&mut store, path), new.0) else {
                    return Ok((Err(ErrorCode::NameTooLong),));
                };
                let places = vec![place(&dir, &path), place(&other, &new)];
                change(&mut store, places, None, |mut files| {
                    async move { files.rename_at(dir, path, other, new).await }.boxed()
                })
                .await
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.unlink-file-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, path): (Resource<Descriptor>, Name)|
         -> Async<'_, Outcome<()>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                if let Err(error) =
                    paths::check_unlinked(&mut store.data_mut().filesystem(), &dir, &path).await?
                {
                    return Ok((Err(error),));
                }
                change(&mut store, vec![place(&dir, &path)], None, |mut files| {
                    async move { files.unlink_file_at(dir, path).await }.boxed()
                })
                .await
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.remove-directory-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, path): (Resource<Descriptor>, Name)|
         -> Async<'_, Outcome<()>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                let path = match paths::of_directory(&mut store.data_mut().filesystem(), &dir, path).await? {
                    Ok(path) => path,
                    Err(error) => return Ok((Err(error),)),
                };
                change(&mut store, vec![place(&dir, &path)], None, |mut files| {
                    async move { files.remove_directory_at(dir, path).await }.boxed()
                })
                .await
            })
        },
    )
}

/// Opens an existing file, or makes one if there is room.
pub(super) async fn open_at<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    dir: Resource<Descriptor>,
    follow: PathFlags,
    path: String,
    open: OpenFlags,
    flags: DescriptorFlags,
) -> wasmtime::Result<(Outcome<Resource<Descriptor>>,)> {
    let Some((quota, _)) = counted(store, &dir)? else {
        return done(store.data_mut().filesystem().open_at(dir, follow, path, open, flags).await);
    };
    let opened = if open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
        let (places, new) =
            (vec![(dir.rep(), follow, path.clone())], open.contains(OpenFlags::CREATE).then_some(0));
        change(store, places, new, |mut files| {
            async move { files.open_at(dir, follow, path, open, flags).await }.boxed()
        })
        .await?
    } else {
        done(store.data_mut().filesystem().open_at(dir, follow, path, open, flags).await)?
    };
    let (Ok(descriptor),) = opened else { return Ok(opened) };
    let sandbox = store.data_mut().sandbox_mut();
    let opened = sandbox.table.get(&descriptor)?.clone();
    sandbox.counted.add(&opened, quota.clone());
    if let Descriptor::File(file) = opened {
        quota.opened(&file.file).await;
    }
    Ok((Ok(descriptor),))
}

/// The granted directories. Registers those that are counted.
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

/// The quota of an open file or directory, if any, and the file itself. Counts the call: its quota may refuse it.
fn counted<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    descriptor: &Resource<Descriptor>,
) -> wasmtime::Result<Option<(Quota, Arc<File>)>> {
    let sandbox = store.data_mut().sandbox_mut();
    sandbox.meter.enter_wasi();
    if sandbox.counted.grants.is_empty() {
        return Ok(None);
    }
    let descriptor = sandbox.table.get(descriptor)?;
    Ok(sandbox.counted.quota(descriptor).map(|quota| (quota, file(descriptor).clone())))
}

/// Replaces a stream by one that counts.
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

/// A name in a directory, and whether to follow a symlink there.
type Place = (u32, PathFlags, String);

fn place(dir: &Resource<Descriptor>, path: &str) -> Place {
    (dir.rep(), PathFlags::empty(), path.to_owned())
}

/// Does something that changes the files under `places`. In a counted directory it looks at them before and after.
/// Refused if it would make an entry of `new` bytes without room, or if the places are not counted together.
async fn change<G: Guest, T>(
    store: &mut StoreContextMut<'_, G>,
    places: Vec<Place>,
    new: Option<u64>,
    act: impl for<'a> FnOnce(WasiFilesystemCtxView<'a>) -> BoxFuture<'a, FsResult<T>>,
) -> wasmtime::Result<(Outcome<T>,)> {
    let mut quotas = Vec::with_capacity(places.len());
    for (dir, ..) in &places {
        let counted = counted(store, &Resource::new_borrow(*dir))?;
        quotas.push(counted.map(|(quota, _)| quota));
    }
    let mut pairs = quotas.iter().zip(quotas.iter().skip(1));
    if pairs.any(|(one, other)| !Quota::are_together(one.as_ref(), other.as_ref())) {
        return Ok((Err(ErrorCode::CrossDevice),));
    }
    let Some(quota) = quotas.into_iter().next().flatten() else {
        return done(act(store.data_mut().filesystem()).await);
    };
    let turn = quota.turn().await;
    let before = found(store, &places).await;
    let (turn, has_room) = match new {
        Some(bytes) if before.files == 0 => turn.has_room(bytes).await,
        _ => (turn, true),
    };
    if !has_room {
        return Ok((Err(ErrorCode::InsufficientSpace),));
    }
    let done_so = act(store.data_mut().filesystem()).await;
    let after = found(store, &places).await;
    turn.changed(before, after).await;
    done(done_so)
}

async fn found<G: Guest>(store: &mut StoreContextMut<'_, G>, places: &[Place]) -> Found {
    let mut found = Found::default();
    for (dir, follow, path) in places {
        let mut files = store.data_mut().filesystem();
        let stat = files.stat_at(Resource::new_borrow(*dir), *follow, path.clone()).await;
        if let Ok(DescriptorStat { type_, size, .. }) = stat {
            let is_dir = type_ == DescriptorType::Directory;
            found.files += 1;
            found.bytes += if is_dir { BLOCK } else { blocks(size) };
        }
    }
    found
}
