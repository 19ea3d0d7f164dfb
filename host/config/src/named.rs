//! Tables with names that the operator chooses. Any file may hold them.

use std::{collections::BTreeMap, fmt::Display};

use super::{
    error::{ConfigError, Location},
    section::{Located, child},
};

/// The tables of `[table.NAME]` by name, with the places of their names. Keeps the first of two with one name.
pub(super) fn by_name<N: Clone + Display + Ord, T>(
    table: &str,
    found: Vec<(Located<N>, T)>,
    errors: &mut Vec<ConfigError>,
) -> BTreeMap<N, (Location, T)> {
    let mut kept: BTreeMap<N, (Location, T)> = BTreeMap::new();
    for (name, item) in found {
        match kept.get(&name.value) {
            Some((first, _)) => {
                let path = child(table, &name.value.to_string());
                let message = format!("`{path}` is defined in two files");
                let error = ConfigError::new(path, message, Some(name.location));
                errors.push(error.note(Some(first.clone()), "first defined here"));
            }
            None => drop(kept.insert(name.value, (name.location, item))),
        }
    }
    kept
}
