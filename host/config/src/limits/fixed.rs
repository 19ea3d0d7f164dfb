//! Bounds that no operator sets.

use serde::Serialize;

/// Whether extensions and hooks are interpreted: always on processors for which wasmtime makes no code, and elsewhere
/// with the feature `pulley`.
pub const INTERPRETED: bool = cfg!(any(
    feature = "pulley",
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64", target_arch = "s390x"))
));

/// A tenth of a millisecond of compiled code on a server. Pulley is 16 to 20 times slower.
const FUEL_SLICE: u64 = if INTERPRETED { 100_000 / 16 } else { 100_000 };

/// Bounds that come with a built-in class and the classes that inherit from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct FixedLimits {
    /// The name of that class.
    pub class: &'static str,
    /// Fuel after which the extension yields to others.
    pub fuel_slice: u64,
    /// Stack for host functions that it calls, in bytes, on top of its own.
    pub host_stack: u64,
    /// Elements of all its tables together, 8 bytes each.
    pub table_elements: u64,
    /// Tables, over all core instances.
    pub tables: u64,
    /// Linear memories, over all core instances.
    pub memories: u64,
    /// Core instances.
    pub instances: u64,
    /// WASI resources: descriptors, streams, sockets and pollables together.
    pub resources: u64,
    /// Random bytes of one call.
    pub random_bytes: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Open operations.
    pub open_operations: u64,
}

impl FixedLimits {
    pub(super) const MIN: Self = Self {
        class: "min",
        fuel_slice: FUEL_SLICE,
        host_stack: 1024 * 1024,
        table_elements: 1 << 16,
        tables: 64,
        memories: 128,
        instances: 64,
        resources: 128,
        random_bytes: 4096,
        subscriptions: 64,
        open_operations: 256,
    };

    pub(super) const MEDIUM: Self = Self {
        class: "medium",
        table_elements: 1 << 18,
        instances: 128,
        resources: 512,
        subscriptions: 256,
        open_operations: 1024,
        ..Self::MIN
    };

    pub(super) const MAX: Self = Self {
        class: "max",
        table_elements: 1 << 20,
        tables: 256,
        memories: 256,
        instances: 512,
        resources: 1024,
        ..Self::MEDIUM
    };
}
