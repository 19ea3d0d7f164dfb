//! Chooses what an extension runs: the configured version, or the proven one in its place.

use std::{
    collections::hash_map::Entry,
    fs,
    io::{Read, Write},
    sync::Arc,
    time::SystemTime,
};

use sha2::{Digest, Sha256};
use weir_config::{ArtifactHash, ComponentSource, ExtensionConfig, Stanza};
use weir_names::{ExtensionId, chain};
use weir_reports::Standing;

use crate::{
    Form, Unreadable, Versions, crossing::has_stores, record, refused::refusal, state_dir::StateError,
};

/// Reads what the component of an extension says of its data, with the component's hash.
pub(crate) type Look<'l> = &'l dyn Fn(&ExtensionConfig) -> Result<(ArtifactHash, Form), String>;

/// What an extension runs, by [`Versions::choose`].
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The configuration to run: the configured one, or that of the proven version with its kept component.
    pub config: Arc<ExtensionConfig>,
    /// The number of the version. None if it is not kept.
    pub number: Option<u64>,
    /// Whether this instance alone tries the version, while the others run the proven one.
    pub is_canary: bool,
    /// The hash that the component has.
    pub hash: Option<ArtifactHash>,
    /// Why another version runs than the configured one.
    pub held_back: Option<String>,
    /// Why nothing may run: the component is older than a proven version, which is not kept any more, or may be.
    pub refused: Option<String>,
    /// Why the configured version runs without a number, if that is not because the extension has no `update`.
    pub not_kept: Option<String>,
}

impl Chosen {
    /// The configured version, which is not kept.
    #[must_use]
    pub fn configured(config: &Arc<ExtensionConfig>) -> Self {
        let (config, is_canary) = (config.clone(), false);
        Self { config, number: None, is_canary, hash: None, held_back: None, refused: None, not_kept: None }
    }

    /// The configured version, or the proven one that runs `beside` its canary, if this is not the canary.
    fn one_of(config: &Arc<ExtensionConfig>, number: u64, hash: ArtifactHash, beside: Option<Self>) -> Self {
        let is_canary = beside.is_some();
        let beside = beside.filter(|_| config.canary.as_ref() != Some(&config.id));
        let (number, hash) = (Some(number), Some(hash));
        beside.unwrap_or(Self { number, is_canary, hash, ..Self::configured(config) })
    }
}

/// The configured component as it was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its hash.
    pub hash: ArtifactHash,
    /// The text of its signature, if Main requires one.
    pub signature: Option<Arc<str>>,
    /// Whether it runs only if no newer version is proven, or not known to be.
    pub must_be_newer: bool,
}

impl From<ArtifactHash> for Found {
    fn from(hash: ArtifactHash) -> Self {
        Self { hash, signature: None, must_be_newer: false }
    }
}

impl Versions {
    /// Chooses what an extension runs. `found` is the configured component, or why it cannot be read or may not run;
    /// `copy` writes the component, and `look` reads what a component says of its data. A refused version, and one that
    /// is signed as older than the proven one, may run only if `again`. Blocks on files.
    ///
    /// A new version is written down, with its component, before it runs. If that is not possible, the proven version
    /// runs on: a change that cannot be kept does not happen.
    ///
    /// With several instances, the last one is the canary: it runs a new version while the others run the proven one.
    /// That is so if both versions get the same messages, since they have one inbox, and can read each other's data.
    ///
    /// A version that cannot read the data that is there does not run while another one can.
    pub fn choose(
        &self,
        configured: &Arc<ExtensionConfig>,
        found: Result<impl Into<Found>, String>,
        copy: impl FnOnce(&mut dyn Write) -> Result<(), String>,
        look: Look<'_>,
        again: bool,
    ) -> Chosen {
        let id = original(configured);
        let plain =
            |number, hash, not_kept| Chosen { number, hash, not_kept, ..Chosen::configured(configured) };
        if configured.update.is_none() {
            return plain(None, None, None);
        }
        self.read_again(id);
        let found: Found = match found {
            Ok(found) => found.into(),
            Err(reason) => {
                let instead = self.instead(configured, None, &reason, false);
                return instead.unwrap_or_else(|| plain(None, None, Some(reason)));
            }
        };
        let hash = found.hash;
        if let Some(why) = self.why_unknown(id).filter(|_| found.must_be_newer && !again) {
            let reason = format!(
                "its proven versions are not known, and one may be newer, because {why}: pin it with `sha256`, or \
                 `weir reload {id} --now` runs it all the same"
            );
            return Chosen { refused: Some(reason), ..plain(None, Some(hash), None) };
        }
        if let Some(Unreadable { why, .. }) = self.unreadable(id) {
            return plain(None, Some(hash), Some(why));
        }
        self.configured.lock().insert(id.clone());
        let before = self.change(id, |record| record.clone());
        let find = |record: &mut record::Record| {
            record.find(hash, configured).map(|record::Entry { status, .. }| status.clone())
        };
        let known = self.change(id, find).flatten().map(|known| known.number);
        let is_revoked = |hash, signature: Option<&str>| self.may_run.is_revoked(hash, signature);
        let older = || {
            let older = self.change(id, |record| record.newer_than(id, &found, is_revoked)).flatten();
            let (_, reason) = older.filter(|_| !again)?;
            let instead = self.instead(configured, Some(hash), &reason, false);
            Some(instead.unwrap_or_else(|| Chosen { refused: Some(reason), ..plain(None, Some(hash), None) }))
        };
        if let Some(chosen) = older() {
            return chosen;
        }
        // Whole components may be read for that, and nothing is written meanwhile.
        let form = match self.form(configured, hash, known, look) {
            Ok(form) => form,
            Err(reason) => {
                let instead = self.instead(configured, Some(hash), &reason, false);
                return instead.unwrap_or_else(|| plain(None, Some(hash), Some(reason)));
            }
        };
        // Held to the end, so that copies that load at once find one version, and no component is swept before the
        // record names it.
        let _writing = self.writing.lock();
        if let Some(chosen) = older() {
            return chosen;
        }
        let known = self.change(id, find).flatten();
        let is_trial = known.as_ref().is_none_or(|known| known.standing == Standing::Probation) && !again;
        let is_apart =
            |record: &mut record::Record| record.is_apart(&form, known.as_ref().map(|it| it.number));
        let is_apart = has_stores(configured) && self.change(id, is_apart).unwrap_or_default();
        let beside = (is_trial && !is_apart).then(|| self.beside(configured, hash)).flatten();
        let Some(status) = known else { return self.begin(configured, found, form, copy, beside) };
        let number = status.number;
        let cannot = || self.cannot_read(configured, number).or_else(|| self.hindrance(id, number));
        let instead = match status.standing {
            Standing::Refused if !again => self.instead(configured, Some(hash), &refusal(&status), false),
            _ => cannot().and_then(|reason| self.instead(configured, Some(hash), &reason, true)),
        };
        if let Some(instead) = instead {
            return instead;
        }
        let has_changed = self.change(id, |record| {
            record.held_back = None;
            record.sign(hash, found.signature.as_ref());
            match status.standing {
                Standing::Proven => record.comes_back(number),
                Standing::Refused if again => record.try_again(number, SystemTime::now()),
                _ => {}
            }
            // With what was found out of the data.
            before.as_ref() != Some(&*record)
        });
        // The component is kept even of a version that is known: its copy may have been lost.
        let kept = self.keep(id, hash, copy);
        let written = || if has_changed == Some(true) { self.write(id) } else { Ok(()) };
        if let Err(error) = kept.and_then(|()| written()) {
            tracing::error!(extension = %id, "what is known of its versions is not written down: {}", chain(&error));
        }
        Chosen::one_of(configured, number, hash, beside)
    }

    /// Begins a new version: keeps its component, then writes it down. If either fails, nothing has changed. `beside` is
    /// the proven version for the other instances, if one of them tries the new version.
    fn begin(
        &self,
        configured: &Arc<ExtensionConfig>,
        Found { hash, signature, .. }: Found,
        form: Form,
        copy: impl FnOnce(&mut dyn Write) -> Result<(), String>,
        beside: Option<Chosen>,
    ) -> Chosen {
        let id = original(configured);
        let cannot = self.change(id, |record| record.cannot_run(&form)).flatten();
        let instead = cannot.filter(|_| has_stores(configured));
        if let Some(instead) = instead.and_then(|reason| self.instead(configured, Some(hash), &reason, true))
        {
            return instead;
        }
        let begun = self.keep(id, hash, copy).and_then(|()| {
            let stanza = configured.stanza.as_deref().cloned();
            let (number, before) = {
                let mut records = self.records.lock();
                let record = records.entry(id.clone()).or_default();
                let before = record.clone();
                record.held_back = None;
                let number = record.add(hash, stanza, SystemTime::now());
                record.sign(hash, signature.as_ref());
                if has_stores(configured) {
                    record.note_form(number, form);
                }
                (number, before)
            };
            if let Err(error) = self.write(id) {
                let mut records = self.records.lock();
                if let Some(record) = records.get_mut(id) {
                    record.take_back(number, before);
                }
                // One that was begun for it would have to be written before anything else.
                records.retain(|own, record| own != id || *record != record::Record::default());
                drop(records);
                return Err(error);
            }
            Ok(number)
        });
        match begun {
            Ok(number) => Chosen::one_of(configured, number, hash, beside),
            Err(error) => {
                let reason = format!("a new version cannot be kept: {}", chain(&error));
                let instead = self.instead(configured, Some(hash), &reason, false);
                instead.unwrap_or_else(|| Chosen {
                    hash: Some(hash),
                    not_kept: Some(reason),
                    ..Chosen::configured(configured)
                })
            }
        }
    }

    /// Why it is not known which versions of an extension are proven, if it is not.
    fn why_unknown(&self, id: &ExtensionId) -> Option<String> {
        let forgotten = || self.forgotten.get(id).filter(|_| !self.records.lock().contains_key(id));
        self.unreadable(id).map(|unreadable| unreadable.why).or_else(|| forgotten().cloned())
    }

    /// Returns what a component says of its data, and notes it for the versions that are kept. Without stores, nothing is
    /// read.
    fn form(
        &self,
        configured: &Arc<ExtensionConfig>,
        hash: ArtifactHash,
        known: Option<u64>,
        look: Look<'_>,
    ) -> Result<Form, String> {
        if !has_stores(configured) {
            return Ok(Form::default());
        }
        let id = original(configured);
        let comebacks = self.change(id, |record| record.comebacks().cloned().collect::<Vec<_>>());
        for entry in comebacks.unwrap_or_default().into_iter().filter(|entry| entry.form.is_none()) {
            let (number, own) = (entry.status.number, entry.hash());
            let kept = self.kept(configured, None, entry);
            // Of one that cannot be read it is not known what it can read.
            if let Some(kept) = kept
                && let Ok((found, form)) = look(&kept.config)
                && own == Some(found)
            {
                self.found_form(id, &kept.config, number, form);
            }
        }
        let noted = |record: &mut record::Record| record.get(known?)?.form.clone();
        if let Some(form) = self.change(id, noted).flatten() {
            return Ok(form);
        }
        let (found, form) = look(configured)?;
        if found != hash {
            return Err("its component has changed while it was read".to_owned());
        }
        if let Some(number) = known {
            self.found_form(id, configured, number, form.clone());
        }
        Ok(form)
    }

    /// Notes what the component of a version says of its data, which was added without that: by a Weir that wrote records
    /// of format 1, or when it had no stores.
    fn found_form(&self, id: &ExtensionId, config: &ExtensionConfig, number: u64, form: Form) {
        self.change(id, |record| {
            // The version that ran last may have written what it says.
            if record.serving == Some(number) && has_stores(config) {
                record.data.raise(form.data_since.as_deref());
            }
            record.note_form(number, form);
        });
    }

    /// Returns the proven version, in place of the configured one that does not run for this reason. None if there is
    /// no proven version, or its component is gone. Those that can run with the data that is there come first, and no
    /// others do if it `must_run`.
    pub(crate) fn instead(
        &self,
        configured: &Arc<ExtensionConfig>,
        found: Option<ArtifactHash>,
        reason: &str,
        must_run: bool,
    ) -> Option<Chosen> {
        let id = original(configured);
        let mut proven: Vec<_> = self.change(id, |record| record.comebacks().cloned().collect())?;
        let runs =
            |number| self.cannot_read(configured, number).is_none() && self.hindrance(id, number).is_none();
        if must_run {
            proven.retain(|entry| runs(entry.status.number));
        }
        proven.sort_by_key(|entry| !runs(entry.status.number));
        // An older proven version is better than the one that does not run.
        let chosen = proven.into_iter().find_map(|entry| self.kept(configured, found, entry))?;
        self.change(id, |record| record.held_back = Some(reason.to_owned()));
        Some(Chosen { held_back: Some(reason.to_owned()), ..chosen })
    }

    /// Returns the proven version that the other instances run while the last one tries the configured version, whose
    /// component is `found`. None if all change at once.
    fn beside(&self, configured: &Arc<ExtensionConfig>, found: ArtifactHash) -> Option<Chosen> {
        configured.canary.as_ref()?;
        let id = original(configured);
        let proven = self.change(id, |record| record.proven_fallback().cloned()).flatten()?;
        let chosen = self.kept(configured, Some(found), proven)?;
        chosen.config.receives_as(configured).then_some(chosen)
    }

    /// Returns a proven version with its kept component, as it runs for this configured extension. None if its component
    /// is gone or may not run, or if it would be the configured version, whose component is `found`.
    fn kept(
        &self,
        configured: &Arc<ExtensionConfig>,
        found: Option<ArtifactHash>,
        entry: record::Entry,
    ) -> Option<Chosen> {
        let (number, hash) = (entry.status.number, entry.hash()?);
        let mut config = match entry.stanza.as_ref().map(Stanza::config) {
            Some(Ok(config)) => config,
            // It would be the version that does not run.
            _ if Some(hash) == found => return None,
            Some(Err(error)) => {
                let id = original(configured);
                tracing::warn!(extension = %id, "a proven version runs under the present stanza: {error}");
                ExtensionConfig::clone(configured)
            }
            None => ExtensionConfig::clone(configured),
        };
        config.id = configured.id.clone();
        config.copy_of.clone_from(&configured.copy_of);
        config.canary.clone_from(&configured.canary);
        config.instances = configured.instances;
        config.component = self.component(hash)?;
        config.sha256 = Some(hash);
        config.signature.clone_from(&entry.signature);
        config.plugin_dir = None;
        config.update.clone_from(&configured.update);
        // What only the supervisor uses is of no version.
        config.restart.clone_from(&configured.restart);
        config.reload = configured.reload;
        config.autostart = configured.autostart;
        if let Err(reason) = self.may_run.check(&config) {
            tracing::warn!(extension = %config.id, "proven version {number} does not come back: {reason}");
            return None;
        }
        let (number, hash) = (Some(number), Some(hash));
        Some(Chosen { number, hash, ..Chosen::configured(&Arc::new(config)) })
    }

    /// Where a kept component is. None if it is not kept. A damaged copy is removed, so that it is made anew when the
    /// component is there again.
    fn component(&self, hash: ArtifactHash) -> Option<ComponentSource> {
        let Some(state) = &self.state else {
            return self.components.lock().get(&hash).cloned().map(ComponentSource::Bytes);
        };
        let path = state.component(hash);
        let (mut file, mut part, mut found) = (fs::File::open(&path).ok()?, vec![0; 65_536], Sha256::new());
        loop {
            match file.read(&mut part).ok()? {
                0 => break,
                bytes => found.update(part.get(..bytes)?),
            }
        }
        if ArtifactHash::from_bytes(found.finalize().into()) == hash {
            return Some(ComponentSource::Path(path));
        }
        tracing::error!("`{}` is damaged, and is given up", path.display());
        // Where it cannot be removed, it is found out again.
        let _read_only = fs::remove_file(&path);
        None
    }

    /// Keeps a component of an extension, and gives up others for it.
    fn keep(
        &self,
        id: &ExtensionId,
        hash: ArtifactHash,
        copy: impl FnOnce(&mut dyn Write) -> Result<(), String>,
    ) -> Result<(), StateError> {
        let Some(state) = &self.state else {
            if let Entry::Vacant(place) = self.components.lock().entry(hash) {
                let mut bytes = Vec::new();
                copy(&mut bytes).map_err(StateError::NotCopied)?;
                place.insert(bytes.into());
            }
            return Ok(());
        };
        state.keep(hash, copy, |room| self.make_room(state, Some(id), room))
    }
}

/// The extension whose versions a configuration is one of: a copy runs what its original runs.
pub(crate) fn original(config: &ExtensionConfig) -> &ExtensionId {
    config.copy_of.as_ref().unwrap_or(&config.id)
}
