//! Weir's measurements: gauges, rates, and each extension's use of its limits.
//!
//! The worker thread writes, any thread reads. Knows nothing of the limits.

mod durations;
mod gauge;
mod usage;

pub use self::{
    durations::{Durations, DurationsSnapshot, measure_ending, moment, nanoseconds},
    gauge::{Gauge, PerSecond},
    usage::{DirUsage, Usage},
};
