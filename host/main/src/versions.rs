//! What the records in `main.state-dir` say of versions, for programs that run no Main.

use weir_config::{ExtensionConfig, MainConfig};
use weir_guest::OpenComponent;

/// Returns why a Main with this configuration would run another version of an extension than the configured one: the
/// configured one was refused. None if it would not, or if this user's Main could not use the records. Reads the
/// component and writes nothing. A Main that runs with the same directory is not disturbed.
#[must_use]
pub fn refused_version(main: &MainConfig, extension: &ExtensionConfig) -> Option<String> {
    let dir = main.state_dir.as_deref().filter(|_| extension.update.is_some())?;
    let mut extension = extension.clone();
    extension.plugin_dir.clone_from(&main.plugin_dir);
    let hash = OpenComponent::unchecked(&extension).ok()?.hash();
    weir_versions::refused(dir, &extension, hash)
}
