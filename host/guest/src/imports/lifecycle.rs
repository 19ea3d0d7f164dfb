//! `weir:iec/lifecycle`: what a guest says of itself.

use wasmtime::component::LinkerInstance;
use weir_names::harmless;

use super::{Store, meter};
use crate::{abi::Cut, delivery::MAX_REASON, instance_state::InstanceState};

/// A bit more than is kept, so that a cut shows.
type Reason = Cut<{ MAX_REASON + 4 }>;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap_async("ready", |mut store: Store<'_>, ()| {
        Box::new(async move {
            meter::charge(&mut store, 0)?;
            store.data_mut().delivery.readiness.ready().await;
            Ok(())
        })
    })?;
    linker.func_wrap_async("interrupted", |mut store: Store<'_>, (Cut(reason),): (Reason,)| {
        Box::new(async move {
            meter::charge(&mut store, reason.len())?;
            store.data_mut().delivery.readiness.interrupted(reason).await;
            Ok(())
        })
    })?;
    linker.func_wrap("error", |mut store: Store<'_>, (Cut(reason),): (Reason,)| {
        meter::charge(&mut store, reason.len())?;
        store.data_mut().fault = Some(harmless(&reason, MAX_REASON));
        Ok(())
    })
}
