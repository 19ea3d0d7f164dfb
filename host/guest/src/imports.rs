//! The imports of guests: `weir:iec`, WASI 0.2 and `wasi:config/store`.
//!
//! `weir:iec` is linked by hand, because only such functions reach the Store to charge and renew fuel.

mod any_length;
mod channel;
mod config;
pub(crate) mod counted;
mod events;
mod lifecycle;
mod log;
mod narrowed;
mod paths;
mod peers;
pub(crate) mod pollables;
mod queues;
mod requests;

use std::time::Instant;

use bytes::Bytes;
use wasmtime::{
    StoreContextMut,
    component::{Linker, WasmList},
};
use wasmtime_wasi::p2::{FsResult, bindings::filesystem::types::ErrorCode};
use weir_bus::Error;

use super::{
    abi::{self, Handed, Text},
    http,
    instance_state::InstanceState,
    keyvalue, meter,
    sandbox::{Guest, Sandbox},
};

type Store<'a> = StoreContextMut<'a, InstanceState>;
pub(super) type Async<'a, T> = Box<dyn Future<Output = wasmtime::Result<(T,)>> + Send + 'a>;
type Fallible<T> = Result<T, abi::Error>;

/// A payload, still in the guest's memory.
type Payload = Handed<WasmList<u8>>;

/// A name of anything.
type Name = Text;

/// The version of wasmtime's WASI interfaces.
pub(super) const VERSION: &str = "0.2.12";

/// The package and version that this host speaks.
const PACKAGE: (&str, &str) = ("weir:iec", "0.1.0");

impl Guest for InstanceState {
    const WORLD: &'static str = "weir:iec/extension";

    fn add_to_linker(linker: &mut Linker<Self>) -> wasmtime::Result<()> {
        add_extension(linker)
    }

    #[inline(always)]
    fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    #[inline(always)]
    fn sandbox_mut(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }

    fn deadline_in_hand(&self) -> Option<Instant> {
        self.delivery.deadline_in_hand()
    }
}

fn add_extension(linker: &mut Linker<InstanceState>) -> wasmtime::Result<()> {
    add_wasi(linker)?;
    config::add_to_linker(&mut linker.instance("wasi:config/store@0.2.0-rc.1")?)?;
    linker.instance(&interface("types"))?;
    channel::add_to_linker(&mut linker.instance(&interface("channel"))?)?;
    requests::add_to_linker(&mut linker.instance(&interface("requests"))?)?;
    events::add_to_linker(&mut linker.instance(&interface("events"))?)?;
    queues::add_to_linker(&mut linker.instance(&interface("queues"))?)?;
    lifecycle::add_to_linker(&mut linker.instance(&interface("lifecycle"))?)?;
    peers::add_to_linker(&mut linker.instance(&interface("peers"))?)?;
    log::add_to_linker(&mut linker.instance(&interface("log"))?)
}

pub(super) fn add_command<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    add_wasi(linker)?;
    narrowed::refuse_special_files(linker)
}

fn add_wasi<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    any_length::add_to_linker(linker)?;
    pollables::add_to_linker(linker)?;
    counted::add_to_linker(linker)?;
    paths::add_to_linker(linker)?;
    narrowed::add_to_linker(linker)?;
    http::add_to_linker(linker)?;
    keyvalue::add_to_linker(linker)
}

/// Whether an import can be met: Weir's own, and WASI 0.2 as far as offered. Every 0.2 release runs components built
/// for another.
pub(super) fn is_offered(import: &str) -> bool {
    const WASI: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];
    let Some((interface, version)) = import.split_once('@') else { return false };
    let package = interface.split('/').next().unwrap_or_default();
    match package.split_once(':') {
        Some(("weir", "iec")) => version.starts_with("0.1."),
        Some(("wasi", "config")) => version == "0.2.0-rc.1",
        Some(("wasi", "http")) => {
            cfg!(feature = "http") && http::is_known(interface) && version.starts_with("0.2.")
        }
        Some(("wasi", "keyvalue")) => keyvalue::is_offered(interface, version),
        Some(("wasi", package)) => WASI.contains(&package) && version.starts_with("0.2."),
        _ => false,
    }
}

fn interface(name: &str) -> String {
    let (package, version) = PACKAGE;
    format!("{package}/{name}@{version}")
}

/// Charges for a call with a payload and `more` bytes, and copies the payload in one piece. wasmtime would not, for a
/// `Vec` or `Bytes`. One over `message-size` is not copied.
fn take(store: &mut Store<'_>, payload: &Payload, more: usize) -> wasmtime::Result<Result<Bytes, Error>> {
    let allowed = store.data().peer.limits().message_size;
    let bytes = match payload {
        Handed::Whole(list) if list.len() as u64 <= allowed => {
            meter::charge(store, list.len() + more)?;
            return Ok(Ok(Bytes::copy_from_slice(list.as_le_slice(&*store))));
        }
        Handed::Whole(list) => list.len() as u64,
        Handed::TooLarge(bytes) => *bytes,
    };
    meter::charge(store, more)?;
    Ok(Err(Error::TooLarge { bytes, allowed }))
}

fn outcome<T>(result: Result<T, Error>) -> wasmtime::Result<(Fallible<T>,)> {
    Ok((result.map_err(Into::into),))
}

/// A result that is written into the guest's memory in one piece.
fn in_one_piece<T>(result: Result<T, Error>) -> wasmtime::Result<(abi::OnePiece<Fallible<T>>,)> {
    Ok((abi::OnePiece(result.map_err(Into::into)),))
}

/// The name in a call of WASI's, which costs fuel even if it is refused for a name that is too long.
fn named<G: Guest>(store: &mut StoreContextMut<'_, G>, name: Name) -> Result<String, u64> {
    store.data_mut().sandbox_mut().meter.enter_wasi();
    name.0
}

fn done<T>(result: FsResult<T>) -> wasmtime::Result<(Result<T, ErrorCode>,)> {
    match result {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}
