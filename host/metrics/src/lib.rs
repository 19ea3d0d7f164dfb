//! What Weir counts: gauges, rates, and what each extension uses of its limits.
//!
//! The worker thread writes here; any thread reads. Knows nothing of what is allowed.

mod duration;
mod gauge;
mod per_second;
mod usage;

pub use self::{duration::nanoseconds, gauge::Gauge, per_second::PerSecond, usage::Usage};
