//! Checks the places of components and of Main's own files. Compares the text of paths only; links are checked when
//! a file is opened.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use super::Judged;
use crate::{
    MainConfig,
    error::{ConfigError, quote},
};

/// A directory where only Main writes.
struct OwnDir<'c> {
    /// Its key in `[main]`.
    key: &'static str,
    dir: &'c Path,
    /// What Main keeps there.
    what: &'static str,
}

impl Judged<'_> {
    /// Reports a plugin directory inside a directory that belongs to Main alone. Such a directory may be inside the
    /// plugin directory, as long as it contains no component.
    pub(super) fn dirs(&self, errors: &mut Vec<ConfigError>) {
        let MainConfig { plugin_dir: Some(plugins), .. } = &self.config.main else { return };
        for OwnDir { key, dir, what } in own_dirs(&self.config.main) {
            if !is_inside(plugins, dir) {
                continue;
            }
            let fault = if is_inside(dir, plugins) {
                format!("`main.plugin-dir` and `main.{key}` are both {}", shown(plugins))
            } else {
                format!("`main.plugin-dir`, {}, is in `main.{key}`, {}", shown(plugins), shown(dir))
            };
            let message = format!("{fault}: {what} needs a directory where only Main writes");
            let (plugins_at, own_at) = (self.locations.main.of("plugin-dir"), self.locations.main.of(key));
            errors.push(match own_at {
                Some(_) => ConfigError::new(format!("main.{key}"), message, own_at)
                    .note(plugins_at, "the plugin directory is set here"),
                None => ConfigError::new("main.plugin-dir", message, plugins_at),
            });
        }
    }

    /// Reports a directory of versions that overlaps with the cache or with the stores: Main removes files of each by
    /// their names.
    pub(super) fn state_dir_apart(&self, errors: &mut Vec<ConfigError>) {
        let MainConfig { state_dir: Some(state), cache_dir, data_dir, .. } = &self.config.main else {
            return;
        };
        for (key, dir) in [("cache-dir", cache_dir), ("data-dir", data_dir)] {
            let Some(dir) = dir else { continue };
            let (here, there) = (shown(state), shown(dir));
            let fault = match (is_inside(state, dir), is_inside(dir, state)) {
                (false, false) => continue,
                (true, true) => format!("`main.state-dir` and `main.{key}` are both {here}"),
                (true, false) => format!("`main.state-dir`, {here}, is in `main.{key}`, {there}"),
                (false, true) => format!("`main.{key}`, {there}, is in `main.state-dir`, {here}"),
            };
            let message = format!("{fault}: give each a directory of its own");
            let error = ConfigError::new("main.state-dir", message, self.locations.main.of("state-dir"));
            errors.push(error.note(self.locations.main.of(key), "the other is set here"));
        }
    }

    /// Reports components' paths that are not allowed, or that differ only in upper and lower case.
    pub(super) fn paths(&self, errors: &mut Vec<ConfigError>) {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (index, extension) in self.extensions() {
            // A component from memory has no path.
            let Some(path) = extension.component.path() else { continue };
            let key = format!("extension[{}].path", extension.id);
            let location = self.place(index, "path");
            let shown = quote(&path.display().to_string());
            if let Some(fault) = path_fault(path, &self.config.main) {
                errors.push(ConfigError::new(&*key, format!("in `{key}`: {shown} {fault}"), location));
                continue;
            }
            let folded = path.to_string_lossy().to_lowercase();
            match seen.get(&folded).and_then(|first| Some((*first, self.config.extensions.get(*first)?))) {
                Some((first, other)) if other.component.path() != Some(path) => {
                    let message = format!(
                        "in `{key}`: {shown} and the path of `{}` differ only in upper and lower case",
                        other.id
                    );
                    let error = ConfigError::new(key, message, location);
                    errors.push(error.note(self.place(first, "path"), "the other is here"));
                }
                Some(_) => {}
                None => drop(seen.insert(folded, index)),
            }
        }
    }
}

fn path_fault(path: &Path, main: &MainConfig) -> Option<String> {
    if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Some("is empty or contains a NUL".to_owned());
    }
    let inside = match &main.plugin_dir {
        Some(dir) => path.strip_prefix(dir).ok(),
        None => Some(path),
    };
    let climbs = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    match (inside, &main.plugin_dir) {
        (Some(inside), _) if !climbs(inside) => {}
        (None, Some(dir)) => return Some(format!("is not inside `main.plugin-dir`, {}", shown(dir))),
        _ => return Some("has a `..` in it: write the path without, inside the plugin directory".to_owned()),
    }
    let own = own_dirs(main).find(|own| {
        // If the plugin directory is in the directory of Main, `dirs` reports the two directories instead.
        let is_plugins = main.plugin_dir.as_ref().is_some_and(|plugins| is_inside(plugins, own.dir));
        is_inside(path, own.dir) && !is_plugins
    })?;
    Some(format!("is in `main.{}`, {}, where only Main writes", own.key, shown(own.dir)))
}

/// The directories that may not contain components: whoever writes a component there could write what Main trusts.
fn own_dirs(main: &MainConfig) -> impl Iterator<Item = OwnDir<'_>> {
    let cache = main.cache_dir.iter().map(|dir| OwnDir { key: "cache-dir", dir, what: "the cache" });
    let state = main.state_dir.iter().map(|dir| OwnDir { key: "state-dir", dir, what: "the state of Main" });
    cache.chain(state)
}

/// Whether the path is `dir` or inside it, by their text.
#[must_use]
pub fn is_inside(path: &Path, dir: &Path) -> bool {
    resolved(path).starts_with(resolved(dir))
}

/// Removes `.` from a path, and `..` with the name before it. A `..` without such a name stays.
pub(super) fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut resolved, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir if resolved.file_name().is_some() => drop(resolved.pop()),
            part => resolved.push(part),
        }
        resolved
    })
}

/// A path as messages show it.
#[must_use]
pub fn shown(path: &Path) -> String {
    quote(&path.display().to_string())
}
