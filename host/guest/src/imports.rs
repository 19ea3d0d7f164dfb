//! The imports of guests: `weir:iec`, WASI 0.2, `wasi:config/store` and `wasi:logging`.
//!
//! `weir:iec` is linked by hand, because only functions that are linked by hand reach the Store to charge and renew
//! fuel.

/// Replaces functions of `wasi:filesystem/types`, each given by its name there and the function that is called instead.
macro_rules! replace {
    ($linker:ident, $($name:literal => $act:path),+ $(,)?) => {
        let mut files = $linker.instance(&format!("wasi:filesystem/types@{VERSION}"))?;
        $(files.func_wrap_async($name, |store, arguments| {
            Box::new(async move { done($act(store, arguments).await) })
        })?;)+
    };
}

mod channel;
pub(crate) mod counted;
mod events;
mod logging;
mod narrowed;
mod paths;
pub(crate) mod pollables;
mod queues;
mod requests;

use std::time::Instant;

use bytes::Bytes;
use semver::Version;
use wasmtime::{
    Engine, StoreContextMut,
    component::{ComponentType, Linker, LinkerInstance, Lower, WasmList, types::ComponentInstance},
};
use wasmtime_wasi::{
    TrappableError,
    p2::{FsResult, bindings::filesystem::types::ErrorCode},
};
use weir_bus::{Error, PeerId};
use weir_names::harmless;

pub(crate) use self::{
    channel::{give, next_message},
    requests::call_contract,
};
use super::{
    abi::{self, Cut, Handed, Text},
    delivery::MAX_REASON,
    exports::{Types, link_import},
    fit::GuestKind,
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

/// A name of a contract, topic, path and the like.
type Name = Text;

/// The version of wasmtime's WASI interfaces.
pub(super) const VERSION: &str = "0.2.12";

/// The package and version that this host speaks.
const PACKAGE: (&str, &str) = ("weir:iec", "0.1.0");

impl Guest for InstanceState {
    const KIND: GuestKind = GuestKind::Extension;

    fn add_to_linker(linker: &mut Linker<Self>) -> wasmtime::Result<()> {
        add_extension(linker)
    }

    fn link_import(
        linker: &mut Linker<Self>,
        engine: &Engine,
        name: &str,
        interface: &ComponentInstance,
        types: &mut Types,
    ) -> Result<(), String> {
        link_import(linker, engine, name, interface, types)
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
        match &self.exchange {
            Some(exchange) => exchange.parent().deadline.map(Into::into),
            None => self.delivery.deadline_in_hand(),
        }
    }
}

fn add_extension(linker: &mut Linker<InstanceState>) -> wasmtime::Result<()> {
    add_wasi(linker)?;
    add_config(&mut linker.instance("wasi:config/store@0.2.0-rc.1")?)?;
    linker.instance(&interface("types"))?;
    channel::add_to_linker(&mut linker.instance(&interface("channel"))?)?;
    requests::add_to_linker(&mut linker.instance(&interface("requests"))?)?;
    events::add_to_linker(&mut linker.instance(&interface("events"))?)?;
    queues::add_to_linker(&mut linker.instance(&interface("queues"))?)?;
    add_lifecycle(&mut linker.instance(&interface("lifecycle"))?)?;
    add_peers(&mut linker.instance(&interface("peers"))?)?;
    logging::add_to_linker(linker)
}

/// Adds the imports of commands: WASI, without special files.
pub(super) fn add_command<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    add_wasi(linker)?;
    linker.allow_shadowing(true);
    narrowed::refuse_special_files(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Adds WASI, `wasi:http` and `wasi:keyvalue`. Functions that Weir bounds or counts take the place of wasmtime's own.
fn add_wasi<G: Guest>(linker: &mut Linker<G>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    // The functions below replace some that are linked by now.
    linker.allow_shadowing(true);
    pollables::add_to_linker(linker)?;
    counted::add_to_linker(linker)?;
    paths::add_to_linker(linker)?;
    narrowed::add_to_linker(linker)?;
    http::add_to_linker(linker)?;
    linker.allow_shadowing(false);
    keyvalue::add_to_linker(linker)
}

/// Says why another version of `weir:iec` is not offered. None for other imports, and for a version that is none.
pub(super) fn why_not_this_version(import: &str) -> Option<String> {
    let (package, ours) = PACKAGE;
    let (interface, needed) = import.split_once('@')?;
    interface.strip_prefix(package)?.strip_prefix('/')?;
    Some(match Version::parse(needed).ok()? > Version::parse(ours).ok()? {
        true => format!(
            "which needs a newer Weir: one that offers `{package}` {needed}, and this one offers {ours}"
        ),
        false => format!(
            "which this Weir offers no more: it has `{package}` {ours}, so build the component with its SDK"
        ),
    })
}

/// Whether Weir offers an import: an interface of its own, or one of WASI 0.2 as far as it is offered. A component
/// built for any release of WASI 0.2 fits.
pub(super) fn is_offered(import: &str) -> bool {
    const WASI: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];
    if logging::NAMES.contains(&import) {
        return true;
    }
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

/// Whether an import that Weir offers is for extensions alone: hooks have WASI, and no configuration and no channels.
pub(super) fn only_for_extensions(import: &str) -> bool {
    ["weir:iec/", "wasi:config/", "wasi:logging/"].iter().any(|own| import.starts_with(own))
}

/// The error of `wasi:config/store`. Reading never fails.
#[derive(ComponentType, Lower)]
#[component(variant)]
#[expect(dead_code, reason = "reading never fails, but the interface has an error")]
enum ConfigError {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

/// `wasi:config/store`: the operator's configuration of the extension.
fn add_config(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("get", |mut store: Store<'_>, (key,): (Name,)| {
        let state = store.data_mut();
        state.sandbox.meter.enter_wasi();
        let value = key.0.ok().and_then(|key| state.settings.values().get(&key).cloned());
        Ok((Ok::<_, ConfigError>(value),))
    })?;
    linker.func_wrap("get-all", |mut store: Store<'_>, ()| {
        let state = store.data_mut();
        state.sandbox.meter.enter_wasi();
        let values = state.settings.values();
        let all: Vec<_> = values.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok((Ok::<_, ConfigError>(all),))
    })
}

/// The reason that a guest gives. A few more bytes are taken than are kept, so that a cut can be told.
type Reason = Cut<{ MAX_REASON + 4 }>;

/// `weir:iec/lifecycle`: what a guest says of itself.
fn add_lifecycle(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap_async("ready", |mut store: Store<'_>, ()| {
        Box::new(async move {
            meter::charge(&mut store, 0)?;
            // A server is ready by itself.
            let state = store.data_mut();
            if !state.is_server {
                state.delivery.readiness.ready().await;
            }
            Ok(())
        })
    })?;
    linker.func_wrap_async("interrupted", |mut store: Store<'_>, (Cut(reason),): (Reason,)| {
        Box::new(async move {
            meter::charge(&mut store, reason.len())?;
            let state = store.data_mut();
            if !state.is_server {
                state.delivery.readiness.interrupted(reason).await;
            }
            Ok(())
        })
    })?;
    linker.func_wrap("error", |mut store: Store<'_>, (Cut(reason),): (Reason,)| {
        meter::charge(&mut store, reason.len())?;
        store.data_mut().fault = Some(harmless(&reason, MAX_REASON));
        Ok(())
    })
}

/// `weir:iec/peers`: the names of peers.
fn add_peers(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("own-name", |mut store: Store<'_>, ()| {
        meter::charge(&mut store, 0)?;
        Ok((store.data().peer.name().to_owned(),))
    })?;
    linker.func_wrap("name-of", |mut store: Store<'_>, (peer,): (u32,)| {
        meter::charge(&mut store, 0)?;
        Ok((store.data().name_of(PeerId(peer)),))
    })
}

/// Returns the full name of an interface of `weir:iec`.
fn interface(name: &str) -> String {
    let (package, version) = PACKAGE;
    format!("{package}/{name}@{version}")
}

/// Charges for a call with a payload and `more` bytes, and copies the payload in one piece, which wasmtime does not do
/// for a `Vec` or `Bytes`. A payload over `message-size` is not copied.
pub(crate) fn take(
    store: &mut Store<'_>,
    payload: &Payload,
    more: usize,
) -> wasmtime::Result<Result<Bytes, Error>> {
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

/// Returns a result of the bus as wasmtime takes it: a value or an error for the guest.
fn outcome<T>(result: Result<T, Error>) -> wasmtime::Result<(Fallible<T>,)> {
    Ok((result.map_err(Into::into),))
}

/// Returns a result that is written into the guest's memory in one piece.
fn in_one_piece<T>(result: Result<T, Error>) -> wasmtime::Result<(abi::OnePiece<Fallible<T>>,)> {
    Ok((abi::OnePiece(result.map_err(Into::into)),))
}

/// Returns the name in a call of a WASI function. The call costs fuel even if the name is too long and refused.
fn named<G: Guest>(store: &mut StoreContextMut<'_, G>, name: Name) -> FsResult<String> {
    store.data_mut().sandbox_mut().meter.enter_wasi();
    short(name)
}

/// Returns the name, or the error for a name that is too long.
fn short(name: Name) -> FsResult<String> {
    name.0.map_err(|_| ErrorCode::NameTooLong.into())
}

/// Turns the outcome of a WASI function into what wasmtime takes: a value or error for the guest, or a trap.
fn done<T, E>(outcome: Result<T, TrappableError<E>>) -> wasmtime::Result<(Result<T, E>,)>
where
    E: std::error::Error + Send + Sync + 'static,
{
    match outcome {
        Ok(value) => Ok((Ok(value),)),
        Err(error) => Ok((Err(error.downcast()?),)),
    }
}
