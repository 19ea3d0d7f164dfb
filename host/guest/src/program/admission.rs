//! Decides whether a component may be loaded at all: what is revoked, what the lock lists, and who has signed.
//!
//! The decision comes before anything looks into the component. Only its kind, size and hash are known, and the hash is
//! the one that every later reading is checked against. The rules change at a reload.

#[cfg(test)]
#[cfg(feature = "compiler")]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use weir_config::{
    ArtifactHash, ComponentLock, ComponentLockError, ComponentSource, ExtensionConfig, MainConfig, Revoked,
    RevokedError, TrustedKey,
};
use weir_names::{ExtensionId, chain};

use super::{
    Guest, LoadRequest, Loaded, Programs, artifact,
    error::LoadFault,
    input::{ComponentInput, InputKind, InputLimits, read_signature},
    signature::Signature,
};
use crate::inspect::{Manifest, manifest_in};

/// What may be loaded now, and where the lock is.
#[derive(Debug, Default)]
pub struct Admission {
    lock: Option<PathBuf>,
    rules: Mutex<Arc<Rules>>,
}

/// What may be loaded, as of one start or reload.
#[derive(Debug, Default)]
pub struct Rules {
    trusted_keys: Vec<TrustedKey>,
    require_signature: bool,
    revoked: Revoked,
    /// The only components that run, with the file that lists them. None allows all.
    lock: Option<(PathBuf, ComponentLock)>,
}

/// Why it is not known what may be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The list of what is revoked cannot be used.
    #[error(transparent)]
    Revoked(#[from] RevokedError),
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] ComponentLockError),
}

impl Admission {
    /// Reads the rules of this configuration. With `lock`, only the components in that file run. Blocks on files.
    ///
    /// # Errors
    ///
    /// Fails if the lock, or the list of what is revoked, cannot be used.
    pub fn new(main: &MainConfig, lock: Option<PathBuf>) -> Result<Self, RulesError> {
        let rules = Mutex::new(Arc::new(Rules::read(main, lock.as_deref())?));
        Ok(Self { lock, rules })
    }

    /// Reads the rules of another configuration, with the lock as it is now. Blocks on files.
    ///
    /// # Errors
    ///
    /// Fails if the lock, or the list of what is revoked, cannot be used.
    pub fn read(&self, main: &MainConfig) -> Result<Rules, RulesError> {
        Rules::read(main, self.lock.as_deref())
    }

    /// The rules that hold now.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.lock().clone()
    }

    /// Makes these rules hold for all later loads and starts.
    pub fn set(&self, rules: Rules) {
        *self.rules.lock() = Arc::new(rules);
    }
}

impl<G: Guest> Programs<G> {
    /// Whether a program that was loaded for this may run by the rules of now.
    #[must_use]
    pub fn admits(&self, wanted: LoadRequest<'_>, loaded: &Loaded<G>) -> bool {
        self.sources.admission.rules().admits(wanted, loaded.program.hash, &loaded.voucher)
    }

    /// What decides what may be loaded.
    #[must_use]
    pub fn admission(&self) -> &Arc<Admission> {
        &self.sources.admission
    }
}

impl Rules {
    fn read(main: &MainConfig, lock: Option<&Path>) -> Result<Self, RulesError> {
        let revoked = main.revoked.as_deref().map(Revoked::read).transpose()?.unwrap_or_default();
        let lock =
            lock.map(|path| ComponentLock::read(path).map(|lock| (path.to_owned(), lock))).transpose()?;
        let (trusted_keys, require_signature) = (main.trusted_keys.clone(), main.require_signature);
        Ok(Self { trusted_keys, require_signature, revoked, lock })
    }

    pub(super) fn trusted_keys(&self) -> &[TrustedKey] {
        &self.trusted_keys
    }

    /// Whether a loaded program of an extension may run by these rules.
    #[must_use]
    pub fn admit_still(&self, extension: &ExtensionConfig, loaded: &Loaded) -> bool {
        self.admits(LoadRequest::from(extension), loaded.program.hash, &loaded.voucher)
    }

    /// Whether a component with this hash and this text of a signature is revoked.
    #[must_use]
    pub fn has_revoked(&self, hash: ArtifactHash, signature: Option<&str>) -> bool {
        let signature = signature.and_then(|text| Signature::parse(text.as_bytes()).ok());
        self.revoked.has_hash(&hash) || signature.is_some_and(|it| self.revoked.has_key(&it.key))
    }

    /// Whether an extension may run no older version than the proven ones: signatures are required, and the operator has
    /// not named the component by its hash.
    pub(super) fn asks_for_newer(&self, extension: &ExtensionConfig) -> bool {
        self.require_signature && extension.sha256.is_none() && self.lock.is_none()
    }

    /// Whether what was admitted once, because somebody vouched for it, still is.
    pub(super) fn admits(&self, wanted: LoadRequest<'_>, hash: ArtifactHash, voucher: &Voucher) -> bool {
        let Voucher { artifact, signature, was_required } = voucher;
        let counts = |signature: &Arc<Signature>| {
            self.trusted_keys.contains(&signature.key)
                && other_id(signature, wanted.extension, wanted.signed_as).is_none()
        };
        artifact.is_none_or(|key| self.trusted_keys.contains(&key) && !self.revoked.has_key(&key))
            && signature.as_ref().is_none_or(|signature| !self.revoked.has_key(&signature.key))
            && (!self.require_signature || *was_required && signature.as_ref().is_none_or(counts))
            && !self.revoked.has_hash(&hash)
            && self.is_locked(wanted.extension, wanted.component.path(), hash)
    }

    fn is_locked(&self, extension: Option<&ExtensionId>, path: Option<&Path>, hash: ArtifactHash) -> bool {
        let Some((_, lock)) = &self.lock else { return true };
        match (extension, path) {
            (Some(id), _) => lock.allows(id, hash),
            (None, Some(path)) => lock.allows_hook(path, hash),
            (None, None) => false,
        }
    }
}

/// A component that is to be opened and admitted.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    component: ComponentSource,
    plugin_dir: Option<PathBuf>,
    limits: InputLimits,
    sha256: Option<ArtifactHash>,
    extension: Option<ExtensionId>,
    signed_as: Option<ExtensionId>,
    signature: Option<Arc<str>>,
}

/// Who has signed a component or artifact, if anybody has.
#[derive(Clone, Debug, Default)]
pub(super) struct Voucher {
    /// The key that signed an artifact. None for a component.
    artifact: Option<TrustedKey>,
    /// The signature that is not part of the file. An artifact need not have one.
    pub(super) signature: Option<Arc<Signature>>,
    /// Whether signatures were required. If not, only the key of the signature was looked at.
    pub(super) was_required: bool,
}

impl From<LoadRequest<'_>> for Candidate {
    fn from(wanted: LoadRequest<'_>) -> Self {
        Self {
            component: wanted.component.clone(),
            plugin_dir: wanted.plugin_dir.map(ToOwned::to_owned),
            limits: wanted.limits.into(),
            sha256: wanted.sha256,
            extension: wanted.extension.cloned(),
            signed_as: wanted.signed_as.cloned(),
            signature: wanted.signature.cloned(),
        }
    }
}

impl Candidate {
    /// Opens and hashes the component.
    pub(super) fn open(&self) -> Result<ComponentInput, LoadFault> {
        ComponentInput::open(&self.component, self.plugin_dir.as_deref(), self.limits)
    }

    /// Checks what was opened by these rules. Fails with what is wrong first.
    pub(super) fn admit(&self, input: &mut ComponentInput, rules: &Rules) -> Result<Voucher, LoadFault> {
        let Rules { require_signature, revoked, lock, .. } = rules;
        if self.sha256.is_some_and(|pinned| pinned != input.hash) {
            return Err(LoadFault::Pinned(input.hash));
        }
        if revoked.has_hash(&input.hash) {
            return Err(LoadFault::RevokedComponent(input.hash));
        }
        let path = self.component.path();
        if let Some((lock, _)) =
            lock.as_ref().filter(|_| !rules.is_locked(self.extension.as_ref(), path, input.hash))
        {
            return Err(LoadFault::NotLocked(Box::new((lock.clone(), input.hash))));
        }
        let artifact = (input.kind == InputKind::Artifact).then(|| artifact::signer(input)).transpose()?;
        if let Some(key) = artifact {
            // What is revoked is said to be, whether it is listed as trusted or not.
            if revoked.has_key(&key) {
                return Err(LoadFault::RevokedKey(key));
            }
            // Whether the signature is right is checked with the code, which may be there already.
            if !rules.trusted_keys.contains(&key) {
                return Err(LoadFault::Untrusted(key));
            }
        }
        let signature = match (self.signature(), require_signature) {
            (Err(LoadFault::Unsigned(_) | LoadFault::UnsignedInMemory), true) if artifact.is_some() => None,
            (text, true) => Some(Signature::parse(&text?)?),
            // Whatever else is in the file was not asked for.
            (text, false) => text
                .ok()
                .and_then(|text| Signature::parse(&text).ok())
                .filter(|signature| signature.sha256 == input.hash),
        };
        if let Some(signature) = &signature {
            if revoked.has_key(&signature.key) {
                return Err(LoadFault::RevokedKey(signature.key));
            }
            if *require_signature {
                signature.verify(&rules.trusted_keys, input.hash, input.bytes)?;
                if let Some(id) = other_id(signature, self.extension.as_ref(), self.signed_as.as_ref()) {
                    return Err(LoadFault::OtherId(Box::new([signature.id.clone(), id.clone()])));
                }
                if artifact.is_none() {
                    check_manifest(signature, input)?;
                }
            }
        }
        Ok(Voucher { artifact, signature: signature.map(Arc::new), was_required: *require_signature })
    }

    /// Reads the text of the signature.
    pub(super) fn signature(&self) -> Result<Vec<u8>, LoadFault> {
        match (&self.signature, &self.component) {
            (Some(text), _) => Ok(text.as_bytes().to_vec()),
            (None, ComponentSource::Bytes(_)) => Err(LoadFault::UnsignedInMemory),
            (None, ComponentSource::Path(path)) => {
                let path = Signature::path_of(path);
                match read_signature(&path, self.plugin_dir.as_deref()) {
                    Ok(Some(text)) => Ok(text),
                    Ok(None) => Err(LoadFault::Unsigned(path)),
                    Err(fault) => Err(LoadFault::SignatureFile { path, reason: chain(&fault) }),
                }
            }
        }
    }
}

/// Returns the id that the component of this extension must be signed as, if the signature has another one. Hooks have
/// only their manifests' ids.
fn other_id<'a>(
    signature: &Signature,
    extension: Option<&'a ExtensionId>,
    signed_as: Option<&'a ExtensionId>,
) -> Option<&'a ExtensionId> {
    signed_as.or(extension).filter(|id| **id != signature.id)
}

/// Checks that the component's own manifest, if it has one, names what was signed. Only a signed component gets here.
fn check_manifest(signature: &Signature, input: &mut ComponentInput) -> Result<(), LoadFault> {
    let manifest = manifest_in(&input.read()?, Manifest::parse).map_err(LoadFault::Manifest)?;
    let signed = (signature.id.clone(), signature.version.to_string());
    match manifest.map(|manifest| (manifest.id, manifest.version)) {
        Some(own) if own != signed => Err(LoadFault::OtherName(Box::new([signed, own]))),
        _ => Ok(()),
    }
}
