//! Collects the types with names that a contract refers to.

use super::{Definition, Described, Field, Schema};
use crate::json::{Writer, is_same};

/// The most types with names in one contract.
const MOST: usize = 256;

/// Types with names, each once, in the order of their first use.
pub(crate) struct Definitions {
    all: [Option<&'static Definition>; MOST],
    /// For the definitions before this place, the types that they refer to are in the list.
    followed: usize,
}

impl Definitions {
    pub(crate) const fn new() -> Self {
        Self { all: [None; MOST], followed: 0 }
    }

    /// Adds the types that a schema refers to, directly or through other types.
    ///
    /// # Panics
    /// If two different types have one name, or there are more than 256 types.
    pub(crate) const fn add(&mut self, schema: &'static Schema) {
        self.find(schema);
        // A loop instead of recursion: a constant may use only few stack frames.
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

    /// Writes the name of a type. If a generic type is in the list with several arguments, all but the first get a
    /// number.
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

    /// Adds the types with names that a schema contains, without those that these refer to.
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
            // The content is written in place, so only the types that it refers to are added.
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

    /// Adds a definition that is not in the list yet.
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

    /// Panics if another type in the list has this name.
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

/// Follows names to the schema that they stand for.
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

/// Whether two type arguments are the same. Types with a definition are compared by it, and others by their content.
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
