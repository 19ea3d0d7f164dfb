//! Types of a contract in Rust.

use std::collections::{HashMap, HashSet, VecDeque};

use weir_openrpc::{Document, Field, Payload, Schema, Shape};

use crate::{
    contract::word_of,
    names::{Scope, pascal},
    text::Code,
};

use super::{RESERVED, definitions, doc};

/// The type of the SDK for a record without fields.
pub(super) const EMPTY: &str = "weir_sdk::Empty";

/// Writes types, and knows their names.
pub(super) struct Types<'d> {
    pub(super) document: &'d Document,
    /// Whether types describe themselves, for extensions.
    pub(super) described: bool,
    names: HashMap<&'d str, String>,
    scope: Scope,
    /// Types without a name in the document, to be written after the one that they are in.
    waiting: VecDeque<Waiting>,
}

/// A type that is to be written.
struct Waiting {
    name: String,
    schema: Schema,
    inside: Option<String>,
}

/// Where a type stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    /// What the type is called there, should it need a name.
    pub(super) hint: &'p str,
    /// The named type that the type is within, if no list or map is between them.
    pub(super) inside: Option<&'p str>,
}

impl<'d> Types<'d> {
    pub(super) fn new(document: &'d Document, described: bool) -> Self {
        let mut scope = Scope::with(RESERVED);
        let names = document.types.iter().map(|(name, schema)| {
            let own =
                if described && is_empty(name, schema) { EMPTY.into() } else { scope.take(&pascal(name)) };
            (&**name, own)
        });
        let names = names.collect();
        Self { document, described, names, scope, waiting: VecDeque::new() }
    }

    /// Writes all types of the document.
    pub(super) fn write(&mut self, code: &mut Code) {
        let document = self.document;
        for (name, schema) in &document.types {
            let own = self.name(name);
            if own != EMPTY {
                definitions::write(self, code, &own, Some(name), schema);
                self.write_waiting(code);
            }
        }
    }

    /// Writes the types that wait to be written.
    pub(super) fn write_waiting(&mut self, code: &mut Code) {
        while let Some(Waiting { name, schema, inside }) = self.waiting.pop_front() {
            definitions::write(self, code, &name, inside.as_deref(), &schema);
        }
    }

    pub(super) fn name(&self, name: &str) -> String {
        self.names.get(name).cloned().unwrap_or_else(|| pascal(name))
    }

    /// Returns the type of a field, which may be absent.
    pub(super) fn of_field(&mut self, field: &Field, place: Place<'_>) -> String {
        match &field.schema.shape {
            Shape::Nullable(_) => self.of(&field.schema, place),
            _ if field.required => self.of(&field.schema, place),
            _ => format!("Option<{}>", self.of(&field.schema, place)),
        }
    }

    /// Returns the type of a payload. `bytes` is the type of one that is no JSON.
    pub(super) fn of_payload(&mut self, payload: &Payload, bytes: &str, hint: &str) -> String {
        match payload {
            Payload::Bytes => bytes.into(),
            Payload::Json { schema, .. } => self.of_hint(schema, hint),
        }
    }

    /// Returns the type of a schema that is within no named type.
    pub(super) fn of_hint(&mut self, schema: &Schema, hint: &str) -> String {
        self.of(schema, Place { hint, inside: None })
    }

    /// Returns the type of a schema.
    pub(super) fn of(&mut self, schema: &Schema, place: Place<'_>) -> String {
        let elsewhere = Place { inside: None, ..place };
        match &schema.shape {
            Shape::Any => "serde_json::Value".into(),
            Shape::Null => "()".into(),
            Shape::Boolean => "bool".into(),
            Shape::Integer { minimum, maximum, format } => {
                integer(format.as_deref(), *minimum, *maximum).into()
            }
            Shape::Number { format, .. } => {
                if format.as_deref() == Some("float") { "f32" } else { "f64" }.into()
            }
            Shape::String { min_length: Some(1), max_length: Some(1), .. } => "char".into(),
            Shape::String { .. } => "String".into(),
            Shape::Constant(value) if value.is_boolean() => "bool".into(),
            Shape::Constant(value) if value.is_i64() => "i64".into(),
            Shape::Constant(value) if value.is_u64() => "u64".into(),
            Shape::Constant(value) if value.is_f64() => "f64".into(),
            Shape::List { items, min: Some(min), max: Some(max), .. } if min == max && *max <= 32 => {
                format!("[{}; {max}]", self.of(items, place))
            }
            Shape::List { items, .. } => format!("Vec<{}>", self.of(items, elsewhere)),
            Shape::Tuple(places) => self.tuple(places, place),
            Shape::Map(values) => format!("BTreeMap<String, {}>", self.of(values, elsewhere)),
            Shape::Nullable(inner) => format!("Option<{}>", self.of(inner, place)),
            Shape::Named(name) => self.named(name, place),
            Shape::Never
            | Shape::Constant(_)
            | Shape::Words { .. }
            | Shape::Record { .. }
            | Shape::OneOf { .. } => {
                let name = self.scope.take(&pascal(place.hint));
                let (schema, inside) = (schema.clone(), place.inside.map(str::to_owned));
                self.waiting.push_back(Waiting { name: name.clone(), schema, inside });
                name
            }
        }
    }

    fn tuple(&mut self, places: &[Schema], place: Place<'_>) -> String {
        match places {
            // serde has no tuples with more than 16 places, and none without a place.
            [] => "[(); 0]".into(),
            _ if places.len() > 16 => "Vec<serde_json::Value>".into(),
            [only] => format!("({},)", self.of(only, place)),
            places => {
                let places: Vec<String> = places.iter().map(|schema| self.of(schema, place)).collect();
                format!("({})", places.join(", "))
            }
        }
    }

    /// Returns the name of a type, in a `Box` where the type would contain itself.
    fn named(&self, name: &str, place: Place<'_>) -> String {
        let own = self.name(name);
        let contains = |inside: &str| {
            let to = self.document.named(name);
            name == inside || to.is_some_and(|to| leads_to(self.document, to, inside, Way::Inside))
        };
        if place.inside.is_some_and(contains) { format!("Box<{own}>") } else { own }
    }

    /// Writes what stands before a type, with further traits that it derives.
    pub(super) fn derive(&self, code: &mut Code, description: &str, more: &[&str]) {
        doc(code, description);
        let traits =
            ["Clone", "Copy", "Debug", "Default", "PartialEq", "Eq", "Hash", "Serialize", "Deserialize"];
        let optional = ["Copy", "Default", "Eq", "Hash"];
        let mut traits: Vec<&str> =
            traits.into_iter().filter(|name| !optional.contains(name) || more.contains(name)).collect();
        if self.described {
            traits.push("weir_sdk::Shape");
        }
        code.line(format!("#[derive({})]", traits.join(", ")));
    }
}

/// Whether the type is the SDK's own `Empty`.
fn is_empty(name: &str, schema: &Schema) -> bool {
    name == "Empty" && matches!(&schema.shape, Shape::Record { fields, strict: false } if fields.is_empty())
}

fn integer(format: Option<&str>, minimum: Option<i128>, maximum: Option<i128>) -> &'static str {
    match format {
        Some("int8") => "i8",
        Some("int16") => "i16",
        Some("int32") => "i32",
        Some("int64" | "int") => "i64",
        Some("int128") => "i128",
        Some("uint8") => "u8",
        Some("uint16") => "u16",
        Some("uint32") => "u32",
        Some("uint64" | "uint") => "u64",
        Some("uint128") => "u128",
        _ if minimum.is_some_and(|minimum| minimum >= 0) => "u64",
        _ if maximum.is_some_and(|maximum| maximum > i64::MAX.into()) => "i128",
        _ => "i64",
    }
}

/// Returns a name for a possibility of a type, by what it is.
pub(super) fn kind(schema: &Schema) -> String {
    if let Some(word) = word_of(schema) {
        return pascal(word);
    }
    match &schema.shape {
        Shape::Any => "Any".into(),
        Shape::Never => "Never".into(),
        Shape::Null => "Null".into(),
        Shape::Boolean => "Boolean".into(),
        Shape::Integer { .. } => "Integer".into(),
        Shape::Number { .. } => "Number".into(),
        Shape::String { .. } => "Text".into(),
        Shape::Constant(value) => pascal(&format!("value {value}")),
        Shape::Words { .. } => "Word".into(),
        Shape::List { items, .. } => format!("{}List", kind(items)),
        Shape::Tuple(_) => "Tuple".into(),
        Shape::Map(values) => format!("{}Map", kind(values)),
        Shape::Record { .. } => "Object".into(),
        Shape::OneOf { .. } => "Other".into(),
        Shape::Nullable(inner) => kind(inner),
        Shape::Named(name) => pascal(name),
    }
}

/// What leads from one type to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A value lies within another one. Lists and maps hold theirs elsewhere.
    Inside,
    /// A type is only a name for another one, or for a list or map of it.
    Alias,
}

/// Whether a type leads to the type named `to`.
pub(super) fn leads_to(document: &Document, from: &Schema, to: &str, way: Way) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![from];
    while let Some(schema) = open.pop() {
        match &schema.shape {
            Shape::Named(name) if name == to => return true,
            Shape::Named(name) => {
                if seen.insert(&**name)
                    && let Some(schema) = document.named(name)
                {
                    open.push(schema);
                }
            }
            Shape::Nullable(inner) => open.push(inner),
            Shape::Tuple(places) => open.extend(places),
            Shape::List { items: inner, .. } | Shape::Map(inner) if way == Way::Alias => open.push(inner),
            // An array holds its items itself, unlike a list.
            Shape::List { items: inner, min, max, .. } if min.is_some() && min == max => open.push(inner),
            Shape::Record { fields, .. } if way == Way::Inside => {
                open.extend(fields.iter().map(|field| &field.schema));
            }
            Shape::OneOf { options, .. } if way == Way::Inside => open.extend(options),
            _ => {}
        }
    }
    false
}
