//! The variants of an enum in Rust.

use super::{doc, rename};
use crate::{
    names::{Scope, camel, pascal, snake},
    text::Code,
};

/// What a value of a later version reads as.
const LATER: &str = "A value of a later version of the contract. It is not to be sent.";

/// How serde makes the words of all variants, if it does.
type Rule = (&'static str, fn(&str) -> String);

const RULES: &[Rule] = &[
    ("lowercase", str::to_ascii_lowercase),
    ("camelCase", camel),
    ("snake_case", snake),
    ("kebab-case", |name| snake(name).replace('_', "-")),
];

/// The names of an enum's variants.
pub(super) struct Variants {
    scope: Scope,
    names: Vec<String>,
    rule: Option<Rule>,
}

impl Variants {
    pub(super) fn of<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut scope = Scope::with(&["Self"]);
        let names: Vec<String> = words.clone().map(|word| scope.take(&pascal(word))).collect();
        // serde takes each capital letter for the beginning of a word.
        let is_plain = |name: &String| *name == pascal(&snake(name));
        let follow = |(_, rule): &&Rule| {
            names.iter().zip(words.clone()).all(|(name, word)| is_plain(name) && rule(name) == word)
        };
        let renamed = names.iter().zip(words.clone()).any(|(name, word)| name != word);
        let rule = if renamed { RULES.iter().find(follow).copied() } else { None };
        Self { scope, names, rule }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The attribute of the enum.
    pub(super) fn attribute(&self, mut parts: Vec<String>) -> Option<String> {
        parts.extend(self.rule.map(|(rule, _)| format!("rename_all = \"{rule}\"")));
        (!parts.is_empty()).then(|| format!("#[serde({})]", parts.join(", ")))
    }

    /// Writes what stands before a variant.
    pub(super) fn begin(&self, code: &mut Code, own: &str, word: &str, description: &str) {
        doc(code, description);
        if self.rule.is_none() {
            code.line_if_some(rename(own, word).map(|rename| format!("#[serde({rename})]")));
        }
    }

    /// Writes the variant of further words.
    pub(super) fn end(&mut self, code: &mut Code, open: bool) {
        if open {
            doc(code, LATER);
            code.line("#[serde(other)]");
            code.line(format!("{},", self.scope.take("Other")));
        }
    }
}
