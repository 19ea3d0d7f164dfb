//! Texts: all that a value may be as a string, from all types of a union together.

use std::fmt;

use serde_json::Value;

use super::{
    change::Change,
    scalar,
    walk::{Place, Walk},
};
use crate::{
    Schema, Shape,
    check::View,
    path::{alternatives, shown},
};

/// Words in one message.
const MAX_SHOWN: usize = 8;

/// What strings a value may be.
#[derive(Debug, Default)]
pub(super) struct Texts<'a> {
    words: Vec<&'a str>,
    open: bool,
    /// Any text, of such a length and format.
    any: Option<(Option<u64>, Option<u64>, Option<&'a str>)>,
}

impl<'a> Texts<'a> {
    /// Takes a type in, if its values are strings.
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

/// Such as `be a or b`, or `be a string`.
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

pub(super) fn compare<'a>(walk: &mut Walk<'a>, place: &Place<'a>, old: &Texts<'a>, new: &Texts<'a>) {
    match (old.any, new.any) {
        (Some((old_min, old_max, old_format)), Some((new_min, new_max, new_format))) => {
            scalar::counts(walk, place, (old_min, old_max), (new_min, new_max), "character");
            format(walk, place, old_format, new_format);
        }
        (Some(_), None) => {
            walk.changed(place, &Change::Lost { what: "be any string".into(), expected: new.open });
        }
        (None, Some(_)) => {
            walk.changed(place, &Change::Gained { what: "be any string".into(), expected: old.open });
        }
        (None, None) => {
            let only = |one: &Texts<'a>, other: &Texts<'a>| -> Vec<&'a str> {
                one.words.iter().copied().filter(|word| !other.words.contains(word)).collect()
            };
            let (gained, lost) = (only(new, old), only(old, new));
            if !gained.is_empty() {
                walk.changed(place, &Change::Gained { what: be(&gained), expected: old.open });
            }
            if !lost.is_empty() {
                walk.changed(place, &Change::Lost { what: be(&lost), expected: new.open });
            }
            match (old.open, new.open) {
                (false, true) => walk.changed(place, &Change::NowOpen),
                (true, false) => walk.changed(place, &Change::NowClosed),
                _ => {}
            }
        }
    }
}

/// A format is the only thing that says what a text means.
fn format<'a>(walk: &mut Walk<'a>, place: &Place<'a>, old: Option<&str>, new: Option<&str>) {
    let text = |format: Option<&str>| match format {
        Some(format) => format!("a string of format `{}`", shown(format)),
        None => "a string".into(),
    };
    match (old, new) {
        (old, new) if old == new => {}
        (Some(_), None) => {
            walk.changed(place, &Change::Gained { what: "be any string".into(), expected: false })
        }
        (None, Some(_)) => {
            walk.changed(place, &Change::Lost { what: "be any string".into(), expected: false })
        }
        (old, new) => walk.breaking(&place.path, walk.was(&text(old), &text(new))),
    }
}
