//! Log lines of guests: `weir:iec/log`, which has fields, and `wasi:logging`, which components made for other hosts use.

use wasmtime::component::{ComponentType, Lift, Linker};
use weir_logs::{Level, MAX_FIELD_VALUE, MAX_FIELDS, MAX_LINE};

use super::{Store, interface};
use crate::{
    abi::{self, Cut, First},
    instance_state::InstanceState,
    meter,
};

/// The names of `wasi:logging`: its only draft, and without a version, as some tools write it.
pub(super) const NAMES: [&str; 2] = ["wasi:logging/logging@0.1.0-draft", "wasi:logging/logging"];

/// The field with the context of a line of `wasi:logging`.
const CONTEXT: &str = "context";

/// The message of a log line. A few more bytes are taken than are shown, so that a cut can be told.
type Message = Cut<{ MAX_LINE + 4 }>;

/// The context of a line, taken like the value of a field.
type Context = Cut<{ MAX_FIELD_VALUE + 4 }>;

/// The fields of a log line. Fields beyond those that are shown are left out.
type Fields = First<abi::Field, MAX_FIELDS>;

/// The levels of `wasi:logging`.
#[derive(ComponentType, Lift, Clone, Copy, Debug)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "only guests make these values")]
enum Severity {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
    #[component(name = "critical")]
    Critical,
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Trace => Self::Trace,
            Severity::Debug => Self::Debug,
            Severity::Info => Self::Info,
            Severity::Warn => Self::Warn,
            Severity::Error | Severity::Critical => Self::Error,
        }
    }
}

pub(super) fn add_to_linker(linker: &mut Linker<InstanceState>) -> wasmtime::Result<()> {
    linker.instance(&interface("log"))?.func_wrap(
        "write",
        |mut store: Store<'_>, (level, Cut(message), First(fields)): (abi::Level, Message, Fields)| {
            let texts = fields.iter().flat_map(|field| [&field.name.0, &field.value.0]);
            meter::charge_texts(&mut store, texts.chain([&message]))?;
            let fields = fields.into_iter().map(|field| (field.name.0, field.value.0));
            store.data().output.log(level.into(), &message, fields);
            Ok(())
        },
    )?;
    for name in NAMES {
        linker.instance(name)?.func_wrap(
            "log",
            |mut store: Store<'_>, (level, Cut(context), Cut(message)): (Severity, Context, Message)| {
                meter::charge_texts(&mut store, [&context, &message].into_iter())?;
                let context = Some(context).filter(|it| !it.is_empty());
                let fields = context.map(|context| (CONTEXT.to_owned(), context)).into_iter();
                store.data().output.log(level.into(), &message, fields);
                Ok(())
            },
        )?;
    }
    Ok(())
}
