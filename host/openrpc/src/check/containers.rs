//! Judges lists and objects by all types that they may have.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::{
    Unknown,
    fault::Fault,
    judge::{Faults, Judge, inner, note},
    scalar::{count_fault, kind_of},
    union::View,
};
use crate::{
    Field, Schema, Shape,
    path::{alternatives, shown},
};

/// The most fields of a type whose names are listed in a message. If there are more, the message lists none.
const MAX_SHOWN: usize = 12;

impl<'a> Judge<'a> {
    /// What is wrong with a list, for each type.
    pub(super) fn list<'de, A: SeqAccess<'de>>(
        &self,
        all: &[View<'a>],
        mut list: A,
    ) -> Result<Faults, A::Error> {
        let mut faults: Faults = all.iter().map(not_a_list).collect();
        let mut length = 0;
        loop {
            let (owners, values) = inner(self, all, &faults, |view| item(view, length));
            if owners.is_empty() {
                if list.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
            } else {
                let Some(found) = list.next_element_seed(values)? else { break };
                note(&mut faults, &owners, found, |fault| fault.at_index(length));
            }
            length += 1;
        }
        for (view, fault) in all.iter().zip(&mut faults).filter(|(_, fault)| fault.is_none()) {
            *fault = length_fault(view, length);
        }
        Ok(faults)
    }

    /// What is wrong with an object, for each type.
    pub(super) fn object<'de, A: MapAccess<'de>>(
        &self,
        all: &[View<'a>],
        mut object: A,
    ) -> Result<Faults, A::Error> {
        let mut faults: Faults = all.iter().map(not_an_object).collect();
        let mut seen: Vec<Seen<'a>> = all.iter().map(Seen::of).collect();
        let is_alone = all.len() == 1;
        // Each name is looked for among the fields of all types. Comparing eight names takes as long as a step.
        let steps = seen.iter().map(|seen| seen.fields.len()).sum::<usize>() / 8;
        while let Some(name) = object.next_key::<String>()? {
            self.take_steps(steps)?;
            for (fault, seen) in faults.iter_mut().zip(&mut seen).filter(|(fault, _)| fault.is_none()) {
                *fault = seen.see(&name, self.unknown, is_alone);
            }
            let (owners, values) = inner(self, all, &faults, |view| field(view, &name));
            if owners.is_empty() {
                object.next_value::<IgnoredAny>()?;
            } else {
                let found = object.next_value_seed(values)?;
                note(&mut faults, &owners, found, |fault| fault.in_field(&name));
            }
        }
        for (fault, seen) in faults.iter_mut().zip(&seen).filter(|(fault, _)| fault.is_none()) {
            *fault = seen.missing();
        }
        Ok(faults)
    }
}

/// The type of the value at this place of a list.
fn item<'a>(view: &View<'a>, index: usize) -> Option<&'a Schema> {
    match view {
        View::Schema(Schema { shape: Shape::List { items, .. }, .. }) => Some(items),
        View::Schema(Schema { shape: Shape::Tuple(places), .. }) => places.get(index),
        _ => None,
    }
}

/// The type of the value in this field of an object.
fn field<'a>(view: &View<'a>, name: &str) -> Option<&'a Schema> {
    match view {
        View::Schema(Schema { shape: Shape::Map(values), .. }) => Some(values),
        View::Record { fields, .. } => {
            fields.iter().find_map(|field| (field.name == name).then_some(&field.schema))
        }
        View::Schema(_) => None,
    }
}

fn not_a_list(view: &View<'_>) -> Option<Fault> {
    match view {
        View::Schema(Schema { shape: Shape::Any | Shape::List { .. } | Shape::Tuple(_), .. }) => None,
        view => Some(wrong(view, "an array")),
    }
}

fn not_an_object(view: &View<'_>) -> Option<Fault> {
    match view {
        View::Record { .. } | View::Schema(Schema { shape: Shape::Any | Shape::Map(_), .. }) => None,
        view => Some(wrong(view, "an object")),
    }
}

fn wrong(view: &View<'_>, found: &str) -> Fault {
    match view {
        View::Record { .. } => Fault::other("an object", found),
        View::Schema(schema) => Fault::other(kind_of(&schema.shape), found),
    }
}

fn length_fault(view: &View<'_>, length: usize) -> Option<Fault> {
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    match view {
        View::Schema(Schema { shape: Shape::List { min, max, .. }, .. }) => {
            count_fault(count(length), *min, *max, "value")
        }
        View::Schema(Schema { shape: Shape::Tuple(places), .. }) => {
            let places = Some(count(places.len()));
            count_fault(count(length), places, places, "value")
        }
        _ => None,
    }
}

/// The fields of an object type, and which of them an object has had so far.
struct Seen<'a> {
    fields: &'a [Field],
    strict: bool,
    is_record: bool,
    seen: Vec<bool>,
    /// The first field of the object without a description. It may be a required field, misspelt.
    unknown: Option<String>,
}

impl<'a> Seen<'a> {
    fn of(view: &View<'a>) -> Self {
        let (fields, strict, is_record) = match view {
            View::Record { fields, strict } => (*fields, *strict, true),
            View::Schema(_) => (&[][..], false, false),
        };
        Self { fields, strict, is_record, seen: vec![false; fields.len()], unknown: None }
    }

    /// Notes a field of the object, and returns what is wrong with it, if anything.
    fn see(&mut self, name: &str, unknown: Unknown, is_alone: bool) -> Option<Fault> {
        if !self.is_record {
            return None;
        }
        let place = self.fields.iter().position(|field| field.name == name);
        if let Some(seen) = place.and_then(|place| self.seen.get_mut(place)) {
            return std::mem::replace(seen, true).then(|| Fault::message("is there twice").in_field(name));
        }
        if !self.strict && unknown == Unknown::Ignored {
            self.unknown.get_or_insert_with(|| name.into());
            return None;
        }
        // In a union, a strict object with one field is a variant of a Rust enum: the field's name tells which one.
        if let ([only], true) = (self.fields, self.strict && !is_alone) {
            let with = |name: &str| format!("an object with `{}`", shown(name));
            return Some(Fault::tag(vec![with(&only.name)], with(name)));
        }
        Some(Fault::message(format!("is unknown{}", self.known(name))).in_field(name))
    }

    /// The end of a message about an unknown field: the name that was probably meant, otherwise the known names, unless
    /// there are more than [`MAX_SHOWN`].
    fn known(&self, name: &str) -> String {
        let names = self.fields.iter().map(|field| &*field.name);
        if let Some(nearest) = nearest(name, names.clone()) {
            return format!(": did you mean `{}`?", shown(nearest));
        }
        let names: Vec<String> = names.take(MAX_SHOWN).map(|name| format!("`{}`", shown(name))).collect();
        match &*names {
            [] => ": there are no fields".into(),
            names if names.len() < self.fields.len() => String::new(),
            names => format!(": known are {}", alternatives(names, "and")),
        }
    }

    /// The fault of an object that lacks a required field.
    fn missing(&self) -> Option<Fault> {
        let (field, _) =
            self.fields.iter().zip(&self.seen).find(|(field, seen)| field.required && !**seen)?;
        let name = shown(&field.name);
        let misspelt = self.unknown.as_deref().filter(|unknown| nearest(unknown, [&*field.name]).is_some());
        Some(Fault::message(match misspelt {
            Some(unknown) => format!("has no `{name}`, but an unknown `{}`", shown(unknown)),
            None => format!("has no `{name}`"),
        }))
    }
}

/// The known name that a misspelt name is most like, if one is close enough.
#[must_use]
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // A long `name` is cut, and long known names are left out, because they cost too much to compare.
    let name: &str = name.get(..name.floor_char_boundary(128)).unwrap_or_default();
    let distance = |known: &str| strsim::damerau_levenshtein(name, known);
    let close = |known: &str| distance(known) <= 1 + known.chars().count().min(name.chars().count()) / 4;
    known.into_iter().filter(|known| known.len() <= 128 && close(known)).min_by_key(|known| distance(known))
}
