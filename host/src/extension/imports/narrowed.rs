//! Functions of WASI that are narrowed: names that a guest may look up, how much randomness it gets at
//! once, and how much it can wait for at once.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::{
    p2::{
        DynPollable,
        bindings::{
            io::poll,
            random::{insecure, random},
            sockets::{
                ip_name_lookup::{Host, ResolveAddressStream},
                network::{ErrorCode, Network},
            },
        },
    },
    random::{WasiRandomCtx, WasiRandomView},
    sockets::WasiSocketsView,
};

use super::{Async, Store, meter};
use crate::{
    extension::{limit::OverLimit, state::State},
    roster::LimitHit,
};

/// The version under which wasmtime's WASI defines the interfaces.
const VERSION: &str = "0.2.12";

/// Fuel that a byte of randomness takes.
const FUEL_PER_RANDOM_BYTE: u64 = 4;

/// Replaces what WASI defines.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker.instance(&format!("wasi:sockets/ip-name-lookup@{VERSION}"))?.func_wrap(
        "resolve-addresses",
        |mut store: Store<'_>, (network, name): (Resource<Network>, String)| {
            let state = store.data_mut();
            Ok((if state.may_look_up(&name) {
                resolve(state, network, name)?
            } else {
                Err(ErrorCode::AccessDenied)
            },))
        },
    )?;
    linker
        .instance(&format!("wasi:random/random@{VERSION}"))?
        .func_wrap("get-random-bytes", |store, (length,)| {
            random_bytes(store, length, random::Host::get_random_bytes)
        })?;
    linker
        .instance(&format!("wasi:random/insecure@{VERSION}"))?
        .func_wrap("get-insecure-random-bytes", |store, (length,)| {
            random_bytes(store, length, insecure::Host::get_insecure_random_bytes)
        })?;
    linker.instance(&format!("wasi:io/poll@{VERSION}"))?.func_wrap_async(
        "poll",
        |mut store: Store<'_>, (pollables,): (Vec<Resource<DynPollable>>,)| -> Async<'_, Vec<u32>> {
            Box::new(async move {
                let (used, allowed) = (pollables.len() as u64, store.data().fixed.resources);
                if used > allowed {
                    // One that it has can be listed again and again.
                    let hit = LimitHit { name: "resources".to_owned(), used, allowed };
                    return Err(OverLimit(hit).into());
                }
                meter::charge_each(&mut store, pollables.len())?;
                Ok((poll::Host::poll(&mut store.data_mut().table, pollables).await?,))
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

fn random_bytes(
    mut store: Store<'_>,
    length: u64,
    make: fn(&mut WasiRandomCtx, u64) -> wasmtime::Result<Vec<u8>>,
) -> wasmtime::Result<(Vec<u8>,)> {
    let allowed = store.data().fixed.random_bytes;
    if length > allowed {
        let hit = LimitHit { name: "random-bytes".to_owned(), used: length, allowed };
        return Err(OverLimit(hit).into());
    }
    meter::charge_fuel(&mut store, length * FUEL_PER_RANDOM_BYTE)?;
    Ok((make(store.data_mut().random(), length)?,))
}

fn resolve(
    state: &mut State,
    network: Resource<Network>,
    name: String,
) -> wasmtime::Result<Result<Resource<ResolveAddressStream>, ErrorCode>> {
    match state.sockets().resolve_addresses(network, name) {
        Ok(stream) => Ok(Ok(stream)),
        Err(error) => error.downcast().map(Err),
    }
}

impl State {
    /// Whether `name` is granted with some port. Names are the same whatever their case.
    fn may_look_up(&self, name: &str) -> bool {
        self.grants.net.iter().any(|grant| grant.host.eq_ignore_ascii_case(name))
    }
}
