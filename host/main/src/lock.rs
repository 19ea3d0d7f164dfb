//! Makes the lock of a configuration from the files that it names and the records of proven versions.

use std::{io, path::PathBuf};

use weir_config::{ComponentLock, Config, ExtensionConfig, LockedExtension};
use weir_guest::{LoadError, OpenComponent, inspect};
use weir_hooks::HooksConfig;
use weir_names::HookDirName;
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

/// Makes the lock of this configuration: the components in its files, and for extensions with `update` the proven
/// versions in `main.state-dir`. Keeps the sources that `before` has. Blocks on files.
///
/// # Errors
///
/// Fails if a component, a directory of hooks or what is known of versions cannot be read.
pub fn lock(config: &Config, before: Option<&ComponentLock>) -> Result<ComponentLock, LockError> {
    let mut lock = ComponentLock::default();
    for extension in &config.extensions {
        let mut extension = extension.clone();
        extension.plugin_dir.clone_from(&config.main.plugin_dir);
        let opened = OpenComponent::unchecked(&extension)?;
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
            let path = path.to_str().ok_or_else(|| LockError::Path(path.clone()))?;
            lock.hooks.insert(path.to_owned(), hash);
        }
    }
    Ok(lock)
}

/// The version in the signature beside a component, or else in its manifest.
fn version(extension: &ExtensionConfig, opened: &OpenComponent) -> Option<String> {
    if let Some(signature) = opened.signature_beside() {
        return Some(signature.version.to_string());
    }
    inspect(extension.component.path()?).ok()?.manifest.map(|manifest| manifest.version)
}
