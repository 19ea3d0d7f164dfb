//! What limits extensions have, where each comes from, and what is used of it: for whoever asks.
//!
//! Only reads: the limits are the configuration's, the use is written by the extension and the bus.

#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::atomic::Ordering, time::Duration};

use serde::Serialize;
use weir_config::{Config, ExtensionConfig, LIMIT_KEYS, LimitKey, MainConfig, MeasuredUse, seconds, source};
use weir_metrics::{DirUsage, Gauge, PerSecond, nanoseconds};
use weir_names::ExtensionId;
use weir_supervisor::Unit;

pub use weir_config::{FixedLimits, LimitHit, LimitName, LimitSource, LimitValue};
pub use weir_guest::fuel_per_ms;

/// The limits of extensions, and what they are measured against.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct LimitsReport {
    /// Bytes that the limits of all extensions, the queues and what other sections hold may come to, if that is bounded.
    pub memory_budget: Option<u64>,
    /// Bytes that they come to, whether they run or not.
    pub memory_sum: u64,
    /// Units of fuel that this machine burns in a millisecond of plain arithmetic, as measured when it
    /// was first asked for. None: this build has no compiler, or it could not be measured.
    pub fuel_per_ms: Option<u64>,
    /// The extensions that were asked for, in the order of the configuration.
    pub extensions: Vec<ExtensionLimits>,
}

/// The limits of one extension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ExtensionLimits {
    /// Its id.
    pub id: ExtensionId,
    /// The class that they come from.
    pub class: String,
    /// Bytes that it counts against the memory budget: [`ExtensionConfig::memory_sum`].
    pub memory_sum: u64,
    /// How long it could have run and was delayed, being over its `cpu-share`, since Main started. None:
    /// no Main was asked.
    #[serde(rename = "delayed-seconds", serialize_with = "seconds")]
    pub delayed: Option<Duration>,
    /// Lines over its `log-rate`, which are lost, since Main started. None: no Main was asked.
    pub log_dropped: Option<u64>,
    /// What operators set, each with what is used of it.
    pub limits: Vec<EffectiveLimit>,
    /// Granted directories whose size is bounded.
    pub dirs: Vec<DirLimits>,
    /// What comes with the class and nobody sets.
    pub fixed: FixedLimits,
    /// Bytes that it can hand over to the host in one call:
    /// [`Limits::transfer`](crate::config::Limits::transfer).
    pub transfer: u64,
}

/// One limit of one extension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct EffectiveLimit {
    /// Its key, as in `inbox.messages`.
    pub key: &'static str,
    /// What its values count, by the name that JSON has for it.
    pub unit: &'static str,
    /// What is allowed.
    pub allowed: LimitValue,
    /// The same as a file would write it.
    pub text: String,
    /// What is used now; for `ready-timeout` and `stop-timeout`, what the last start and stop took. None:
    /// it is not measured, as before the first start and stop, or no Main was asked.
    pub used: Option<LimitValue>,
    /// The most that was used since Main started.
    pub peak: Option<LimitValue>,
    /// Where what is allowed comes from.
    #[serde(serialize_with = "source")]
    pub source: LimitSource,
}

/// What may be in one granted directory, with all directories in it, and what is. Where other extensions have the same
/// one, what they write is counted, too. What is there is not known where no Main was asked, or the extension has not
/// started yet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct DirLimits {
    /// Where the extension finds it.
    pub guest: String,
    /// Where it is on the host.
    pub host: PathBuf,
    /// Bytes that may be there, if they are bounded: those of each entry are rounded up to blocks of 4 KiB.
    pub max_bytes: Option<u64>,
    /// Files, directories and symlinks that may be there, if they are bounded.
    pub max_files: Option<u64>,
    /// Bytes that are there.
    pub used_bytes: Option<u64>,
    /// Files, directories and symlinks that are there.
    pub used_files: Option<u64>,
    /// The most bytes since Main started.
    pub peak_bytes: Option<u64>,
    /// The most files, directories and symlinks since Main started.
    pub peak_files: Option<u64>,
    /// Bytes that were written since Main started, as they are: flash memory wears by them.
    pub written_bytes: Option<u64>,
}

impl LimitsReport {
    /// The limits that extensions would have under this configuration; used is nothing of them. Not what
    /// a Main that runs has, whose configuration may be another: that is
    /// [`Control::limits`](crate::Control::limits).
    pub async fn configured(config: &Config) -> Self {
        let fuel_per_ms = fuel_per_ms().await;
        let extensions = config.extensions.iter().map(|extension| Asked { extension, unit: None });
        Self::of(extensions, &config.main, fuel_per_ms, config.memory_beside_extensions(), |_| true)
    }

    /// The limits of those of `units` that are `wanted`, and what is used of them; and the bytes that
    /// count `beside` the extensions.
    pub(crate) fn running(
        units: &[impl AsRef<Unit>],
        main: &MainConfig,
        fuel_per_ms: Option<u64>,
        beside: u64,
        wanted: impl Fn(&ExtensionId) -> bool,
    ) -> Self {
        let units: Vec<_> = units.iter().map(|unit| (unit.as_ref(), unit.as_ref().version())).collect();
        let asked =
            units.iter().map(|(unit, version)| Asked { extension: &version.config, unit: Some(*unit) });
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

/// One extension, and where what it uses is to be seen, if it is one of a Main that runs.
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
            limits: LIMIT_KEYS.iter().map(|key| self.limit(key, main)).collect(),
            dirs: self.dirs().collect(),
            fixed: *limits.fixed(),
            transfer: limits.transfer(),
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
            // The only limit that can be left out.
            None => (nanoseconds(main.request_timeout), LimitSource::Main("request-timeout")),
        };
        let used = self.unit.and_then(|unit| used(key.used, unit));
        let value = |number| key.unit.value(number);
        EffectiveLimit {
            key: key.name,
            unit: key.unit.name(),
            allowed: value(allowed),
            text: key.shape.text(allowed),
            used: used.and_then(|used| used.now).map(value),
            peak: used.map(|used| value(used.peak)),
            source,
        }
    }
}

/// What is used of a limit, in the unit in which it is kept.
#[derive(Clone, Copy)]
struct Used {
    /// None: it is of single moments, such as that of a message's arrival.
    now: Option<u64>,
    peak: u64,
}

impl Used {
    fn of(gauge: &Gauge) -> Self {
        Self { now: Some(gauge.now()), peak: gauge.peak() }
    }

    /// None as long as nothing has been measured, which takes some time itself.
    fn of_measured(gauge: &Gauge) -> Option<Self> {
        (gauge.peak() > 0).then(|| Self::of(gauge))
    }

    fn in_second(counter: &PerSecond) -> Self {
        Self { now: Some(counter.now()), peak: counter.peak() }
    }

    /// Nanoseconds in a second as hundredths of a percent.
    fn scaled_to_share(self) -> Self {
        const NANOSECONDS: u64 = 100_000;
        Self { now: self.now.map(|now| now / NANOSECONDS), peak: self.peak / NANOSECONDS }
    }

    /// The fuller of two that the limit holds for each.
    fn or(self, other: Self) -> Self {
        Self { now: self.now.max(other.now), peak: self.peak.max(other.peak) }
    }
}

/// What an extension uses, if it is measured.
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
        MeasuredUse::LinesInSecond => Some(Used::in_second(&usage.log_rate)),
        MeasuredUse::LastStart => Used::of_measured(&usage.ready),
        MeasuredUse::LastStop => Used::of_measured(&usage.stop),
        MeasuredUse::Unmeasured => None,
    }
}
