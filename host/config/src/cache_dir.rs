//! The default cache directory.

use std::{env, path::PathBuf};

use super::environment::Environment;

/// The first directory that systemd made for the unit (systemd.exec(5)), else `weir` in the user's cache
/// directory (XDG Base Directory Specification), else in the machine's. As the specification says, relative
/// paths are ignored.
pub(super) fn default_cache_dir(environment: &Environment) -> PathBuf {
    let variable = |name| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_unit =
        || env::split_paths(environment.get("CACHE_DIRECTORY")?).next().filter(|path| path.is_absolute());
    let of_user = || variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    of_unit().unwrap_or_else(|| of_user().unwrap_or_else(|| PathBuf::from("/var/cache")).join("weir"))
}
