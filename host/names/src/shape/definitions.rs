//! The types with names that a contract refers to.

use super::{Definition, Described, Field, Schema};
use crate::json::{Writer, is_same};

/// The most types with names in one contract.
const MOST: usize = 256;

/// Types with names, each once, in the order of their first use.
pub(crate) struct Definitions {
    all: [Option<&'static Definition>; MOST],
    /// Those before this place have their own types in the list.
    followed: usize,
}

impl Definitions {
    pub(crate) const fn new() -> Self {
        Self { all: [None; MOST], followed: 0 }
    }

    /// Adds what a schema refers to, and what that refers to.
    ///
    /// # Panics
    /// If two different types have one name.
    pub(crate) const fn add(&mut self, schema: &'static Schema) {
        self.find(schema);
        // Not by recursion: a constant has few stack frames.
        while let Some(definition) = self.get(self.followed) {
            self.followed += 1;
            self.find(definition.schema);
        }
    }

    pub(crate) const fn add_fields(&mut self, fields: &'static [Field]) {
        each!(field in fields => {
            self.add(field.schema);
        });
    }

    pub(crate) const fn get(&self, place: usize) -> Option<&'static Definition> {
        match self.all.split_at_checked(place) {
            Some((_, [Some(definition), ..])) => Some(*definition),
            _ => None,
        }
    }

    /// Writes the name of a type. Of a generic type that is there with several arguments, all but the first are
    /// numbered.
    pub(crate) const fn write_name(&self, json: &mut Writer<'_>, definition: &Definition) {
        json.text(definition.name);
        if definition.arguments.is_empty() {
            return;
        }
        let mut number = 1;
        let mut rest: &[_] = &self.all;
        while let [Some(other), tail @ ..] = rest
            && !is_same_type(other, definition)
        {
            if other.id == definition.id {
                number += 1;
            }
            rest = tail;
        }
        if number > 1 {
            json.number(number);
        }
    }

    const fn find(&mut self, schema: &'static Schema) {
        match schema {
            Schema::Any | Schema::Simple { .. } | Schema::Word(_) | Schema::Words { .. } => {}
            Schema::Nullable(inner)
            | Schema::List(inner)
            | Schema::Set(inner)
            | Schema::Array(inner, _)
            | Schema::Map(inner) => self.find(inner),
            Schema::Tuple(options) | Schema::OneOf { options, .. } => self.find_all(options),
            Schema::Record { fields, .. } => self.find_fields(fields),
            // Its content is written in place.
            Schema::Tagged { content, .. } => self.find(in_place(content)),
            Schema::Named(reference) => self.push(reference.get()),
        }
    }

    const fn find_all(&mut self, options: &'static [Described]) {
        each!(option in options => {
            self.find(option.schema);
        });
    }

    const fn find_fields(&mut self, fields: &'static [Field]) {
        each!(field in fields => {
            self.find(field.schema);
        });
    }

    const fn push(&mut self, definition: &'static Definition) {
        let mut rest: &mut [_] = &mut self.all;
        while let [Some(other), tail @ ..] = rest {
            if is_same_type(other, definition) {
                return;
            }
            rest = tail;
        }
        let [place, ..] = rest else { panic!("a contract describes more than 256 types") };
        *place = Some(definition);
        self.refuse_twins(definition);
    }

    const fn refuse_twins(&self, definition: &Definition) {
        let mut rest: &[_] = &self.all;
        while let [Some(other), tail @ ..] = rest {
            if other.id != definition.id && is_same(other.name, definition.name) {
                two_types_named(definition.name);
            }
            rest = tail;
        }
    }
}

/// The schema behind names.
pub(crate) const fn in_place(schema: &'static Schema) -> &'static Schema {
    let mut schema = schema;
    while let Schema::Named(reference) = schema {
        schema = reference.get().schema;
    }
    schema
}

const fn is_same_type(a: &Definition, b: &Definition) -> bool {
    if a.id != b.id {
        return false;
    }
    let (mut a, mut b) = (a.arguments, b.arguments);
    while let ([a_first, a_rest @ ..], [b_first, b_rest @ ..]) = (a, b) {
        if !is_same_argument(a_first, b_first) {
            return false;
        }
        (a, b) = (a_rest, b_rest);
    }
    true
}

/// Compares type arguments. Only types without a definition of their own are looked into.
const fn is_same_argument(a: &Schema, b: &Schema) -> bool {
    match (a, b) {
        (Schema::Any, Schema::Any) => true,
        (Schema::Simple { kind, keywords }, Schema::Simple { kind: other, keywords: others }) => {
            is_same(kind, other) && is_same(keywords, others)
        }
        (Schema::Nullable(a), Schema::Nullable(b))
        | (Schema::List(a), Schema::List(b))
        | (Schema::Set(a), Schema::Set(b))
        | (Schema::Map(a), Schema::Map(b)) => is_same_argument(a, b),
        (Schema::Array(a, length), Schema::Array(b, other)) => *length == *other && is_same_argument(a, b),
        (Schema::Tuple(a), Schema::Tuple(b)) => {
            let (mut a, mut b) = (*a, *b);
            while let ([a_first, a_rest @ ..], [b_first, b_rest @ ..]) = (a, b) {
                if !is_same_argument(a_first.schema, b_first.schema) {
                    return false;
                }
                (a, b) = (a_rest, b_rest);
            }
            a.is_empty() && b.is_empty()
        }
        (Schema::Named(a), Schema::Named(b)) => is_same_type(a.get(), b.get()),
        _ => false,
    }
}

const fn two_types_named(name: &str) -> ! {
    let mut buffer = [b' '; 256];
    let mut message = Writer::new(&mut buffer);
    message.text("two types of this contract are named `");
    message.text(name);
    message.text("`: rename one with `#[serde(rename = \"Name\")]`");
    match std::str::from_utf8(buffer.trim_ascii_end()) {
        Ok(message) => panic!("{}", message),
        Err(_) => panic!("two types of this contract have one name"),
    }
}
