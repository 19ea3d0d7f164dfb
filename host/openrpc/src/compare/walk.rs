//! Goes through two descriptions at once, and compares them pair by pair of types.

use std::{collections::HashSet, ptr};

use serde_json::Value;

use super::{
    Finding, Severity,
    change::{Change, Sides},
    scalar,
};
use crate::{
    Document, Field, Schema, Shape,
    check::{Union, View, kind_of},
    path,
    show::type_text,
};

/// The most pairs of types that are compared. A usual contract has some hundreds.
const MAX_PAIRS: usize = 100_000;

/// A type of the old document and one of the new one.
pub(super) type Pair<'a> = (View<'a>, View<'a>);

pub(super) struct Walk<'a> {
    old: &'a Document,
    new: &'a Document,
    pub(super) sides: Sides,
    pub(super) findings: Vec<Finding>,
    /// Pairs that are still to be compared. The last one is next.
    waiting: Vec<Place<'a>>,
    /// Pairs that were added to `waiting` at some time, with the side that reads, so that each is compared once.
    known: HashSet<(Identity, Identity, bool)>,
}

/// A pair of types, and its place in the contract.
pub(super) struct Place<'a> {
    pub(super) pair: Pair<'a>,
    /// Whether the new side reads what the old one writes, rather than the other way round.
    pub(super) new_reads: bool,
    pub(super) path: String,
}

/// The address of a type, and how many fields it has if it is a [`View::Record`], otherwise `usize::MAX`.
type Identity = (*const (), usize);

impl<'a> Walk<'a> {
    pub(super) fn new(old: &'a Document, new: &'a Document, sides: Sides) -> Self {
        Self { old, new, sides, findings: Vec::new(), waiting: Vec::new(), known: HashSet::new() }
    }

    pub(super) fn breaking(&mut self, path: &str, message: impl Into<String>) {
        self.found(path, message.into(), Severity::Breaking);
    }

    pub(super) fn compatible(&mut self, path: &str, message: impl Into<String>) {
        self.found(path, message.into(), Severity::Compatible);
    }

    fn found(&mut self, path: &str, message: String, severity: Severity) {
        self.findings.push(Finding { path: path.into(), message, severity });
    }

    pub(super) fn changed(&mut self, place: &Place<'a>, change: &Change) {
        self.changed_at(&place.path, place.new_reads, change);
    }

    pub(super) fn changed_at(&mut self, path: &str, new_reads: bool, change: &Change) {
        if change.is_noted(new_reads, self.sides) {
            let severity = change.severity(new_reads, self.sides);
            self.found(path, change.message(new_reads, self.sides), severity);
        }
    }

    /// Notes that only the new type allows what `what` says, as in `be a string`. `expected` if the old one says that
    /// later versions may allow more.
    pub(super) fn gained(&mut self, place: &Place<'a>, what: impl Into<String>, expected: bool) {
        self.changed(place, &Change::Gained { what: what.into(), expected });
    }

    /// Notes that only the old type allows what `what` says. `expected` if the new one says that other versions may
    /// allow more.
    pub(super) fn lost(&mut self, place: &Place<'a>, what: impl Into<String>, expected: bool) {
        self.changed(place, &Change::Lost { what: what.into(), expected });
    }

    pub(super) fn opened(&mut self, place: &Place<'a>, was_open: bool, is_open: bool) {
        match (was_open, is_open) {
            (false, true) => self.changed(place, &Change::NowOpen),
            (true, false) => self.changed(place, &Change::NowClosed),
            _ => {}
        }
    }

    /// The message that a value is described as something else.
    pub(super) fn was(&self, old: &str, new: &str) -> String {
        match self.sides {
            Sides::Versions => format!("was {old}, and is {new}"),
            Sides::CallerAndProvider => format!("is {old} for the caller, and {new} for the provider"),
        }
    }

    /// Compares a pair and everything in it, up to [`MAX_PAIRS`]. Too many pairs are a breaking difference.
    pub(super) fn add(&mut self, pair: Pair<'a>, new_reads: bool, path: String) {
        let first = self.waiting.len();
        self.later(Place { pair, new_reads, path });
        while self.waiting.len() > first
            && let Some(place) = self.waiting.pop()
        {
            if self.known.len() > MAX_PAIRS {
                self.waiting.truncate(first);
                return self.breaking(&place.path, "has too many types to compare");
            }
            let before = self.waiting.len();
            self.compare(&place);
            // The pairs inside were found in order, and the last one in the list is taken first.
            if let Some(inner) = self.waiting.get_mut(before..) {
                inner.reverse();
            }
        }
    }

    /// Adds a pair to those that wait, unless it was added before.
    pub(super) fn later(&mut self, place: Place<'a>) {
        let (old, new) = place.pair;
        if self.known.insert((identity(old), identity(new), place.new_reads)) {
            self.waiting.push(place);
        }
    }

    fn compare(&mut self, place: &Place<'a>) {
        let old = Union::of(place.pair.0, |name| self.old.named(name));
        let new = Union::of(place.pair.1, |name| self.new.named(name));
        self.opened(place, old.open, new.open);
        let (mut old_words, mut new_words) = (scalar::Texts::default(), scalar::Texts::default());
        let keyed = |view: &View<'a>| (key(*view), *view);
        let olds: Vec<_> = old.members.iter().filter(|view| !old_words.take(view)).map(keyed).collect();
        let news: Vec<_> = new.members.iter().filter(|view| !new_words.take(view)).map(keyed).collect();
        // If a single type is replaced by another, that is one finding, not two.
        if let ([old], [new]) = (&*old.members, &*new.members)
            && (!is_any(*old) && !is_any(*new))
            && (old_words.is_empty() || new_words.is_empty())
        {
            return self.single(place, *old, *new);
        }
        if olds.is_empty() && news.is_empty() {
            return scalar::texts(self, place, &old_words, &new_words);
        }
        self.unions(place, (olds, old_words, old.open), (news, new_words, new.open));
    }

    fn unions(
        &mut self,
        place: &Place<'a>,
        (olds, old_words, old_open): (Vec<(String, View<'a>)>, scalar::Texts<'a>, bool),
        (mut news, new_words, new_open): (Vec<(String, View<'a>)>, scalar::Texts<'a>, bool),
    ) {
        if old_words.is_empty() != new_words.is_empty() {
            let any = |views: &[(String, View<'a>)]| views.iter().any(|(_, view)| is_any(*view));
            if old_words.is_empty() && !any(&olds) {
                self.gained(place, new_words.to_string(), old_open);
            } else if new_words.is_empty() && !any(&news) {
                self.lost(place, old_words.to_string(), new_open);
            }
        } else {
            scalar::texts(self, place, &old_words, &new_words);
        }
        let new_any = news.iter().any(|(_, view)| is_any(*view));
        for (key, old) in &olds {
            match news.iter().position(|(new, _)| new == key) {
                Some(index) => {
                    let (_, new) = news.remove(index);
                    self.single(place, *old, new);
                }
                None if new_any => {}
                None => self.lost(place, be(*old), new_open),
            }
        }
        let old_any = olds.iter().any(|(_, view)| is_any(*view));
        for (_, new) in news.iter().filter(|_| !old_any) {
            self.gained(place, be(*new), old_open);
        }
    }

    /// Compares two types that are not unions.
    fn single(&mut self, place: &Place<'a>, old: View<'a>, new: View<'a>) {
        match (old, new) {
            (
                View::Record { fields: old, strict: old_strict },
                View::Record { fields: new, strict: new_strict },
            ) => self.record(place, (old, old_strict), (new, new_strict)),
            (old, new) if is_any(old) && is_any(new) => {}
            (old, _) if is_any(old) => self.lost(place, "be any value", false),
            (_, new) if is_any(new) => self.gained(place, "be any value", false),
            (View::Schema(old_schema), View::Schema(new_schema)) => {
                self.shapes(place, (old, old_schema), (new, new_schema));
            }
            (old, new) => self.other(place, old, new),
        }
    }

    fn shapes(&mut self, place: &Place<'a>, old: (View<'a>, &'a Schema), new: (View<'a>, &'a Schema)) {
        let ((old_view, old), (new_view, new)) = (old, new);
        match (&old.shape, &new.shape) {
            (Shape::Null, Shape::Null) | (Shape::Boolean, Shape::Boolean) | (Shape::Never, Shape::Never) => {}
            (Shape::Constant(old), Shape::Constant(new)) if old == new => {}
            (
                Shape::List { items: old, min, max, .. },
                Shape::List { items: new, min: new_min, max: new_max, .. },
            ) => {
                scalar::counts(self, place, (*min, *max), (*new_min, *new_max), "value");
                self.inner(place, (old, new), "[]");
            }
            (Shape::Tuple(old), Shape::Tuple(new)) if old.len() == new.len() => {
                for (index, pair) in old.iter().zip(new).enumerate() {
                    self.inner(place, pair, &path::index(index));
                }
            }
            (Shape::Map(old), Shape::Map(new)) => self.inner(place, (old, new), ".*"),
            (old, new) if scalar::numbers(self, place, old, new) => {}
            _ => self.other(place, old_view, new_view),
        }
    }

    fn record(
        &mut self,
        place: &Place<'a>,
        (old, old_strict): (&'a [Field], bool),
        (new, new_strict): (&'a [Field], bool),
    ) {
        let new_reads = place.new_reads;
        let at = |field: &Field| format!("{}{}", place.path, path::field(&field.name));
        for field in old {
            match new.iter().find(|new| new.name == field.name) {
                None => {
                    let change = Change::Removed { required: field.required, new_strict };
                    self.changed_at(&at(field), new_reads, &change);
                }
                Some(new) => {
                    match (field.required, new.required) {
                        (false, true) => self.changed_at(&at(field), new_reads, &Change::NowRequired),
                        (true, false) => self.changed_at(&at(field), new_reads, &Change::NowOptional),
                        _ => {}
                    }
                    let pair = (given(field, new), given(new, field));
                    self.later(Place { pair, new_reads, path: at(field) });
                }
            }
        }
        for field in new.iter().filter(|new| !old.iter().any(|old| old.name == new.name)) {
            self.changed_at(&at(field), new_reads, &Change::Added { required: field.required, old_strict });
        }
        match (old_strict, new_strict) {
            (false, true) => self.changed(place, &Change::NowStrict),
            (true, false) => self.changed(place, &Change::NowLax),
            _ => {}
        }
    }

    fn inner(&mut self, place: &Place<'a>, (old, new): (&'a Schema, &'a Schema), step: &str) {
        let pair = (View::Schema(old), View::Schema(new));
        self.later(Place { pair, new_reads: place.new_reads, path: format!("{}{step}", place.path) });
    }

    /// Notes that the value now is of another type, which is breaking.
    fn other(&mut self, place: &Place<'a>, old: View<'a>, new: View<'a>) {
        self.breaking(&place.path, self.was(&shown(old), &shown(new)));
    }
}

/// The type of a field to compare. If only this field is optional, `null` is left out of its type: the finding that
/// one field is optional and the other is required already says as much.
fn given<'a>(field: &'a Field, other: &Field) -> View<'a> {
    match &field.schema.shape {
        Shape::Nullable(inner) if other.required && !field.required => View::Schema(inner),
        _ => View::Schema(&field.schema),
    }
}

fn identity(view: View<'_>) -> Identity {
    match view {
        View::Schema(schema) => (ptr::from_ref(schema).cast(), usize::MAX),
        View::Record { fields, .. } => (fields.as_ptr().cast(), fields.len()),
    }
}

/// A text by which a type of one union is found in another union: its kind, and for an object also its tags.
fn key(view: View<'_>) -> String {
    match view {
        View::Schema(schema) => match &schema.shape {
            Shape::Any => "any".into(),
            Shape::Constant(constant) => constant.to_string(),
            Shape::Integer { .. } => kind_of(&Shape::Number { minimum: None, maximum: None, format: None }),
            shape => kind_of(shape),
        },
        View::Record { fields, strict } => match fields {
            [only] if strict && only.required => format!("an object with {:?}", only.name),
            fields => {
                let tags = fields.iter().filter_map(|field| match &field.schema.shape {
                    Shape::Constant(Value::String(word)) if field.required => {
                        Some(format!(" {:?}: {word:?}", field.name))
                    }
                    _ => None,
                });
                std::iter::once("an object".to_owned()).chain(tags).collect()
            }
        },
    }
}

fn is_any(view: View<'_>) -> bool {
    matches!(view, View::Schema(Schema { shape: Shape::Any, .. }))
}

fn be(view: View<'_>) -> String {
    format!("be {}", if is_any(view) { "any value".into() } else { shown(view) })
}

/// A type as messages name it.
fn shown(view: View<'_>) -> String {
    match view {
        View::Schema(schema) => format!("`{}`", type_text(schema)),
        View::Record { fields, strict } => {
            format!("`{}`", type_text(&Shape::Record { fields: fields.to_vec(), strict }.into()))
        }
    }
}
