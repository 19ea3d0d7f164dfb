//! Weir's measurements: gauges, rates, and each extension's use of its limits.
//!
//! The worker thread writes, any thread reads. Knows nothing of the limits.

mod dir_usage;
mod duration;
mod durations;
mod gauge;
mod per_second;
mod usage;

pub use self::{
    dir_usage::DirUsage,
    duration::{moment, nanoseconds},
    durations::{Durations, DurationsSnapshot, measure_ending},
    gauge::Gauge,
    per_second::PerSecond,
    usage::Usage,
};
