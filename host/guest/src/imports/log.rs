//! `weir:iec/log`: log lines with fields.

use wasmtime::component::LinkerInstance;

use super::{Store, abi, meter};
use crate::instance_state::InstanceState;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "write",
        |mut store: Store<'_>, (level, message, fields): (abi::Level, String, Vec<abi::Field>)| {
            let texts = fields.iter().flat_map(|field| [&field.name, &field.value]);
            meter::charge_texts(&mut store, texts.chain([&message]))?;
            let fields = fields.into_iter().map(|field| (field.name, field.value));
            store.data().output.log(level.into(), &message, fields);
            Ok(())
        },
    )
}
