//! Environment variables that change the limits of a class: `WEIR_LIMITS_<CLASS>_<KEY>`.
//!
//! An unknown variable under the prefix is an error: else an operator would rely on a limit that is not set.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

use super::{
    classes::LimitChanges,
    error::{ConfigError, ERRORS_MAX, listed, quote, shorten},
    limits::{LIMIT_KEYS, LimitKey},
    section::nearest,
};

const PREFIX: &str = "WEIR_LIMITS_";

/// Variables that start like this are read or refused. The text is shorter than [`PREFIX`], to catch misspelt names. No
/// other variable of Weir starts like this.
const CLAIMED: &str = "WEIR_LIMIT";

#[derive(Default)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    pub(super) fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_os_str())
    }

    /// The variables that start like [`CLAIMED`].
    fn limits(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        self.0.iter().filter(|(name, _)| name.as_encoded_bytes().starts_with(CLAIMED.as_bytes()))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

/// The limits that variables set, by class.
#[derive(Debug, Default)]
pub(super) struct Overrides(BTreeMap<String, LimitChanges>);

impl Overrides {
    /// Reads the variables. If the `classes` are not `complete`, a missing one may follow from another error, so it is
    /// not reported.
    pub(super) fn read<'c>(
        environment: &Environment,
        classes: impl Iterator<Item = &'c str>,
        complete: bool,
        errors: &mut Vec<ConfigError>,
    ) -> Self {
        let names = Names(classes.map(|class| (part(class), class)).collect());
        let mut overrides = Self::default();
        let mut seen = BTreeSet::new();
        for (name, value) in environment.limits() {
            // A name that is not UTF-8 is unknown.
            let variable = name.to_string_lossy();
            let suggest = errors.len() < ERRORS_MAX;
            let fault = match names.find(&variable) {
                _ if !seen.insert(name) => Some("is set twice: set it once".to_owned()),
                Ok((class, key)) => overrides.add(class, key, &variable, value).err(),
                Err(Unknown::Class | Unknown::Both) if !complete => None,
                Err(unknown) => Some(names.explain(&variable, &unknown, suggest)),
            };
            errors.extend(fault.map(|fault| {
                ConfigError::new(shorten(&variable, 100), format!("{} {fault}", quote(&variable)), None)
            }));
        }
        overrides
    }

    fn add(
        &mut self,
        class: &str,
        key: &'static LimitKey,
        variable: &str,
        value: &OsStr,
    ) -> Result<(), String> {
        let changes = self.0.entry(class.to_owned()).or_default();
        let number = value.to_str().and_then(|text| key.shape.number_in(text));
        if let Some(number) = number {
            changes.add_variable(key, number, variable);
            return Ok(());
        }
        changes.incomplete = true;
        let found = value.to_str().map_or_else(|| "a text that is not UTF-8".to_owned(), quote);
        let example = key.shape.with_bare_example();
        let is_quoted = value.to_str().is_some_and(|text| text.starts_with(['"', '\'']));
        let quotes = if is_quoted { ", without quotes" } else { "" };
        Err(format!("must be {example}{quotes}, not {found}"))
    }

    /// Merges the variables for a class into the changes of its table.
    pub(super) fn complete(&mut self, class: &str, changes: &mut LimitChanges) {
        if let Some(overrides) = self.0.remove(class) {
            changes.override_with(overrides);
        }
    }
}

/// Classes by the form of their names in variables.
struct Names<'c>(BTreeMap<String, &'c str>);

enum Unknown<'c> {
    /// The class is unknown, but the limit is known.
    Class,
    /// The class is known, but the limit, with this text, is unknown.
    Limit(String),
    /// Class and limit are unknown.
    Both,
    /// The prefix is wrong.
    Prefix,
    /// The name fits each of these classes and limits.
    Which(Vec<(&'c str, &'static LimitKey)>),
}

impl<'c> Names<'c> {
    /// Finds the class and the limit that a variable names. There can be two readings if the name of one limit ends
    /// with that of another, such as `compile-memory`.
    fn find(&self, variable: &str) -> Result<(&'c str, &'static LimitKey), Unknown<'c>> {
        let rest = variable.strip_prefix(PREFIX).ok_or(Unknown::Prefix)?;
        let class_of = |key: &LimitKey| rest.strip_suffix(&part(key.name))?.strip_suffix('_');
        let known = |key: &'static LimitKey| Some((*self.0.get(class_of(key)?)?, key));
        let found: Vec<_> = LIMIT_KEYS.iter().filter_map(known).collect();
        match found[..] {
            [one] => Ok(one),
            [] if LIMIT_KEYS.iter().any(|key| class_of(key).is_some()) => Err(Unknown::Class),
            // The text after the longest class name that fits.
            [] => Err(rest
                .rmatch_indices('_')
                .find(|(at, _)| rest.get(..*at).is_some_and(|class| self.0.contains_key(class)))
                .and_then(|(at, _)| rest.get(at + 1..))
                .map_or(Unknown::Both, |limit| Unknown::Limit(limit.to_owned()))),
            _ => Err(Unknown::Which(found)),
        }
    }

    fn explain(&self, variable: &str, unknown: &Unknown<'_>, suggest: bool) -> String {
        let is_slip = !matches!(unknown, Unknown::Which(_));
        let near = if suggest && is_slip { self.nearest(variable) } else { None };
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => match unknown {
                Unknown::Class => format!("the classes are {}", listed(self.0.keys(), ", ")),
                Unknown::Limit(_) => {
                    format!("the limits are {}", listed(LIMIT_KEYS.iter().map(|key| part(key.name)), ", "))
                }
                Unknown::Both | Unknown::Prefix => {
                    format!("it must be `{PREFIX}<CLASS>_<KEY>`, as in `{PREFIX}MEDIUM_MEMORY`")
                }
                Unknown::Which(_) => "give one of these classes another name".to_owned(),
            },
        };
        match unknown {
            Unknown::Class => format!("names an unknown class: {help}"),
            Unknown::Limit(limit) => format!("names an unknown limit, {}: {help}", quote(limit)),
            Unknown::Both => format!("names an unknown class and limit: {help}"),
            Unknown::Prefix => format!("is not a variable of Weir, but looks like a limit: {help}"),
            Unknown::Which(which) => {
                let which = which.iter().map(|(class, key)| format!("`{}` of the class `{class}`", key.name));
                format!("could be {}: {help}", which.collect::<Vec<_>>().join(" or "))
            }
        }
    }

    fn nearest(&self, variable: &str) -> Option<String> {
        let claimed = || variable.strip_prefix(CLAIMED).map(|rest| rest.trim_start_matches('_'));
        let rest = part(variable.strip_prefix(PREFIX).or_else(claimed)?);
        let limits: Vec<String> = LIMIT_KEYS.iter().map(|key| part(key.name)).collect();
        let meant = |at: usize| {
            let class = nearest(rest.get(..at)?, self.0.keys().map(String::as_str))?;
            let limit = nearest(rest.get(at + 1..)?, limits.iter().map(String::as_str))?;
            Some(format!("{class}_{limit}"))
        };
        let near = rest.match_indices('_').filter_map(|(at, _)| meant(at));
        near.min_by_key(|near| strsim::damerau_levenshtein(&rest, near)).map(|near| format!("{PREFIX}{near}"))
    }
}

/// The form of a class or limit in a variable's name. Classes and limits have no underscores, so different names stay
/// different.
fn part(name: &str) -> String {
    name.to_ascii_uppercase().replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_taken_apart_as_its_class_and_its_limit_are_named() {
        for key in &LIMIT_KEYS {
            let name = part(key.name);
            assert!(!key.name.contains('_'), "{name}");
            let same = LIMIT_KEYS.iter().filter(|other| part(other.name) == name);
            assert_eq!(same.count(), 1, "{name}");
        }
        // Classes may be named like part of a limit.
        for class in ["a", "a-inbox", "a-fuel-per", "memory", "a-message"] {
            let names = Names([(part("a"), "a"), (part(class), class)].into());
            for key in &LIMIT_KEYS {
                let (found, found_key) =
                    names.find(&format!("{PREFIX}{}_{}", part(class), part(key.name))).ok().unwrap();
                assert_eq!((found, found_key.name), (class, key.name));
            }
        }
    }
}
