//! Compares numbers, lengths, and texts. Where a value may have several types, its texts are the strings of them all.

use std::fmt;

use serde_json::Value;

use super::walk::{Place, Walk};
use crate::{
    Schema, Shape,
    check::{View, integer_range, number_range},
    path::{self, alternatives, shown},
};

/// Compares two types of numbers. Returns `false` without a finding if one of them is not a type of numbers.
pub(super) fn numbers<'a>(walk: &mut Walk<'a>, place: &Place<'a>, old: &'a Shape, new: &'a Shape) -> bool {
    match (old, new) {
        (
            Shape::Integer { minimum, maximum, format },
            Shape::Integer { minimum: new_minimum, maximum: new_maximum, format: new_format },
        ) => {
            let old = integer_range(*minimum, *maximum, format.as_deref());
            let new = integer_range(*new_minimum, *new_maximum, new_format.as_deref());
            range(walk, place, "be", (old, new), |bound| {
                (bound != i128::MIN && bound != i128::MAX).then(|| bound.to_string())
            });
            true
        }
        (
            Shape::Number { minimum, maximum, .. },
            Shape::Number { minimum: new_minimum, maximum: new_maximum, .. },
        ) => {
            let old = number_range(*minimum, *maximum);
            let new = number_range(*new_minimum, *new_maximum);
            range(walk, place, "be", (old, new), |bound: f64| bound.is_finite().then(|| bound.to_string()));
            true
        }
        (Shape::Integer { .. }, Shape::Number { .. }) => {
            walk.gained(place, "be a number with a fraction", false);
            true
        }
        (Shape::Number { .. }, Shape::Integer { .. }) => {
            walk.lost(place, "be a number with a fraction", false);
            true
        }
        _ => false,
    }
}

/// Compares the bounds on a length.
pub(super) fn counts<'a>(
    walk: &mut Walk<'a>,
    place: &Place<'a>,
    old: (Option<u64>, Option<u64>),
    new: (Option<u64>, Option<u64>),
    thing: &str,
) {
    let bounds = |(min, max): (Option<u64>, Option<u64>)| (min.unwrap_or(0), max.unwrap_or(u64::MAX));
    let shown = |bound: u64| (bound != 0 && bound != u64::MAX).then(|| path::counted(bound, thing));
    range(walk, place, "have", (bounds(old), bounds(new)), shown);
}

fn range<'a, T: PartialOrd + Copy>(
    walk: &mut Walk<'a>,
    place: &Place<'a>,
    verb: &str,
    ((old_least, old_greatest), (new_least, new_greatest)): ((T, T), (T, T)),
    shown: impl Fn(T) -> Option<String>,
) {
    let than = |what: &str, bound: T| match shown(bound) {
        Some(bound) => format!("{verb} {what} than {bound}"),
        None => format!("{verb} {what}"),
    };
    let (less, more) = (|bound| than("less", bound), |bound| than("more", bound));
    if new_least < old_least {
        walk.gained(place, less(old_least), false);
    } else if new_least > old_least {
        walk.lost(place, less(new_least), false);
    }
    if new_greatest > old_greatest {
        walk.gained(place, more(old_greatest), false);
    } else if new_greatest < old_greatest {
        walk.lost(place, more(new_greatest), false);
    }
}

/// The most words in one message.
const MAX_SHOWN: usize = 8;

/// The strings that a value may be.
#[derive(Debug, Default)]
pub(super) struct Texts<'a> {
    words: Vec<&'a str>,
    open: bool,
    /// The least and the greatest length and the format, if the value may be any such text.
    any: Option<(Option<u64>, Option<u64>, Option<&'a str>)>,
}

impl<'a> Texts<'a> {
    /// Adds the strings of a type. Returns `false` if it is not a type of strings alone.
    pub(super) fn take(&mut self, view: &View<'a>) -> bool {
        let View::Schema(Schema { shape, .. }) = view else { return false };
        match shape {
            Shape::String { min_length, max_length, format } => {
                self.any = Some((*min_length, *max_length, format.as_deref()));
            }
            Shape::Words { words, open } => {
                self.words.extend(words.iter().map(|word| &*word.word));
                self.open |= open;
            }
            Shape::Constant(Value::String(word)) => self.words.push(word),
            _ => return false,
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && !self.open && self.any.is_none()
    }
}

/// Writes the strings as a message has them, such as `be a or b`, or `be a string`.
impl fmt::Display for Texts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.any {
            Some(_) => f.write_str("be a string"),
            None => f.write_str(&be(&self.words)),
        }
    }
}

fn be(words: &[&str]) -> String {
    let mut texts: Vec<String> =
        words.iter().take(MAX_SHOWN).map(|word| format!("`{}`", shown(word))).collect();
    if let Some(more) = words.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        texts.push(format!("{more} more"));
    }
    format!("be {}", alternatives(&texts, "or"))
}

pub(super) fn texts<'a>(walk: &mut Walk<'a>, place: &Place<'a>, old: &Texts<'a>, new: &Texts<'a>) {
    match (old.any, new.any) {
        (Some((old_min, old_max, old_format)), Some((new_min, new_max, new_format))) => {
            counts(walk, place, (old_min, old_max), (new_min, new_max), "character");
            format(walk, place, old_format, new_format);
        }
        (Some(_), None) => {
            walk.lost(place, "be any string", new.open);
        }
        (None, Some(_)) => {
            walk.gained(place, "be any string", old.open);
        }
        (None, None) => {
            let only = |one: &Texts<'a>, other: &Texts<'a>| -> Vec<&'a str> {
                one.words.iter().copied().filter(|word| !other.words.contains(word)).collect()
            };
            let (gained, lost) = (only(new, old), only(old, new));
            if !gained.is_empty() {
                walk.gained(place, be(&gained), old.open);
            }
            if !lost.is_empty() {
                walk.lost(place, be(&lost), new.open);
            }
            walk.opened(place, old.open, new.open);
        }
    }
}

/// Compares the formats of strings. Another format is breaking, because only the format says what a string means.
fn format<'a>(walk: &mut Walk<'a>, place: &Place<'a>, old: Option<&str>, new: Option<&str>) {
    let text = |format: Option<&str>| match format {
        Some(format) => format!("a string of format `{}`", shown(format)),
        None => "a string".into(),
    };
    match (old, new) {
        (old, new) if old == new => {}
        (Some(_), None) => walk.gained(place, "be any string", false),
        (None, Some(_)) => walk.lost(place, "be any string", false),
        (old, new) => walk.breaking(&place.path, walk.was(&text(old), &text(new))),
    }
}
