//! `wasi:sockets/ip-name-lookup`, narrowed to the names that the operator granted: a lookup is a
//! message to whoever serves the name.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::{
    p2::bindings::sockets::{
        ip_name_lookup::{Host, ResolveAddressStream},
        network::{ErrorCode, Network},
    },
    sockets::WasiSocketsView,
};

use super::Store;
use crate::extension::state::State;

/// The interface that wasmtime's WASI defines, of which one function is replaced.
const INTERFACE: &str = "wasi:sockets/ip-name-lookup@0.2.12";

pub(super) fn narrow(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker.instance(INTERFACE)?.func_wrap(
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
    linker.allow_shadowing(false);
    Ok(())
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
