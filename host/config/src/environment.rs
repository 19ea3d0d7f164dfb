//! The environment, and its variables that change the limits of a class: `WEIR_LIMITS_<CLASS>_<KEY>`.
//!
//! Every variable under the prefix must mean something: one that is set and changes nothing would leave
//! the operator with a limit that does not hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

use super::{
    changes::LimitChanges,
    error::{ConfigError, ERRORS_MAX, listed, quote, shorten},
    limits::{LIMIT_KEYS, LimitKey},
    section::nearest,
};

const PREFIX: &str = "WEIR_LIMITS_";

/// Also a slip in the prefix must not leave a limit unset: nothing else of Weir's starts like this.
const CLAIMED: &str = "WEIR_LIMIT";

/// The variables of a process.
#[derive(Default)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    pub(super) fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_os_str())
    }

    /// Those that are meant for limits.
    fn limits(&self) -> impl Iterator<Item = &(OsString, OsString)> {
        self.0.iter().filter(|(name, _)| name.as_encoded_bytes().starts_with(CLAIMED.as_bytes()))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

/// What the variables change, by class.
#[derive(Debug, Default)]
pub(super) struct Overrides(BTreeMap<String, LimitChanges>);

impl Overrides {
    /// Reads the variables. Unless the `classes` are `complete`, that one is missing may be because of
    /// another error, and is not reported.
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
            // One that is not UTF-8 is none that is known.
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

    /// Makes the changes of a class those that its table and the variables come to.
    pub(super) fn complete(&mut self, class: &str, changes: &mut LimitChanges) {
        if let Some(overrides) = self.0.remove(class) {
            changes.override_with(overrides);
        }
    }
}

/// Every class, by how it is written in the name of a variable.
struct Names<'c>(BTreeMap<String, &'c str>);

/// What is wrong with the name of a variable.
enum Unknown<'c> {
    /// The class, before a limit that there is.
    Class,
    /// The limit, after a class that there is: what stands there.
    Limit(String),
    /// All of it after the prefix.
    Both,
    /// The prefix itself.
    Prefix,
    /// Nothing: it can be taken apart into each of these classes and limits.
    Which(Vec<(&'c str, &'static LimitKey)>),
}

impl<'c> Names<'c> {
    /// A name can be taken apart in two ways where that of one limit ends with that of another, as
    /// `compile-memory` does.
    fn find(&self, variable: &str) -> Result<(&'c str, &'static LimitKey), Unknown<'c>> {
        let rest = variable.strip_prefix(PREFIX).ok_or(Unknown::Prefix)?;
        let class_of = |key: &LimitKey| rest.strip_suffix(&part(key.name))?.strip_suffix('_');
        let known = |key: &'static LimitKey| Some((*self.0.get(class_of(key)?)?, key));
        let found: Vec<_> = LIMIT_KEYS.iter().filter_map(known).collect();
        match found[..] {
            [one] => Ok(one),
            [] if LIMIT_KEYS.iter().any(|key| class_of(key).is_some()) => Err(Unknown::Class),
            // The longest class that it could be meant for.
            [] => Err(rest
                .rmatch_indices('_')
                .find(|(at, _)| rest.get(..*at).is_some_and(|class| self.0.contains_key(class)))
                .and_then(|(at, _)| rest.get(at + 1..))
                .map_or(Unknown::Both, |limit| Unknown::Limit(limit.to_owned()))),
            _ => Err(Unknown::Which(found)),
        }
    }

    /// Completes a sentence that starts with the name of the variable.
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
            Unknown::Class => format!("is for a class that there is not: {help}"),
            Unknown::Limit(limit) => format!("is for a limit that there is not, {}: {help}", quote(limit)),
            Unknown::Both => format!("is for no class and no limit that there is: {help}"),
            Unknown::Prefix => format!("is no variable of Weir's, but looks like a limit: {help}"),
            Unknown::Which(which) => {
                let which = which.iter().map(|(class, key)| format!("`{}` of the class `{class}`", key.name));
                format!("could be {}: {help}", which.collect::<Vec<_>>().join(" or "))
            }
        }
    }

    /// The variable that is most likely meant.
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

/// How the name of a class or a limit is written in the name of a variable. Neither has an underscore of
/// its own, so that no two classes, and no two limits, become one.
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
        // Even where a class is named as if it were part of a limit.
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
