//! Functions of WASI that are narrowed: which names may be looked up, how many sockets a guest has, how many datagrams
//! and random bytes one call takes, and which files a command may open.

use rustix::{
    fs::{AtFlags, FileType, statat},
    io::Errno,
};
use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource, ResourceType},
};
use wasmtime_wasi::{
    filesystem::{WasiFilesystemCtxView, WasiFilesystemView},
    p2::{
        FsResult,
        bindings::{
            filesystem::types::{
                self as fs, Descriptor, DescriptorFlags, DescriptorType, HostDescriptor, NewTimestamp,
                OpenFlags, PathFlags,
            },
            random::{insecure, random},
            sockets::{
                ip_name_lookup::Host,
                network::{ErrorCode, IpAddressFamily, Network},
                tcp::{HostTcpSocket, TcpSocket},
                tcp_create_socket::Host as _,
                udp::{
                    HostOutgoingDatagramStream, HostUdpSocket, OutgoingDatagram, OutgoingDatagramStream,
                    UdpSocket,
                },
                udp_create_socket::Host as _,
            },
        },
    },
    random::{WasiRandomCtx, WasiRandomView},
    sockets::WasiSocketsView,
};
use weir_config::{LimitHit, LimitName, NetGrant};
use weir_names::harmless;

use super::{Name, VERSION, counted as files, done, meter, named};
use crate::{
    abi::Handed,
    exit::OverLimit,
    sandbox::Guest,
    wasi::{Protocol, Refused},
};

/// Fuel for one random byte.
const FUEL_PER_RANDOM_BYTE: u64 = 4;

/// Replaces WASI's functions for look-ups, datagrams and random bytes.
pub(super) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    linker.instance(&format!("wasi:sockets/ip-name-lookup@{VERSION}"))?.func_wrap(
        "resolve-addresses",
        |mut store: StoreContextMut<'_, G>, (network, name): (Resource<Network>, Name)| {
            let guest = store.data_mut();
            guest.sandbox_mut().meter.enter_wasi();
            match name.0 {
                Ok(name) if may_look_up(&guest.sandbox().net.grants, &name) => {
                    done(guest.sockets().resolve_addresses(network, name))
                }
                Ok(name) => {
                    guest.sandbox().net.refuse(Refused::LookUp, || {
                        let name = harmless(&name, 256);
                        format!("looking up `{name}` was refused: no entry of `grants.net` has this name")
                    });
                    Ok((Err(ErrorCode::AccessDenied),))
                }
                _ => Ok((Err(ErrorCode::AccessDenied),)),
            }
        },
    )?;
    linker.instance(&format!("wasi:sockets/udp@{VERSION}"))?.func_wrap(
        "[method]outgoing-datagram-stream.send",
        |mut store: StoreContextMut<'_, G>,
         (stream, datagrams): (Resource<OutgoingDatagramStream>, Handed<Vec<OutgoingDatagram>>)| {
            store.data_mut().sandbox_mut().meter.enter_wasi();
            match datagrams {
                Handed::Whole(datagrams) => done(store.data_mut().sockets().send(stream, datagrams)),
                Handed::TooLarge(_) => Ok((Err(ErrorCode::DatagramTooLarge),)),
            }
        },
    )?;
    add_sockets(linker)?;
    linker
        .instance(&format!("wasi:random/random@{VERSION}"))?
        .func_wrap("get-random-bytes", |store, (length,)| {
            random_bytes(store, length, random::Host::get_random_bytes)
        })?;
    linker
        .instance(&format!("wasi:random/insecure@{VERSION}"))?
        .func_wrap("get-insecure-random-bytes", |store, (length,)| {
            random_bytes(store, length, insecure::Host::get_insecure_random_bytes)
        })
}

/// Replaces the functions that make and drop sockets, to count them: one too many is an error, where the resources that
/// it and its streams take would end the guest.
fn add_sockets<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    linker.instance(&format!("wasi:sockets/tcp-create-socket@{VERSION}"))?.func_wrap(
        "create-tcp-socket",
        |mut store: StoreContextMut<'_, G>, (family,): (IpAddressFamily,)| {
            if !has_room_for_socket(&mut store) {
                return Ok((Err(ErrorCode::NewSocketLimit),));
            }
            store.data().sandbox().net.refuse_all(Protocol::Tcp);
            let made = store.data_mut().sockets().create_tcp_socket(family);
            done(counted(&mut store, made))
        },
    )?;
    linker.instance(&format!("wasi:sockets/udp-create-socket@{VERSION}"))?.func_wrap_async(
        "create-udp-socket",
        |mut store: StoreContextMut<'_, G>, (family,): (IpAddressFamily,)| {
            Box::new(async move {
                if !has_room_for_socket(&mut store) {
                    return Ok((Err(ErrorCode::NewSocketLimit),));
                }
                store.data().sandbox().net.refuse_all(Protocol::Udp);
                let made = store.data_mut().sockets().create_udp_socket(family).await;
                done(counted(&mut store, made))
            })
        },
    )?;
    let mut tcp = linker.instance(&format!("wasi:sockets/tcp@{VERSION}"))?;
    tcp.func_wrap(
        "[method]tcp-socket.accept",
        |mut store: StoreContextMut<'_, G>, (socket,): (Resource<TcpSocket>,)| {
            let has_room = has_room_for_socket(&mut store);
            // To turn a client away takes three, too.
            if !has_room && !has_room_for(&mut store, 3) {
                return Ok((Err(ErrorCode::NewSocketLimit),));
            }
            match store.data_mut().sockets().accept(socket) {
                Ok((client, input, output)) if !has_room => {
                    // The client is taken all the same, or whoever waits for the next one would not wait.
                    let table = &mut store.data_mut().sandbox_mut().table;
                    table.delete(input)?;
                    table.delete(output)?;
                    table.delete(client)?;
                    Ok((Err(ErrorCode::NewSocketLimit),))
                }
                made => done(counted(&mut store, made)),
            }
        },
    )?;
    tcp.resource("tcp-socket", ResourceType::host::<TcpSocket>(), |mut store, rep| {
        let guest = store.data_mut();
        guest.sandbox_mut().sockets -= 1;
        HostTcpSocket::drop(&mut guest.sockets(), Resource::new_own(rep))
    })?;
    linker.instance(&format!("wasi:sockets/udp@{VERSION}"))?.resource(
        "udp-socket",
        ResourceType::host::<UdpSocket>(),
        |mut store, rep| {
            let guest = store.data_mut();
            guest.sandbox_mut().sockets -= 1;
            HostUdpSocket::drop(&mut guest.sockets(), Resource::new_own(rep))
        },
    )
}

/// Resources for which a guest may have a socket.
const PER_SOCKET: u64 = 8;

/// What a socket takes, with its streams and what waits for them.
const OF_SOCKET: usize = 6;

fn has_room_for_socket<G: Guest>(store: &mut StoreContextMut<'_, G>) -> bool {
    let sandbox = store.data_mut().sandbox_mut();
    sandbox.meter.enter_wasi();
    // Files and timers may have taken what it needs.
    sandbox.sockets < sandbox.resources / PER_SOCKET && has_room_for(store, OF_SOCKET)
}

/// Counts a socket, if it was made.
fn counted<G: Guest, T, E>(store: &mut StoreContextMut<'_, G>, made: Result<T, E>) -> Result<T, E> {
    store.data_mut().sandbox_mut().sockets += u64::from(made.is_ok());
    made
}

/// Resources that files leave to what can only end the guest, such as its output and what it waits for.
const SPARE: usize = 8;

/// Whether the guest may have one more file.
pub(super) fn has_room_for_file<G: Guest>(store: &mut StoreContextMut<'_, G>) -> bool {
    has_room_for(store, 1 + SPARE)
}

fn has_room_for<G: Guest>(store: &mut StoreContextMut<'_, G>, resources: usize) -> bool {
    let table = &mut store.data_mut().sandbox_mut().table;
    let tried: Vec<_> = (0..resources).map_while(|_| table.push(()).ok()).collect();
    let has_room = tried.len() == resources;
    for resource in tried {
        // It was pushed a moment ago.
        let _pushed = table.delete(resource);
    }
    has_room
}

/// Makes commands open only files and directories. Opening a FIFO waits for its other end, and no deadline ends that.
/// To set a file's times, the host opens it, too.
pub(super) fn refuse_special_files<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    replace!(linker,
        "[method]descriptor.open-at" => open_at,
        "[method]descriptor.set-times-at" => set_times_at,
    );
    Ok(())
}

async fn open_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, follow, path, open, flags): (Resource<Descriptor>, PathFlags, Name, OpenFlags, DescriptorFlags),
) -> FsResult<Resource<Descriptor>> {
    let path = not_special(&mut store, &dir, follow, path).await?;
    files::open_named(&mut store, dir, follow, path, open, flags).await
}

async fn set_times_at<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    (dir, follow, path, access, change): (Resource<Descriptor>, PathFlags, Name, NewTimestamp, NewTimestamp),
) -> FsResult<()> {
    let path = not_special(&mut store, &dir, follow, path).await?;
    store.data_mut().filesystem().set_times_at(dir, follow, path, access, change).await
}

/// Returns the path. Fails if it names something other than a file, directory or symlink.
async fn not_special<G: Guest>(
    store: &mut StoreContextMut<'_, G>,
    dir: &Resource<Descriptor>,
    follow: PathFlags,
    path: Name,
) -> FsResult<String> {
    let path = named(store, path)?;
    let may_block = store.data().sandbox().may_block;
    match is_special(&mut store.data_mut().filesystem(), dir, follow, &path, may_block).await {
        true => Err(fs::ErrorCode::NotPermitted.into()),
        false => Ok(path),
    }
}

/// Whether the path names something other than a file, directory or symlink. False if that cannot be told: WASI's own
/// function then returns the error.
async fn is_special(
    files: &mut WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    follow: PathFlags,
    path: &str,
    may_block: bool,
) -> bool {
    if may_block && let Some(is_special) = is_special_here(files, dir, path) {
        return is_special;
    }
    let stat = files.stat_at(Resource::new_borrow(dir.rep()), follow, path.to_owned()).await;
    stat.is_ok_and(|stat| {
        !matches!(
            stat.type_,
            DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink
        )
    })
}

/// Whether a plain name in the directory is neither file nor directory, by one system call. Returns none if the call
/// cannot tell.
fn is_special_here(
    files: &WasiFilesystemCtxView<'_>,
    dir: &Resource<Descriptor>,
    name: &str,
) -> Option<bool> {
    let Ok(Descriptor::Dir(dir)) = files.table.get(dir) else { return None };
    if name.contains('/') || name == ".." {
        return None;
    }
    match statat(&*dir.dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileType::from_raw_mode(stat.st_mode))
    {
        Ok(FileType::RegularFile | FileType::Directory) | Err(Errno::NOENT) => Some(false),
        Ok(FileType::Symlink) | Err(_) => None,
        Ok(_) => Some(true),
    }
}

/// Returns this many random bytes. A guest that asks for more than the limit ends.
fn random_bytes<G: Guest>(
    mut store: StoreContextMut<'_, G>,
    length: u64,
    make: fn(&mut WasiRandomCtx, u64) -> wasmtime::Result<Vec<u8>>,
) -> wasmtime::Result<(Vec<u8>,)> {
    let allowed = store.data().sandbox().fixed.random_bytes;
    if length > allowed {
        let hit = LimitHit::new(LimitName::RANDOM_BYTES, length, allowed);
        return Err(OverLimit(hit).into());
    }
    meter::charge_fuel(&mut store, length * FUEL_PER_RANDOM_BYTE)?;
    Ok((make(store.data_mut().random(), length)?,))
}

/// Whether a host with this name is granted, with any port. Case does not matter.
fn may_look_up(granted: &[NetGrant], name: &str) -> bool {
    granted.iter().any(|grant| grant.address.host.eq_ignore_ascii_case(name))
}
