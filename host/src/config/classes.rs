//! The operator's own classes of limits: who inherits from whom, and what comes of it.

use std::collections::BTreeMap;

use super::{
    Limits,
    error::{ConfigError, Place, quote},
    limits::{BUILT_IN, Key},
    order::{Order, order},
    section::{At, nearest},
};

/// The class of whoever names none.
const DEFAULT: &str = "medium";

/// A class as the operator wrote it.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: At<String>,
    pub(super) inherits: Option<At<String>>,
    pub(super) changes: Changes,
}

/// The limits that differ from those of a class, each with where it says so.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    set: Vec<(&'static Key, At<u64>)>,
    /// Whether some are left out because something is wrong with them.
    pub(super) incomplete: bool,
}

impl Changes {
    pub(super) fn add(&mut self, key: &'static Key, value: Option<At<u64>>) {
        self.set.extend(value.map(|value| (key, value)));
    }

    fn apply(&self, limits: &mut Limits) {
        for (key, At { value, place }) in &self.set {
            limits.set(key, *value, place.source());
        }
    }

    /// Where that key is changed.
    fn place(&self, name: &str) -> Option<Place> {
        self.set.iter().find(|(key, _)| key.name == name).map(|(_, at)| at.place.clone())
    }

    /// What contradicts itself in `limits` since these changes.
    pub(super) fn contradictions(&self, path: &str, limits: &Limits) -> Vec<ConfigError> {
        let found = if self.incomplete { Vec::new() } else { limits.contradictions() };
        found
            .into_iter()
            .filter_map(|found| {
                let (key, other) = found.keys;
                let (key, place, other) = match self.place(key) {
                    Some(place) => (key, place, self.place(other)),
                    None => (other, self.place(other)?, None),
                };
                let message = format!("in `{path}`: {}", found.message);
                Some(
                    ConfigError::new(format!("{path}.{key}"), message, Some(place))
                        .note(other, "the other is here"),
                )
            })
            .collect()
    }
}

/// The limits of every class, by name, and what is wrong with the operator's own.
#[derive(Debug)]
pub(super) struct Classes {
    limits: BTreeMap<String, Limits>,
}

impl Classes {
    pub(super) fn new(classes: Vec<Class>, errors: &mut Vec<ConfigError>) -> Self {
        let classes = without_doubles(classes, errors);
        let index: BTreeMap<&str, usize> =
            classes.iter().enumerate().map(|(index, class)| (class.name.value.as_str(), index)).collect();
        let parents: Vec<Vec<usize>> = classes
            .iter()
            .map(|class| {
                class.inherits.iter().filter_map(|name| index.get(name.value.as_str()).copied()).collect()
            })
            .collect();
        let Order { sorted, cycles } = order(&parents);
        errors.extend(cycles.iter().map(|cycle| cycle_error(&classes, cycle)));

        let built_in =
            BUILT_IN.into_iter().filter_map(|name| Some((name.to_owned(), Limits::built_in(name)?)));
        let mut resolved = Self { limits: built_in.collect() };
        // Until their turn comes, and where it never does, classes count as known and unchanged.
        resolved.limits.extend(classes.iter().map(|class| (class.name.value.clone(), Limits::default())));
        for class in sorted.into_iter().filter_map(|index| classes.get(index)) {
            let path = format!("limits.{}", class.name.value);
            let mut limits = resolved.find(class.inherits.as_ref(), &format!("{path}.inherits"), errors);
            class.changes.apply(&mut limits);
            limits.class.clone_from(&class.name.value);
            errors.extend(class.changes.contradictions(&path, &limits));
            resolved.limits.insert(class.name.value.clone(), limits);
        }
        resolved
    }

    /// The limits of a class, changed.
    pub(super) fn limits(
        &self,
        class: Option<&At<String>>,
        changes: &Changes,
        path: &str,
        errors: &mut Vec<ConfigError>,
    ) -> Limits {
        let mut limits = self.find(class, &format!("{path}.class"), errors);
        changes.apply(&mut limits);
        errors.extend(changes.contradictions(&format!("{path}.limits"), &limits));
        limits
    }

    /// The class, or the default one, or after an error that, too.
    fn find(&self, name: Option<&At<String>>, key: &str, errors: &mut Vec<ConfigError>) -> Limits {
        let Some(name) = name else {
            return Limits::built_in(DEFAULT).unwrap_or_default();
        };
        self.limits.get(&name.value).cloned().unwrap_or_else(|| {
            let known = self.limits.keys().map(String::as_str);
            let help = match nearest(&name.value, known.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.map(quote).collect::<Vec<_>>().join(", ")),
            };
            let message = format!("in `{key}`: there is no class `{}`: {help}", name.value);
            errors.push(ConfigError::new(key, message, Some(name.place.clone())));
            Limits::default()
        })
    }
}

/// A name that a class can have: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter.
pub(super) fn class_name(text: &str) -> Result<String, String> {
    let well_formed = text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if well_formed {
        Ok(text.to_owned())
    } else {
        let name = quote(text);
        Err(format!(
            "{name} is not the name of a class: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter"
        ))
    }
}

/// A name that an operator's own class can have.
pub(super) fn own_class_name(text: &str) -> Result<String, String> {
    if BUILT_IN.contains(&text) {
        return Err(format!(
            "the class `{text}` is built in: give your own another name, and `inherits = \"{text}\"`"
        ));
    }
    class_name(text)
}

fn without_doubles(classes: Vec<Class>, errors: &mut Vec<ConfigError>) -> Vec<Class> {
    let mut kept: BTreeMap<String, Class> = BTreeMap::new();
    for class in classes {
        let path = format!("limits.{}", class.name.value);
        match kept.get(&class.name.value) {
            Some(first) => {
                let message = format!("`{path}` is defined in two files");
                let error = ConfigError::new(path, message, Some(class.name.place));
                errors.push(error.note(Some(first.name.place.clone()), "first defined here"));
            }
            None => drop(kept.insert(class.name.value.clone(), class)),
        }
    }
    kept.into_values().collect()
}

fn cycle_error(classes: &[Class], cycle: &[usize]) -> ConfigError {
    let round: Vec<&Class> = cycle.iter().filter_map(|index| classes.get(*index)).collect();
    let names: Vec<String> =
        round.iter().chain(round.first()).map(|class| quote(&class.name.value)).collect();
    let place = |class: &Class| class.inherits.as_ref().map(|name| name.place.clone());
    let key = round.first().map(|class| format!("limits.{}.inherits", class.name.value)).unwrap_or_default();
    let message = format!("`inherits` goes round: {}", names.join(" -> "));
    round
        .iter()
        .skip(1)
        .fold(ConfigError::new(key, message, round.first().and_then(|class| place(class))), |error, class| {
            error.note(place(class), format!("{} inherits here", quote(&class.name.value)))
        })
}
