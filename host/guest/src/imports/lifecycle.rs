//! `weir:iec/lifecycle`: what a guest says of itself.

use wasmtime::component::LinkerInstance;
use weir_names::harmless;

use super::{Store, meter};
use crate::instance_state::InstanceState;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap_async("ready", |mut store: Store<'_>, ()| {
        Box::new(async move {
            meter::charge(&mut store, 0)?;
            store.data_mut().delivery.readiness.ready().await;
            Ok(())
        })
    })?;
    linker.func_wrap_async("interrupted", |mut store: Store<'_>, (reason,): (String,)| {
        Box::new(async move {
            meter::charge(&mut store, reason.len())?;
            store.data_mut().delivery.readiness.interrupted(reason).await;
            Ok(())
        })
    })?;
    linker.func_wrap("error", |mut store: Store<'_>, (reason,): (String,)| {
        meter::charge(&mut store, reason.len())?;
        store.data_mut().fault = Some(harmless(&reason, 1024));
        Ok(())
    })
}
