//! Functions of WASI to which a guest may hand over a name or a list of any length. A longer one than a call may carry
//! is an error, and is not copied. Other modules replace further functions in the same way.

use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource},
};
use wasmtime_wasi::{
    filesystem::WasiFilesystemView,
    p2::bindings::{
        filesystem::types::{Descriptor, ErrorCode, HostDescriptor, NewTimestamp, PathFlags},
        sockets::{
            network,
            udp::{HostOutgoingDatagramStream, OutgoingDatagram, OutgoingDatagramStream},
        },
    },
    sockets::WasiSocketsView,
};

use super::{Async, Name, VERSION, done, named};
use crate::{abi::Handed, sandbox::Guest};

/// Replaces WASI's definitions.
pub(super) fn add_to_linker<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut files = linker.instance(&format!("wasi:filesystem/types@{VERSION}"))?;
    files.func_wrap_async(
        "[method]descriptor.set-times-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, follow, path, access, change): (
            Resource<Descriptor>,
            PathFlags,
            Name,
            NewTimestamp,
            NewTimestamp,
        )|
         -> Async<'_, Result<(), ErrorCode>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                done(store.data_mut().filesystem().set_times_at(dir, follow, path, access, change).await)
            })
        },
    )?;
    files.func_wrap_async(
        "[method]descriptor.readlink-at",
        |mut store: StoreContextMut<'_, G>,
         (dir, path): (Resource<Descriptor>, Name)|
         -> Async<'_, Result<String, ErrorCode>> {
            Box::new(async move {
                let Ok(path) = named(&mut store, path) else { return Ok((Err(ErrorCode::NameTooLong),)) };
                done(store.data_mut().filesystem().readlink_at(dir, path).await)
            })
        },
    )?;
    linker.instance(&format!("wasi:sockets/udp@{VERSION}"))?.func_wrap(
        "[method]outgoing-datagram-stream.send",
        |mut store: StoreContextMut<'_, G>,
         (stream, datagrams): (Resource<OutgoingDatagramStream>, Handed<Vec<OutgoingDatagram>>)| {
            store.data_mut().sandbox_mut().meter.enter_wasi();
            let Handed::Whole(datagrams) = datagrams else {
                return Ok((Err(network::ErrorCode::DatagramTooLarge),));
            };
            Ok((match store.data_mut().sockets().send(stream, datagrams) {
                Ok(sent) => Ok(sent),
                Err(error) => Err(error.downcast()?),
            },))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}
