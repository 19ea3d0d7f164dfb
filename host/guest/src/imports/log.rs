//! `weir:iec/log`: log lines with fields.

use wasmtime::component::LinkerInstance;

use super::{Store, abi, meter};
use crate::{
    abi::{Cut, First},
    instance_state::InstanceState,
};

/// A bit more than is shown, so that a cut shows.
type Message = Cut<{ weir_logs::MAX_LINE + 4 }>;

/// As many as are shown.
type Fields = First<abi::Field, { weir_logs::MAX_FIELDS }>;

pub(super) fn add_to_linker(linker: &mut LinkerInstance<'_, InstanceState>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "write",
        |mut store: Store<'_>, (level, Cut(message), First(fields)): (abi::Level, Message, Fields)| {
            let texts = fields.iter().flat_map(|field| [&field.name.0, &field.value.0]);
            meter::charge_texts(&mut store, texts.chain([&message]))?;
            let fields = fields.into_iter().map(|field| (field.name.0, field.value.0));
            store.data().output.log(level.into(), &message, fields);
            Ok(())
        },
    )
}
