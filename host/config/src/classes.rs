//! The operator's classes of limits, their inheritance, and the limits that tables change, with their places.

use std::collections::BTreeMap;

use super::{
    Limits,
    environment::{Environment, Overrides},
    error::{ConfigError, ERRORS_MAX, Location, listed, quote},
    features::Features,
    key::{Contradiction, Places},
    limits::{BUILT_IN, LIMIT_KEYS, LimitKey, LimitSource},
    order::{Order, order},
    section::{Located, nearest},
    sections::by_name,
};

/// The class of a table that names none.
const DEFAULT: &str = "medium";

#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: Located<String>,
    pub(super) inherits: Option<Located<String>>,
    pub(super) changes: LimitChanges,
}

/// The limits of every class by name.
#[derive(Debug)]
pub(super) struct Classes {
    limits: BTreeMap<String, Limits>,
}

impl Classes {
    /// Resolves classes with their variables, and adds their faults to `errors`. If the files' classes are not
    /// `complete`, variables for unknown classes are not reported.
    pub(super) fn new(
        classes: Vec<Class>,
        environment: &Environment,
        complete: bool,
        errors: &mut Vec<ConfigError>,
    ) -> Self {
        let classes = classes.into_iter().map(|class| (class.name.clone(), class)).collect();
        let mut classes: Vec<Class> =
            by_name("limits", classes, errors).into_values().map(|(_, class)| class).collect();
        let names = BUILT_IN.into_iter().chain(classes.iter().map(|class| class.name.value.as_str()));
        let mut overrides = Overrides::read(environment, names, complete, errors);
        for class in &mut classes {
            overrides.complete(&class.name.value, &mut class.changes);
        }
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

        let mut resolved = Self { limits: BTreeMap::new() };
        for (name, mut limits) in
            BUILT_IN.into_iter().filter_map(|name| Some((name, Limits::built_in(name)?)))
        {
            let mut changes = LimitChanges::default();
            overrides.complete(name, &mut changes);
            changes.apply(&mut limits);
            errors.extend(changes.contradictions(&format!("limits.{name}"), &limits));
            resolved.limits.insert(name.to_owned(), limits);
        }
        // A class that is not resolved yet, or is in a cycle, counts as known, with the default limits.
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

    /// The limits of a table: those of its class, with those that it sets. Reports contradictions.
    pub(super) fn limits(
        &self,
        set: &Limits,
        places: &Places,
        path: &str,
        errors: &mut Vec<ConfigError>,
    ) -> Limits {
        let limits = self.limits_without_messages(set, places, path, errors);
        errors.extend(changes(set, places).contradictions(&format!("{path}.limits"), &limits));
        limits
    }

    /// The limits of a table, like `limits`, but without a report of contradictions: hooks ignore the limits that can
    /// contradict each other.
    pub(super) fn limits_without_messages(
        &self,
        set: &Limits,
        places: &Places,
        path: &str,
        errors: &mut Vec<ConfigError>,
    ) -> Limits {
        let class = places.of("class").map(|location| Located { value: set.class.clone(), location });
        let mut limits = self.find(class.as_ref(), &format!("{path}.class"), errors);
        changes(set, places).apply(&mut limits);
        limits
    }

    /// The limits of the class with this name, or of the default class if the name is missing or wrong.
    fn find(&self, name: Option<&Located<String>>, key: &str, errors: &mut Vec<ConfigError>) -> Limits {
        let default = || self.limits.get(DEFAULT).cloned().unwrap_or_default();
        let Some(name) = name else {
            return default();
        };
        self.limits.get(&name.value).cloned().unwrap_or_else(|| {
            let mut message = format!("in `{key}`: there is no class `{}`", name.value);
            // Comparing all pairs would take minutes in a hostile file, for messages that are never shown.
            if errors.len() < ERRORS_MAX {
                let known = self.limits.keys().map(String::as_str);
                message += &match nearest(&name.value, known.clone()) {
                    Some(near) => format!(": did you mean `{near}`?"),
                    None => format!(": there are {}", listed(known, ", ")),
                };
            }
            errors.push(ConfigError::new(key, message, Some(name.location.clone())));
            default()
        })
    }
}

/// The limits that a table with these places sets itself.
fn changes(set: &Limits, places: &Places) -> LimitChanges {
    places.within("limits").map(|places| LimitChanges::of(set, places)).unwrap_or_default()
}

/// Limits that differ from those of a class, with their places.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitChanges {
    set: Vec<(&'static LimitKey, u64, Origin)>,
    features: Option<Features>,
    /// Whether faulty changes are left out.
    pub(super) incomplete: bool,
}

#[derive(Clone, Debug)]
enum Origin {
    File(Location),
    Variable(String),
}

impl LimitChanges {
    /// The limits that a table of a file sets.
    pub(super) fn of(limits: &Limits, places: &Places) -> Self {
        let change =
            |key: &'static LimitKey| Some((key, (key.get)(limits)?, Origin::File(places.of(key.name)?)));
        let set = LIMIT_KEYS.iter().filter_map(change).collect();
        let features = places.within("features").map(|_| limits.features);
        Self { set, features, incomplete: places.is_faulty }
    }

    pub(super) fn add_variable(&mut self, key: &'static LimitKey, value: u64, variable: &str) {
        self.set.push((key, value, Origin::Variable(variable.to_owned())));
    }

    /// Adds changes, which replace earlier ones of the same limit.
    pub(super) fn override_with(&mut self, overrides: Self) {
        self.set.retain(|(key, ..)| overrides.origin(key.name).is_none());
        self.set.extend(overrides.set);
        self.incomplete |= overrides.incomplete;
    }

    pub(super) fn apply(&self, limits: &mut Limits) {
        for (key, value, origin) in &self.set {
            let source = match origin {
                Origin::File(location) => location.source(),
                Origin::Variable(name) => LimitSource::Environment(name.clone()),
            };
            limits.set(key, *value, source);
        }
        limits.features = self.features.unwrap_or(limits.features);
    }

    fn origin(&self, name: &str) -> Option<&Origin> {
        self.set.iter().find(|(key, ..)| key.name == name).map(|(.., origin)| origin)
    }

    /// The contradictions in `limits` that these changes of the table at `path` cause.
    pub(super) fn contradictions(&self, path: &str, limits: &Limits) -> Vec<ConfigError> {
        if self.incomplete {
            return Vec::new();
        }
        let found = limits.contradictions().into_iter();
        found.filter_map(|found| self.contradiction(path, limits, &found)).collect()
    }

    /// The error for a contradiction. `None` if the table changes neither of the limits: then it is reported elsewhere.
    fn contradiction(
        &self,
        path: &str,
        limits: &Limits,
        Contradiction { keys: [first, second], message }: &Contradiction,
    ) -> Option<ConfigError> {
        let is_variable = |name| matches!(self.origin(name), Some(Origin::Variable(_)));
        let swap = self.origin(first).is_none() || (is_variable(second) && !is_variable(first));
        let (name, other) = if swap { (*second, *first) } else { (*first, *second) };
        let because = set_by_variable(limits, other);
        let error = match self.origin(name)? {
            Origin::File(location) => {
                let message = format!("in `{path}`: {message}{because}");
                ConfigError::new(format!("{path}.{name}"), message, Some(location.clone()))
            }
            Origin::Variable(variable) => {
                ConfigError::new(variable, format!("in `{variable}`: {message}{because}"), None)
            }
        };
        Some(match self.origin(other) {
            Some(Origin::File(location)) => error.note(Some(location.clone()), "the other is here"),
            _ => error,
        })
    }
}

/// Names the variable that set a limit, here or in a parent class. Empty if none did.
fn set_by_variable(limits: &Limits, name: &str) -> String {
    let source = LIMIT_KEYS.iter().find(|key| key.name == name).map(|key| limits.source(key));
    match source {
        Some(LimitSource::Environment(variable)) => format!("; `{name}` is set by `{variable}`"),
        _ => String::new(),
    }
}

/// Checks a class name: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter.
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

/// Checks the name of an operator's class, which must not be that of a built-in one.
pub(super) fn own_class_name(text: &str) -> Result<String, String> {
    if BUILT_IN.contains(&text) {
        return Err(format!(
            "the class `{text}` is built in: give your own another name, and `inherits = \"{text}\"`"
        ));
    }
    class_name(text)
}

fn cycle_error(classes: &[Class], cycle: &[usize]) -> ConfigError {
    let round: Vec<&Class> = cycle.iter().filter_map(|index| classes.get(*index)).collect();
    let names = round.iter().chain(round.first()).map(|class| class.name.value.as_str());
    let location = |class: &Class| class.inherits.as_ref().map(|name| name.location.clone());
    let key = round.first().map(|class| format!("limits.{}.inherits", class.name.value)).unwrap_or_default();
    let message = format!("`inherits` forms a cycle: {}", listed(names, " -> "));
    round.iter().skip(1).fold(
        ConfigError::new(key, message, round.first().and_then(|class| location(class))),
        |error, class| error.note(location(class), format!("{} inherits here", quote(&class.name.value))),
    )
}
