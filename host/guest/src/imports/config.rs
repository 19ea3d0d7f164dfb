//! `wasi:config/store`: the operator's configuration of the extension.

use wasmtime::component::{ComponentType, LinkerInstance, Lower};

use super::{InstanceState, Name, Store};

/// As the interface has it. Reading never fails.
#[derive(ComponentType, Lower)]
#[component(variant)]
#[expect(dead_code, reason = "the type of what never happens")]
enum Error {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("get", |mut store: Store<'_>, (key,): (Name,)| {
        let state = store.data_mut();
        state.sandbox.meter.enter_wasi();
        let value = key.0.ok().and_then(|key| state.settings.values().get(&key).cloned());
        Ok((Ok::<_, Error>(value),))
    })?;
    linker.func_wrap("get-all", |mut store: Store<'_>, ()| {
        let state = store.data_mut();
        state.sandbox.meter.enter_wasi();
        let values = state.settings.values();
        let all: Vec<_> = values.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok((Ok::<_, Error>(all),))
    })
}
