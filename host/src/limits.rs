//! What limits extensions have, where each comes from, and what is used of it: for whoever asks.
//!
//! Only reads: the limits are the configuration's, the use is written by the extension and the bus.

#[cfg(test)]
mod tests;

use std::{sync::atomic::Ordering, time::Duration};

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{
    config::{Config, ExtensionConfig, FixedLimits, KEYS, Key, LimitSource, MainConfig, Shape},
    extension::fuel_per_ms,
    names::ExtensionId,
    roster::Unit,
    usage::{Gauge, PerSecond},
};

/// The limits of extensions, and what they are measured against.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct LimitsReport {
    /// Bytes that the limits of all extensions may come to, if that is bounded.
    pub memory_budget: Option<u64>,
    /// Bytes that the limits of all extensions come to, whether they run or not.
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
    /// Bytes that it counts against the memory budget: [`Limits::memory_sum`](crate::Limits::memory_sum).
    pub memory_sum: u64,
    /// How long it could have run and was delayed, being over its `cpu-share`, since Main started. None:
    /// no Main was asked.
    #[serde(rename = "delayed-seconds", serialize_with = "seconds")]
    pub delayed: Option<Duration>,
    /// Lines over its `log-rate`, which are lost, since Main started. None: no Main was asked.
    pub log_dropped: Option<u64>,
    /// What operators set, each with what is used of it.
    pub limits: Vec<EffectiveLimit>,
    /// What comes with the class and nobody sets.
    pub fixed: FixedLimits,
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
    /// it is not measured, or no Main was asked.
    pub used: Option<LimitValue>,
    /// The most that was used since Main started.
    pub peak: Option<LimitValue>,
    /// Where what is allowed comes from.
    #[serde(serialize_with = "source")]
    pub source: LimitSource,
}

/// What is allowed or used. In JSON each is a number: times are in seconds, shares go from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LimitValue {
    /// Bytes, messages, requests, units of fuel or lines a second.
    Count(u64),
    /// A length of time.
    Time(Duration),
    /// A share of the worker thread's time, from 0 to 1.
    Share(f64),
}

impl LimitsReport {
    /// The limits that extensions would have under this configuration; used is nothing of them. Not what
    /// a Main that runs has, whose configuration may be another: that is
    /// [`Control::limits`](crate::Control::limits).
    pub async fn configured(config: &Config) -> Self {
        let extensions = config.extensions.iter().map(|extension| Asked { extension, unit: None });
        Self::of(extensions, &config.main, |_| true).await
    }

    /// The limits of those of `units` that are `wanted`, and what is used of them.
    pub(crate) async fn running(
        units: &[impl AsRef<Unit>],
        main: &MainConfig,
        wanted: impl Fn(&ExtensionId) -> bool,
    ) -> Self {
        let extensions = units.iter().map(AsRef::as_ref);
        let extensions = extensions.map(|unit| Asked { extension: &unit.config, unit: Some(unit) });
        Self::of(extensions, main, wanted).await
    }

    async fn of<'a>(
        extensions: impl Iterator<Item = Asked<'a>>,
        main: &MainConfig,
        wanted: impl Fn(&ExtensionId) -> bool,
    ) -> Self {
        let fuel_per_ms = fuel_per_ms().await;
        let mut memory_sum = 0_u64;
        let extensions = extensions
            .inspect(|asked| memory_sum = memory_sum.saturating_add(asked.extension.limits.memory_sum()))
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
            memory_sum: limits.memory_sum(),
            delayed: self.unit.map(|unit| unit.usage.delayed()),
            log_dropped: self.unit.map(|unit| unit.usage.log_dropped.load(Ordering::Relaxed)),
            limits: KEYS.iter().map(|key| self.limit(key, main)).collect(),
            fixed: *limits.fixed(),
        }
    }

    fn limit(self, key: &'static Key, main: &MainConfig) -> EffectiveLimit {
        let limits = &self.extension.limits;
        let (allowed, source) = match (key.get)(limits) {
            Some(allowed) => (allowed, limits.source(key)),
            // The only limit that can be left out.
            None => (nanoseconds(main.request_timeout), LimitSource::Main("request-timeout")),
        };
        let used = self.unit.and_then(|unit| used(key.name, unit));
        let value = |number| match key.shape {
            Shape::Time(_) => LimitValue::Time(Duration::from_nanos(number)),
            Shape::Share(_) => LimitValue::Share(fraction(number)),
            _ => LimitValue::Count(number),
        };
        EffectiveLimit {
            key: key.name,
            unit: unit(key),
            allowed: value(allowed),
            text: key.shape.text(allowed),
            used: used.and_then(|used| used.now).map(value),
            peak: used.map(|used| value(used.peak)),
            source,
        }
    }
}

/// What the numbers of a limit count, by the name that JSON has for it.
fn unit(key: &Key) -> &'static str {
    match (&key.shape, key.name) {
        (Shape::Size(_), _) => "bytes",
        (Shape::Time(_), _) => "s",
        (Shape::Share(_), _) => "share",
        (_, "fuel-per-message" | "fuel-to-start") => "fuel",
        (_, "in-flight") => "requests",
        (_, "log-rate") => "lines/s",
        _ => "messages",
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

/// What an extension uses of the limit of that name, if it is measured.
fn used(key: &str, unit: &Unit) -> Option<Used> {
    let usage = &unit.usage;
    match key {
        "memory" => Some(Used::of(&usage.memory)),
        "fuel-per-message" => Some(Used::of(&usage.fuel_per_message)),
        "fuel-to-start" => Some(Used::of(&usage.fuel_to_start)),
        "cpu-share" => Some(Used::in_second(&usage.cpu_second).scaled_to_share()),
        "message-size" => Some(Used { now: None, peak: unit.peer.stats().largest.load(Ordering::Relaxed) }),
        "inbox.messages" => {
            let (now, peak) = unit.peer.inbox().filling();
            Some(Used { now: Some(now.messages), peak: peak.messages })
        }
        "inbox.bytes" => {
            let (now, peak) = unit.peer.inbox().filling();
            Some(Used { now: Some(now.bytes), peak: peak.bytes })
        }
        "in-flight" => Some(Used::of(&usage.in_hand).or(Used::of(&usage.under_way))),
        "log-rate" => Some(Used::in_second(&usage.log_rate)),
        "ready-timeout" => Some(Used::of(&usage.ready)),
        "stop-timeout" => Some(Used::of(&usage.stop)),
        // Of `stack` nothing counts how deep it goes, of `request-timeout` each request may have another.
        _ => None,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Of hundredths of a percent.
fn fraction(basis_points: u64) -> f64 {
    f64::from(u32::try_from(basis_points).unwrap_or(u32::MAX)) / 10_000.0
}

impl Serialize for LimitValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Time(time) => serializer.serialize_f64(time.as_secs_f64()),
            Self::Share(share) => serializer.serialize_f64(*share),
        }
    }
}

fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

/// What kind it is, for programs, and all of it for people.
fn source<S: Serializer>(source: &LimitSource, serializer: S) -> Result<S::Ok, S::Error> {
    let kind = match source {
        LimitSource::Class(_) => "class",
        LimitSource::File { .. } => "file",
        LimitSource::Environment(_) => "environment",
        LimitSource::Main(_) => "main",
        LimitSource::Program => "program",
    };
    let mut json = serializer.serialize_struct("LimitSource", 2)?;
    json.serialize_field("kind", kind)?;
    json.serialize_field("text", &source.to_string())?;
    json.end()
}
