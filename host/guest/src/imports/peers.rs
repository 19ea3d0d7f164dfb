//! `weir:iec/peers`: the names of peers.

use wasmtime::component::LinkerInstance;
use weir_bus::PeerId;

use super::{Store, meter};
use crate::instance_state::InstanceState;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap("own-name", |mut store: Store<'_>, ()| {
        meter::charge(&mut store, 0)?;
        Ok((store.data().peer.name().to_owned(),))
    })?;
    linker.func_wrap("name-of", |mut store: Store<'_>, (peer,): (u32,)| {
        meter::charge(&mut store, 0)?;
        Ok((store.data().name_of(PeerId(peer)),))
    })
}
