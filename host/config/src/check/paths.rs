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

impl Judged<'_> {
    /// Reports a plugin directory inside the cache, which belongs to Main alone. The cache may be inside the plugin
    /// directory, as long as it contains no component.
    pub(super) fn dirs(&self, errors: &mut Vec<ConfigError>) {
        let MainConfig { plugin_dir: Some(plugins), cache_dir: Some(cache), .. } = &self.config.main else {
            return;
        };
        if !is_inside(plugins, cache) {
            return;
        }
        let fault = if is_inside(cache, plugins) {
            format!("`main.plugin-dir` and `main.cache-dir` are both {}", shown(plugins))
        } else {
            format!("`main.plugin-dir`, {}, is in `main.cache-dir`, {}", shown(plugins), shown(cache))
        };
        let message = format!("{fault}: the cache needs a directory where only Main writes");
        let (plugins_at, cache_at) =
            (self.locations.main.of("plugin-dir"), self.locations.main.of("cache-dir"));
        errors.push(match cache_at {
            Some(_) => ConfigError::new("main.cache-dir", message, cache_at)
                .note(plugins_at, "the plugin directory is set here"),
            None => ConfigError::new("main.plugin-dir", message, plugins_at),
        });
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
    let cache = main.cache_dir.as_ref().filter(|cache| is_inside(path, cache));
    // If the plugin directory is in the cache, `dirs` reports the two directories instead.
    let cache = cache.filter(|cache| main.plugin_dir.as_ref().is_none_or(|dir| !is_inside(dir, cache)))?;
    Some(format!("is in `main.cache-dir`, {}, where only Main writes", shown(cache)))
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
