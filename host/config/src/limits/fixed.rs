//! What is bounded beside the limits that operators set.

use serde::Serialize;

/// Bounds that come with a built-in class, which every class inherits from, and that nobody sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct FixedLimits {
    /// The name of that class.
    pub class: &'static str,
    /// Units of fuel after which the extension lets others run.
    pub fuel_slice: u64,
    /// Bytes of stack for functions of the host that it calls, on top of its own.
    pub host_stack: u64,
    /// Elements of all its tables together, 8 bytes each.
    pub table_elements: u64,
    /// Tables, over all core instances.
    pub tables: u64,
    /// Linear memories, over all core instances.
    pub memories: u64,
    /// Core instances.
    pub instances: u64,
    /// WASI resources that it holds: descriptors, streams, sockets and pollables together.
    pub resources: u64,
    /// Bytes of randomness that one call gives.
    pub random_bytes: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Operations that it has opened.
    pub open_operations: u64,
}

impl FixedLimits {
    pub(super) const MIN: Self = Self {
        class: "min",
        fuel_slice: 100_000,
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
