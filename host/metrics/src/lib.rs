//! What Weir counts: gauges, rates, and what each extension uses of its limits.
//!
//! The worker thread writes here; any thread reads. Knows nothing of what is allowed.

mod dir_usage;
mod duration;
mod gauge;
mod per_second;
mod usage;

pub use self::{
    dir_usage::DirUsage, duration::nanoseconds, gauge::Gauge, per_second::PerSecond, usage::Usage,
};
