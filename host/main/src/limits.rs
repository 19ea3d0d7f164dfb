//! The limits of extensions, the source of each, and its use.
//!
//! Only reads: the configuration owns the limits; the extension and the bus write the use.

#[cfg(test)]
mod tests;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use weir_config::{Config, ExtensionConfig, Features, LIMIT_KEYS, LimitKey, MainConfig, MeasuredUse, source};
use weir_metrics::{DirUsage, Gauge, PerSecond, nanoseconds};
use weir_names::ExtensionId;
use weir_reports::seconds_if_any;
use weir_supervisor::Unit;

pub use weir_config::{FixedLimits, LimitHit, LimitName, LimitSource, LimitUnit, LimitValue};
pub use weir_guest::fuel_per_ms;

/// The limits of extensions, with what they are measured against.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct LimitsReport {
    /// Bytes allowed for the limits of all extensions, the peers, the queues and other sections, if bounded.
    pub memory_budget: Option<u64>,
    /// Bytes of all these limits, whether the extensions run or not.
    pub memory_sum: u64,
    /// Units of fuel that this machine burns in a millisecond of plain arithmetic, measured on first use.
    /// `None` if this build has no compiler, or the measurement failed.
    pub fuel_per_ms: Option<u64>,
    /// The requested extensions, in the order of the configuration.
    pub extensions: Vec<ExtensionLimits>,
}

/// The limits of one extension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ExtensionLimits {
    /// Its id.
    pub id: ExtensionId,
    /// Its limits class.
    pub class: String,
    /// Bytes it counts against the memory budget: [`ExtensionConfig::memory_sum`].
    pub memory_sum: u64,
    /// How long it was delayed for being over its `cpu-share`, since Main started. None in a report of
    /// [`LimitsReport::configured`].
    #[serde(rename = "delayed-seconds", serialize_with = "seconds_if_any::serialize")]
    pub delayed: Option<Duration>,
    /// Log lines lost to its `log-rate`, since Main started. None in a report of [`LimitsReport::configured`].
    pub log_dropped: Option<u64>,
    /// Requests by HTTP that no grant allows, or beyond `http.in-flight` and `http.header-size`, since Main started.
    /// None in a report of [`LimitsReport::configured`].
    pub http_refused: Option<u64>,
    /// Requests by HTTP that took longer than `http.total-timeout` and were ended, since Main started. None in a report
    /// of [`LimitsReport::configured`].
    pub http_timed_out: Option<u64>,
    /// Limits that operators set, each with its use.
    pub limits: Vec<EffectiveLimit>,
    /// Granted directories of bounded size.
    pub dirs: Vec<DirLimits>,
    /// Limits fixed by the class.
    pub fixed: FixedLimits,
    /// Most bytes it can pass to the host in one call: [`Limits::transfer`](crate::config::Limits::transfer).
    pub transfer: u64,
    /// Parts of WebAssembly that its class turns on.
    pub features: Features,
}

/// One limit of one extension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct EffectiveLimit {
    /// Its key, such as `inbox.messages`.
    pub key: &'static str,
    /// The unit of its values.
    pub unit: LimitUnit,
    /// The allowed value.
    pub allowed: LimitValue,
    /// The allowed value as a file writes it.
    pub text: String,
    /// The present use; for `ready-timeout` and `stop-timeout`, the duration of the last start and stop. `None`
    /// if it is not measured, as before the first start and stop.
    pub used: Option<LimitValue>,
    /// The most used since Main started. `None` if it is not measured.
    pub peak: Option<LimitValue>,
    /// The source of the allowed value.
    #[serde(serialize_with = "source")]
    pub source: LimitSource,
}

/// The limits and use of one granted directory, with its subdirectories. Writes of other extensions with the same
/// grant count, too. The use is none before the extension's first start.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct DirLimits {
    /// Its path in the extension.
    pub guest: String,
    /// Its path on the host.
    pub host: PathBuf,
    /// Most bytes, if bounded. Each entry counts in blocks of 4 KiB.
    pub max_bytes: Option<u64>,
    /// Most files, directories and symlinks, if bounded.
    pub max_files: Option<u64>,
    /// Bytes present.
    pub used_bytes: Option<u64>,
    /// Files, directories and symlinks present.
    pub used_files: Option<u64>,
    /// The most bytes since Main started.
    pub peak_bytes: Option<u64>,
    /// The most files, directories and symlinks since Main started.
    pub peak_files: Option<u64>,
    /// Bytes written since Main started, not rounded: the wear of flash memory.
    pub written_bytes: Option<u64>,
}

impl LimitsReport {
    /// The limits of this configuration, without use. For a running Main, see
    /// [`Control::limits`](crate::Control::limits).
    pub async fn configured(config: &Config) -> Self {
        let fuel_per_ms = fuel_per_ms().await;
        let extensions = config.extensions.iter().map(|extension| Asked { extension, unit: None });
        Self::of(extensions, &config.main, fuel_per_ms, config.memory_beside_extensions(), |_| true)
    }

    /// The limits and use of the `wanted` among `units`; `beside` is the bytes counted beside the extensions.
    pub(crate) fn running(
        units: &[Arc<Unit>],
        main: &MainConfig,
        fuel_per_ms: Option<u64>,
        beside: u64,
        wanted: impl Fn(&ExtensionId) -> bool,
    ) -> Self {
        let units: Vec<_> = units.iter().map(|unit| (unit, unit.version())).collect();
        let asked =
            units.iter().map(|(unit, version)| Asked { extension: &version.config, unit: Some(unit) });
        Self::of(asked, main, fuel_per_ms, beside, wanted)
    }

    fn of<'a>(
        extensions: impl Iterator<Item = Asked<'a>>,
        main: &MainConfig,
        fuel_per_ms: Option<u64>,
        beside: u64,
        wanted: impl Fn(&ExtensionId) -> bool,
    ) -> Self {
        let mut memory_sum = beside;
        let extensions = extensions
            .inspect(|asked| memory_sum = memory_sum.saturating_add(asked.extension.memory_sum()))
            .filter(|asked| wanted(&asked.extension.id))
            .map(|asked| asked.report(main))
            .collect();
        Self { memory_budget: main.memory_budget, memory_sum, fuel_per_ms, extensions }
    }
}

#[derive(Clone, Copy)]
struct Asked<'a> {
    extension: &'a ExtensionConfig,
    unit: Option<&'a Unit>,
}

impl Asked<'_> {
    fn report(self, main: &MainConfig) -> ExtensionLimits {
        let limits = &self.extension.limits;
        ExtensionLimits {
            id: self.extension.id.clone(),
            class: limits.class.clone(),
            memory_sum: self.extension.memory_sum(),
            delayed: self.unit.map(|unit| unit.usage.delayed()),
            log_dropped: self.unit.map(|unit| unit.usage.log_dropped.load(Ordering::Relaxed)),
            http_refused: self.unit.map(|unit| unit.usage.http_refused.load(Ordering::Relaxed)),
            http_timed_out: self.unit.map(|unit| unit.usage.http_timed_out.load(Ordering::Relaxed)),
            limits: LIMIT_KEYS.iter().map(|key| self.limit(key, main)).collect(),
            dirs: self.dirs().collect(),
            fixed: *limits.fixed(),
            transfer: limits.transfer(),
            features: limits.features,
        }
    }

    fn dirs(self) -> impl Iterator<Item = DirLimits> {
        let dirs = self.extension.grants.dirs.iter();
        dirs.filter(|dir| dir.is_bounded()).map(move |dir| {
            let usage = self.unit.and_then(|unit| unit.usage.dir(&dir.host));
            let usage = usage.as_deref();
            DirLimits {
                guest: dir.guest.to_string(),
                host: dir.host.clone(),
                max_bytes: dir.max_bytes,
                max_files: dir.max_files,
                used_bytes: usage.map(|usage| usage.bytes.now()),
                used_files: usage.map(|usage| usage.files.now()),
                peak_bytes: usage.map(|usage| usage.bytes.peak()),
                peak_files: usage.map(|usage| usage.files.peak()),
                written_bytes: usage.map(DirUsage::written),
            }
        })
    }

    fn limit(self, key: &'static LimitKey, main: &MainConfig) -> EffectiveLimit {
        let limits = &self.extension.limits;
        let (allowed, source) = match (key.get)(limits) {
            Some(allowed) => (allowed, limits.source(key)),
            // Only `request-timeout` is optional.
            None => (nanoseconds(main.request_timeout), LimitSource::Main("request-timeout")),
        };
        let used = self.unit.and_then(|unit| used(key.used, unit));
        let value = |number| key.unit.value(number);
        EffectiveLimit {
            key: key.name,
            unit: key.unit,
            allowed: value(allowed),
            text: key.shape.text(allowed),
            used: used.and_then(|used| used.now).map(value),
            peak: used.map(|used| value(used.peak)),
            source,
        }
    }
}

#[derive(Clone, Copy)]
struct Used {
    /// `None` for what is measured only at single moments, such as a message's arrival.
    now: Option<u64>,
    peak: u64,
}

impl Used {
    fn of(gauge: &Gauge) -> Self {
        Self { now: Some(gauge.now()), peak: gauge.peak() }
    }

    /// `None` until something is measured, because no measured time is 0.
    fn of_measured(gauge: &Gauge) -> Option<Self> {
        (gauge.peak() > 0).then(|| Self::of(gauge))
    }

    fn in_second(counter: &PerSecond) -> Self {
        Self { now: Some(counter.now()), peak: counter.peak() }
    }

    /// Nanoseconds in a second, as hundredths of a percent.
    fn scaled_to_share(self) -> Self {
        const NANOSECONDS: u64 = 100_000;
        Self { now: self.now.map(|now| now / NANOSECONDS), peak: self.peak / NANOSECONDS }
    }

    /// The fuller of two uses under the same limit.
    fn or(self, other: Self) -> Self {
        Self { now: self.now.max(other.now), peak: self.peak.max(other.peak) }
    }
}

fn used(measured: MeasuredUse, unit: &Unit) -> Option<Used> {
    let usage = &unit.usage;
    match measured {
        MeasuredUse::Memory => Some(Used::of(&usage.memory)),
        MeasuredUse::FuelPerMessage => Some(Used::of(&usage.fuel_per_message)),
        MeasuredUse::FuelToStart => Some(Used::of(&usage.fuel_to_start)),
        MeasuredUse::CpuInSecond => Some(Used::in_second(&usage.cpu_second).scaled_to_share()),
        MeasuredUse::LargestMessage => {
            Some(Used { now: None, peak: unit.version().peer.stats().largest.load(Ordering::Relaxed) })
        }
        MeasuredUse::InboxMessages => {
            let (now, peak) = unit.version().peer.inbox().filling();
            Some(Used { now: Some(now.messages), peak: peak.messages })
        }
        MeasuredUse::InboxBytes => {
            let (now, peak) = unit.version().peer.inbox().filling();
            Some(Used { now: Some(now.bytes), peak: peak.bytes })
        }
        MeasuredUse::Requests => Some(Used::of(&usage.in_hand).or(Used::of(&usage.under_way))),
        MeasuredUse::HttpRequests => Some(Used::of(&usage.http)),
        MeasuredUse::HttpInSecond => Some(Used::in_second(&usage.http_rate)),
        MeasuredUse::HttpBytesIn => Some(Used::in_second(&usage.http_bytes_in)),
        MeasuredUse::HttpBytesOut => Some(Used::in_second(&usage.http_bytes_out)),
        MeasuredUse::LinesInSecond => Some(Used::in_second(&usage.log_rate)),
        MeasuredUse::LastStart => Used::of_measured(&usage.ready),
        MeasuredUse::LastStop => Used::of_measured(&usage.stop),
        MeasuredUse::Unmeasured => None,
    }
}
