//! Tables under names of the operator's choice, which any of the files may hold.

use std::{collections::BTreeMap, fmt::Display};

use super::{
    error::{ConfigError, Place},
    section::{At, child},
};

/// The tables of `[table.NAME]` by name, each with where its name stands; of two with one name the first.
pub(super) fn by_name<N: Clone + Display + Ord, T>(
    table: &str,
    found: Vec<(At<N>, T)>,
    errors: &mut Vec<ConfigError>,
) -> BTreeMap<N, (Place, T)> {
    let mut kept: BTreeMap<N, (Place, T)> = BTreeMap::new();
    for (name, item) in found {
        match kept.get(&name.value) {
            Some((first, _)) => {
                let path = child(table, &name.value.to_string());
                let message = format!("`{path}` is defined in two files");
                let error = ConfigError::new(path, message, Some(name.place));
                errors.push(error.note(Some(first.clone()), "first defined here"));
            }
            None => drop(kept.insert(name.value, (name.place, item))),
        }
    }
    kept
}
