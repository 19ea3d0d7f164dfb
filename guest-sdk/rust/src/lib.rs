#![doc = include_str!("../README.md")]

#[expect(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "generated from `wit/iec.wit`"
)]
#[rustfmt::skip]
mod bindings;
mod context;
mod contract;
mod error;
mod extension;
mod file_writer;
pub mod hook;
mod host;
mod link;
pub mod log;
mod manifest;
mod program;
mod queue;
pub mod raw;
mod serve;
mod task;
mod tasks;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod topic;

/// Sockets, timers and streams for async code inside a component.
///
/// Work beside the handlers belongs in [`Extension::background`] and [`Context::spawn`], not in
/// `wstd::runtime::spawn`. The extension does not know of tasks spawned there: they stand still while no
/// handler waits, `main` does not return before they end, and each makes Main look at all sockets and
/// timers.
#[cfg(target_family = "wasm")]
pub use wstd;

/// The codec of arguments and results, between values and payload bytes.
pub use weir_names::codec;
/// A type that describes its JSON. The derive reads the attributes of serde that change the JSON, and refuses
/// those that it cannot describe.
///
/// The attribute `#[shape(as = "Type")]` describes a field, or the whole type, as another type:
///
/// ```
/// use std::time::Duration;
///
/// /// A timer.
/// #[derive(weir_sdk::Shape)]
/// struct Timer {
///     /// Milliseconds.
///     #[serde(with = "milliseconds")]
///     #[shape(as = "u64")]
///     after: Duration,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(weir_sdk::Shape)]
/// struct Timer {
///     #[serde(flatten)]
///     more: std::collections::BTreeMap<String, u64>,
/// }
/// ```
pub use weir_names::shape::Shape;
pub use weir_names::{Contract, Description, Error, HandlerError, Operation, codec::Empty, shape};
pub use weir_sdk_derive::Shape;

pub use self::{
    context::{CallOptions, Context},
    extension::Extension,
    file_writer::FileWriter,
    manifest::{Dir, Manifest},
    queue::{Job, JobId, Queue},
    task::Task,
    topic::{AsTopic, Event, Receipt, Topic},
};

/// Items that the macros of this crate use.
#[doc(hidden)]
pub mod __private {
    pub use weir_names::{Item, Payload};

    pub use crate::manifest::undescribed;
}
