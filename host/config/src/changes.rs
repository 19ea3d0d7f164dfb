//! Changes of a class's limits, with their places.

use super::{
    Limits,
    error::{ConfigError, Location},
    key::{Contradiction, Places},
    limits::{LIMIT_KEYS, LimitKey, LimitSource},
};

/// Limits that differ from those of a class, with their places.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitChanges {
    set: Vec<(&'static LimitKey, u64, Origin)>,
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
        Self { set: LIMIT_KEYS.iter().filter_map(change).collect(), incomplete: places.is_faulty }
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

    /// `None` if neither limit is changed here: the parent class has reported it.
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

/// Names the variable that set a limit, here or in a parent class.
fn set_by_variable(limits: &Limits, name: &str) -> String {
    let source = LIMIT_KEYS.iter().find(|key| key.name == name).map(|key| limits.source(key));
    match source {
        Some(LimitSource::Environment(variable)) => format!("; `{name}` is set by `{variable}`"),
        _ => String::new(),
    }
}
