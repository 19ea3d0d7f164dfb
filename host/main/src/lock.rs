//! Makes the lock of a configuration from the files that it names and the records of proven versions.

use std::{
    io,
    path::{Path, PathBuf},
};

use weir_config::{ComponentLock, Config, ExtensionConfig, LockedExtension};
use weir_guest::{Admission, LoadError, OpenComponent, inspect};
use weir_hooks::HooksConfig;
use weir_names::{HookDirName, chain};
use weir_versions::proven;

/// Why no lock can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// A component cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The proven versions of an extension cannot be read.
    #[error("the proven versions of `{id}` cannot be read: {reason}. Make the lock as the user of Main")]
    Versions {
        /// The extension.
        id: String,
        /// Why.
        reason: String,
    },
    /// A directory of hooks cannot be listed.
    #[error("the hooks in `{0}` cannot be listed")]
    Hooks(HookDirName, #[source] io::Error),
    /// A hook's path is no text.
    #[error("the path `{}` is not UTF-8: rename the hook", .0.display())]
    Path(PathBuf),
}

/// Makes the lock of this configuration for the file `path`: the components in its files, and for extensions with
/// `update` the proven versions in `main.state-dir`. Keeps the sources that `before` has. Also returns warnings: what the
/// lock lists although `main.require-signature` or `main.revoked` keeps it from running. Blocks on files.
///
/// # Errors
///
/// Fails if a component, a directory of hooks or what is known of versions cannot be read.
pub fn lock(
    config: &Config,
    path: &Path,
    before: Option<&ComponentLock>,
) -> Result<(ComponentLock, Vec<String>), LockError> {
    let (mut lock, mut warnings) = (ComponentLock::at(path), Vec::new());
    let rules = Admission::new(&config.main, None).map(|admission| admission.rules());
    warnings.extend(rules.as_ref().err().map(ToString::to_string));
    for extension in &config.extensions {
        let mut extension = extension.clone();
        extension.plugin_dir.clone_from(&config.main.plugin_dir);
        let mut opened = OpenComponent::unchecked(&extension)?;
        if let Some(Err(error)) = rules.as_ref().ok().map(|rules| opened.check(rules)) {
            warnings.push(chain(&error));
        }
        let mut locked = LockedExtension::new(opened.hash());
        locked.version = version(&extension, &opened);
        locked.source = before.and_then(|before| before.extensions.get(&extension.id)?.source.clone());
        if let Some(dir) = config.main.state_dir.as_deref().filter(|_| extension.update.is_some()) {
            let known = proven(dir, &extension.id).map_err(|reason| {
                let id = extension.id.to_string();
                LockError::Versions { id, reason }
            })?;
            locked.falls_back_to = known.into_iter().filter(|hash| *hash != locked.sha256).collect();
        }
        lock.extensions.insert(extension.id, locked);
    }
    for (name, dir) in config.section::<HooksConfig>().into_iter().flat_map(|hooks| &hooks.0) {
        for path in dir.files().map_err(|error| LockError::Hooks(name.clone(), error))? {
            let hash = OpenComponent::hook(&path, &dir.dir, &dir.limits)?.hash();
            let hook = lock.hook(&path).ok_or_else(|| LockError::Path(path.clone()))?;
            lock.hooks.insert(hook.to_owned(), hash);
        }
    }
    Ok((lock, warnings))
}

/// The version in the signature beside a component, or else in its manifest.
fn version(extension: &ExtensionConfig, opened: &OpenComponent) -> Option<String> {
    if let Some(signature) = opened.signature_beside() {
        return Some(signature.version.to_string());
    }
    let found = inspect(extension.component.path()?).ok()?;
    found.manifest.filter(|_| found.sha256 == opened.hash()).map(|manifest| manifest.version)
}
