//! Names in WIT.

use std::collections::HashSet;

use weir_openrpc::shown;

/// Words that mean something in WIT. As names they begin with `%`.
const KEYWORDS: &str = "\
    as async bool borrow char constructor enum error-context export f32 f64 flags from func future import include \
    interface list map option own package record resource result s16 s32 s64 s8 static stream string tuple type u16 u32 \
    u64 u8 use variant with world";

/// Names of one place. To tools, names that differ in case or `-` alone are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken(HashSet<String>);

impl Taken {
    /// Takes a name, if it is free.
    pub(super) fn take(&mut self, name: &str) -> bool {
        self.0.insert(name.replace(['-', '%'], "").to_ascii_lowercase())
    }

    /// Takes the name, or the name with the first number with which `whole` is free.
    pub(super) fn free(&mut self, name: &str, whole: impl Fn(&str) -> String) -> String {
        let mut names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}{number}")));
        names.find(|name| self.take(&whole(name))).unwrap_or_default()
    }
}

/// Names that stand beside each other, if all of them differ.
pub(super) fn distinct<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<(), String> {
    let mut taken = Taken::default();
    match names.into_iter().find(|name| !taken.take(name)) {
        Some(twice) => Err(format!("another name is the same as `{}` in WIT", shown(twice))),
        None => Ok(()),
    }
}

/// A name as it stands in WIT, which takes words of letters and digits with `-` between them. JSON has it as it is, so it
/// cannot be changed.
pub(super) fn label(name: &str) -> Result<String, String> {
    let is_word = |word: &str| {
        let has = |is_letter: fn(&char) -> bool| word.chars().all(|it| is_letter(&it) || it.is_ascii_digit());
        !word.is_empty() && (has(char::is_ascii_lowercase) || has(char::is_ascii_uppercase))
    };
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.split('-').all(is_word) {
        Ok(escaped(name))
    } else {
        Err(format!("`{}` is no name in WIT, which has words with `-` between them", shown(name)))
    }
}

/// The name, with `%` before it if it means something in WIT.
pub(super) fn escaped(name: &str) -> String {
    let is_keyword = KEYWORDS.split_whitespace().any(|keyword| keyword == name);
    if is_keyword { format!("%{name}") } else { name.to_owned() }
}
