//! What is known of the versions of one extension, and how it changes. Pure: it has neither clock nor disk.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use semver::Version;
use serde::{Deserialize, Serialize};
use weir_config::{ArtifactHash, ExtensionConfig, Stanza, UpdateConfig};
use weir_names::ExtensionId;
use weir_reports::{Standing, VersionChange, VersionFigures, VersionStatus};

use crate::{Found, data::Data, form::Form, judge, state_dir::Kept};

/// Proven versions of an extension whose components are kept: the one that runs or comes back, and those before it.
const KEPT_PROVEN: usize = 3;

/// Refused versions of an extension that are remembered.
const KEPT_REFUSED: usize = 16;

/// Changes that are remembered.
const KEPT_CHANGES: usize = 32;

/// The versions of one extension.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Record {
    /// The highest number so far.
    last: u64,
    /// The version that runs, or ran last.
    pub(crate) serving: Option<u64>,
    /// The version on probation that one of several instances runs beside the version that serves.
    #[serde(default)]
    pub(crate) canary: Option<u64>,
    /// The proven version that runs in place of a refused one.
    pub(crate) fallback: Option<u64>,
    /// Why another version runs than the configured one.
    pub(crate) held_back: Option<String>,
    /// The versions, oldest first.
    pub(crate) entries: Vec<Entry>,
    pub(crate) changes: VecDeque<VersionChange>,
    #[serde(default)]
    pub(crate) data: Data,
}

/// One version, with the stanza that it ran under. Without a stanza, the program gives the configuration.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) status: VersionStatus,
    pub(crate) stanza: Option<Stanza>,
    /// The text of the component's signature, if Main required one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<Arc<str>>,
    /// Whether an operator has gone back to a version that is signed as an older one, so that this one forbids none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_passed_over: bool,
    /// What its component says of its data. None if that was not read yet.
    #[serde(default)]
    pub(crate) form: Option<Form>,
}

impl Entry {
    pub(crate) fn hash(&self) -> Option<ArtifactHash> {
        self.status.hash.parse().ok()
    }

    /// The version in its signature.
    fn signed_version(&self) -> Option<Version> {
        signed_version(self.signature.as_deref()?)
    }

    /// Whether this is the version with this component and configuration.
    fn is(&self, hash: ArtifactHash, configured: &ExtensionConfig) -> bool {
        let is_same = |stanza: &Stanza| {
            let own = stanza.config();
            own.is_ok_and(|own| as_one(own).runs_as(&as_one(configured.clone())))
        };
        self.hash() == Some(hash)
            && match &self.stanza {
                Some(stanza) => configured.stanza.as_deref() == Some(stanza) || is_same(stanza),
                None => configured.stanza.is_none(),
            }
    }
}

/// Returns the configuration as that of an extension with one instance. All instances are of one version.
fn as_one(mut config: ExtensionConfig) -> ExtensionConfig {
    config.id = config.copy_of.take().unwrap_or(config.id);
    config.instances = 1;
    config
}

/// Reads the version in the text of a signature.
fn signed_version(signature: &str) -> Option<Version> {
    signature.lines().find_map(|line| Version::parse(line.strip_prefix("version ")?).ok())
}

/// A version on probation that has not run yet.
fn begun(number: u64, hash: String, since: SystemTime) -> VersionStatus {
    VersionStatus {
        number,
        hash,
        standing: Standing::Probation,
        since,
        ran: Duration::ZERO,
        failures: 0,
        figures: VersionFigures::default(),
        reason: None,
    }
}

impl Record {
    pub(crate) fn get(&self, number: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.status.number == number)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.status.number == number)
    }

    /// Finds the version with this component and configuration.
    pub(crate) fn find(&self, hash: ArtifactHash, configured: &ExtensionConfig) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.is(hash, configured))
    }

    /// Returns the version that comes back if this one does not hold.
    pub(crate) fn fallback_of(&self, number: u64) -> Option<&Entry> {
        self.proven_fallback().filter(|entry| entry.status.number != number)
    }

    /// Returns the version that comes back, if it is proven.
    pub(crate) fn proven_fallback(&self) -> Option<&Entry> {
        self.get(self.fallback?).filter(|entry| entry.status.standing == Standing::Proven)
    }

    /// Keeps the signature of a component, which may have been signed again.
    pub(crate) fn sign(&mut self, hash: ArtifactHash, signature: Option<&Arc<str>>) {
        for entry in self.entries.iter_mut().filter(|entry| entry.hash() == Some(hash)) {
            if signature.is_some() {
                entry.signature = signature.cloned();
            }
        }
    }

    /// Makes a proven version the one that comes back. If others are signed as newer ones, an operator has let this one
    /// run all the same.
    pub(crate) fn comes_back(&mut self, number: u64) {
        self.fallback = Some(number);
        let Some(version) = self.get(number).and_then(Entry::signed_version) else { return };
        for entry in &mut self.entries {
            let other = entry.signed_version();
            entry.is_passed_over = other.is_some_and(|other| other.cmp_precedence(&version).is_gt());
        }
    }

    /// Returns the proven version that comes back, and why it runs rather than this component: that is signed as older
    /// than a proven version that is not revoked, or nobody knows how old it is. None if it may run.
    pub(crate) fn newer_than(
        &self,
        id: &ExtensionId,
        found: &Found,
        is_revoked: impl Fn(ArtifactHash, Option<&str>) -> bool,
    ) -> Option<(u64, String)> {
        let counts = |entry: &&Entry| {
            let is_revoked = |hash| is_revoked(hash, entry.signature.as_deref());
            entry.status.standing == Standing::Proven
                && !entry.is_passed_over
                && !entry.hash().is_some_and(is_revoked)
        };
        let proven = self.entries.iter().filter(counts).filter_map(Entry::signed_version);
        let highest = proven.max_by(Version::cmp_precedence)?;
        let is_fallback = || self.proven_fallback().and_then(Entry::hash) == Some(found.hash);
        let what = match found.signature.as_deref().and_then(signed_version) {
            Some(version) if version.cmp_precedence(&highest).is_lt() => {
                format!("it is signed as version {version}")
            }
            None if found.must_be_newer && !is_fallback() => {
                "it is an artifact without a `.sig` that names its version".to_owned()
            }
            _ => return None,
        };
        let reason = format!(
            "{what}, and {highest} is proven: `weir reload {id} --now` runs {} all the same",
            if found.signature.is_some() { "the older one" } else { "it" }
        );
        Some((self.comebacks().next()?.status.number, reason))
    }

    /// Drops the versions on probation, but the one that runs until another one does.
    pub(crate) fn drop_probation(&mut self) {
        let run = [self.serving, self.canary];
        self.entries.retain(|Entry { status, .. }| {
            status.standing != Standing::Probation || run.contains(&Some(status.number))
        });
    }

    /// Notes that this version serves, or that only the canary runs it. Another one on probation has had its time. `tries`
    /// says whether this instance would be the canary, or is the only one. Returns whether it is the canary.
    pub(crate) fn serves(&mut self, number: u64, is_canary: bool, tries: bool) -> bool {
        let is_on_probation =
            self.get(number).is_some_and(|entry| entry.status.standing == Standing::Probation);
        let is_canary = is_canary && is_on_probation;
        if tries {
            self.canary = is_canary.then_some(number);
        }
        // Another instance that goes on with an older version decides nothing for all.
        let is_older = self.serving == self.fallback && self.fallback_of(number).is_some();
        let is_behind = is_older && !is_on_probation && !tries;
        if !is_canary && !is_behind {
            self.serving = Some(number);
        }
        if is_on_probation {
            self.drop_probation();
        }
        is_canary
    }

    /// The version that runs and is on probation, if there is one.
    pub(crate) fn on_probation(&self) -> Option<u64> {
        let runs = self.canary.or(self.serving)?;
        self.get(runs).filter(|entry| entry.status.standing == Standing::Probation)?;
        Some(runs)
    }

    /// The latest version on probation, whether it has been ready or not.
    pub(crate) fn latest_probation(&self) -> Option<u64> {
        let mut latest = self.entries.iter().rev().map(|entry| &entry.status);
        latest.find(|status| status.standing == Standing::Probation).map(|status| status.number)
    }

    /// Adds a version on probation, in place of another one on probation. Returns its number.
    pub(crate) fn add(&mut self, hash: ArtifactHash, stanza: Option<Stanza>, now: SystemTime) -> u64 {
        self.drop_probation();
        self.last += 1;
        let status = begun(self.last, hash.to_string(), now);
        self.entries.push(Entry { status, stanza, signature: None, is_passed_over: false, form: None });
        self.last
    }

    /// Takes back a version that was added to a record like this.
    pub(crate) fn take_back(&mut self, number: u64, before: Self) {
        self.remove(number);
        let dropped = before.entries.into_iter().filter(|entry| self.get(entry.status.number).is_none());
        let dropped =
            dropped.filter(|entry| entry.status.standing == Standing::Probation).collect::<Vec<_>>();
        self.entries.extend(dropped);
        (self.last, self.held_back) = (before.last, before.held_back);
    }

    /// The proven versions that can come back: the fallback, and then the others, latest first.
    pub(crate) fn comebacks(&self) -> impl Iterator<Item = &Entry> {
        let is_fallback = |entry: &&Entry| Some(entry.status.number) == self.fallback;
        let proven = |entry: &&Entry| entry.status.standing == Standing::Proven;
        let others = self.entries.iter().rev().filter(move |entry| !is_fallback(entry));
        self.fallback.and_then(|number| self.get(number)).into_iter().chain(others).filter(proven)
    }

    /// Puts a refused version on probation once more.
    pub(crate) fn try_again(&mut self, number: u64, now: SystemTime) {
        self.held_back = None;
        // It is another order than that to go back from it.
        self.data.wanted = None;
        self.drop_probation();
        if let Some(Entry { status, .. }) = self.get_mut(number) {
            *status = begun(number, status.hash.clone(), now);
        }
    }

    pub(crate) fn remove(&mut self, number: u64) {
        self.entries.retain(|entry| entry.status.number != number);
        self.prune_data();
    }

    /// What stays of the record of an extension that is no longer configured, when there is no room for the rest: what is
    /// known of its data. None if that is nothing.
    pub(crate) fn without_versions(self) -> Option<Self> {
        let Data { since, due, aside, generation, .. } = self.data;
        let data = Data { since, due, aside, generation, ..Data::default() };
        (data != Data::default()).then(|| Self { last: self.last, data, ..Self::default() })
    }

    /// Notes what the component of a version says of its data.
    pub(crate) fn note_form(&mut self, number: u64, form: Form) {
        if let Some(entry) = self.get_mut(number) {
            entry.form = Some(form);
        }
    }

    /// Adds what a version did in a time in which it ran.
    pub(crate) fn count(&mut self, number: u64, ran: Duration, figures: &VersionFigures) {
        if let Some(Entry { status, .. }) = self.get_mut(number) {
            status.figures.add(figures);
            if status.standing == Standing::Probation {
                status.ran += ran;
            }
        }
    }

    /// Counts a failure of a version on probation.
    pub(crate) fn count_failure(&mut self, number: u64) {
        if let Some(Entry { status, .. }) = self.get_mut(number)
            && status.standing == Standing::Probation
        {
            status.failures += 1;
        }
    }

    /// Returns why a version on probation does not hold, if it does not and another one can come back.
    pub(crate) fn fault(&self, number: u64, update: &UpdateConfig) -> Option<String> {
        let now = self.get(number).filter(|entry| entry.status.standing == Standing::Probation)?;
        judge::fault(update, &now.status, &self.fallback_of(number)?.status)
    }

    /// Gives a version another standing, and notes the change. A proven one becomes the fallback.
    pub(crate) fn decide(
        &mut self,
        number: u64,
        standing: Standing,
        reason: String,
        now: SystemTime,
    ) -> Option<VersionChange> {
        let Entry { status, .. } = self.get_mut(number)?;
        (status.standing, status.since, status.reason) = (standing, now, Some(reason.clone()));
        let figures = &status.figures;
        let mut change = VersionChange {
            time: now,
            version: number,
            standing,
            serves: number,
            reason,
            requests: figures.requests(),
            failed: figures.failed.values().sum(),
            p99: figures.p99(),
            memory: figures.memory,
        };
        let was_canary = self.canary.take_if(|canary| *canary == number).is_some();
        match standing {
            Standing::Proven => {
                self.comes_back(number);
                if was_canary {
                    // The other instances follow.
                    self.serving = Some(number);
                }
            }
            _ => change.serves = self.fallback.unwrap_or(number),
        }
        if self.changes.len() >= KEPT_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(change.clone());
        self.prune(number);
        Some(change)
    }

    /// Drops the oldest versions of each standing, beyond those that are kept. The version that was decided on last stays:
    /// its number may be lower than those of all others.
    fn prune(&mut self, decided: u64) {
        let stay = [self.fallback, self.serving, Some(decided)];
        for (standing, kept) in [(Standing::Proven, KEPT_PROVEN), (Standing::Refused, KEPT_REFUSED)] {
            let of = |entry: &Entry| entry.status.standing == standing;
            let mut surplus = self.entries.iter().filter(|entry| of(entry)).count().saturating_sub(kept);
            self.entries.retain(|entry| {
                let goes = surplus > 0 && of(entry) && !stay.contains(&Some(entry.status.number));
                surplus -= usize::from(goes);
                !goes
            });
        }
        self.prune_data();
    }

    /// What is kept: the components of all versions that may run again, and data.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Kept> {
        let runs = |entry: &&Entry| entry.status.standing != Standing::Refused;
        let components = self.entries.iter().filter(runs).filter_map(Entry::hash).map(Kept::Component);
        components.chain(self.data.hashes().filter_map(|hash| hash.parse().ok()).map(Kept::Data))
    }

    /// The proven versions that are kept only for `weir rollback`, oldest first.
    pub(crate) fn spare(&self) -> impl Iterator<Item = &Entry> {
        let needed = [self.fallback, self.serving];
        self.entries.iter().filter(move |entry| {
            entry.status.standing == Standing::Proven && !needed.contains(&Some(entry.status.number))
        })
    }
}
