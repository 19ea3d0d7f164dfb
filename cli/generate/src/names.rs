//! Names of contracts as names in a language.

use std::collections::HashSet;

/// Returns the words of a name: `perSecond`, `per-second` and `PerSecond` have the same two. Letters outside ASCII are
/// left out, since languages differ in the ones they take.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_alphanumeric() {
            let is_hump = character.is_ascii_uppercase()
                && (before.is_ascii_lowercase()
                    || before.is_ascii_uppercase()
                        && characters.peek().is_some_and(char::is_ascii_lowercase));
            match words.last_mut() {
                Some(word) if before.is_ascii_alphanumeric() && !is_hump => word.push(character),
                _ => words.push(character.into()),
            }
        }
        before = character;
    }
    words
}

/// Writes a name as `PerSecond`. A name that is already of that form stays.
pub(crate) fn pascal(name: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|character| character.is_ascii_alphanumeric())
    {
        return name.to_owned();
    }
    legal(words(name).iter().map(|word| capitalised(word)).collect(), "Unnamed")
}

/// Writes a name as `perSecond`.
pub(crate) fn camel(name: &str) -> String {
    let words = words(name);
    let mut name = String::new();
    for word in &words {
        name += &if name.is_empty() { word.to_ascii_lowercase() } else { capitalised(word) };
    }
    legal(name, "unnamed")
}

/// Writes a name as `per_second`.
pub(crate) fn snake(name: &str) -> String {
    legal(words(name).join("_").to_ascii_lowercase(), "unnamed")
}

/// Writes a name as `per-second`. It begins with a letter.
pub(crate) fn kebab(name: &str) -> String {
    let name = words(name).join("-").to_ascii_lowercase();
    match name.chars().next() {
        None => "unnamed".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        Some(_) => name,
    }
}

/// Writes a name as `PER_SECOND`.
pub(crate) fn upper(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_ascii_uppercase() + &rest.to_ascii_lowercase()
}

/// Changes a name that is empty or begins with a digit.
fn legal(name: String, unnamed: &str) -> String {
    match name.chars().next() {
        None => unnamed.to_owned(),
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name,
    }
}

/// The names that are taken in one place of the output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope(HashSet<String>);

impl Scope {
    /// Makes a scope in which these names, with spaces between, mean something already.
    pub(crate) fn with(reserved: &str) -> Self {
        Self(reserved.split_whitespace().map(str::to_owned).collect())
    }

    /// Takes the name, with a number if another one has it.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        let mut number = 2;
        while !self.0.insert(free.clone()) {
            free = format!("{name}{number}");
            number += 1;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_form_have_the_same_words() {
        for name in ["perSecond", "per-second", "PerSecond", "per second"] {
            let all = [pascal(name), camel(name), snake(name), upper(name)];
            assert_eq!(all, ["PerSecond", "perSecond", "per_second", "PER_SECOND"], "{name}");
        }
        assert_eq!([pascal("HTTPServer"), snake("HTTPServer")], ["HTTPServer", "http_server"]);
    }

    #[test]
    fn no_name_is_empty_or_begins_with_a_digit() {
        assert_eq!([pascal("7z"), snake("Ω"), camel("")], ["_7z", "unnamed", "unnamed"]);
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let mut scope = Scope::with("self");
        assert_eq!(["self", "a", "a", "a"].map(|name| scope.take(name)), ["self2", "a", "a2", "a3"]);
    }
}
