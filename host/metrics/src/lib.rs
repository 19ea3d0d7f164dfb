//! What Weir counts: gauges, rates, and what each extension uses of its limits.
//!
//! The worker thread writes here; any thread reads. Knows nothing of what is allowed.

mod usage;

pub use self::usage::{Gauge, PerSecond, Usage, nanoseconds};
