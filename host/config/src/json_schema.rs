//! A JSON Schema of the operator's file, for editors.
//!
//! Made of the keys that the readers ask for. Uses only keywords that draft 7
//! and draft 2020-12 share, because editors differ in what they know.

use serde_json::{Map, Value, json};

use super::{
    section::{KnownKey, NAME},
    shape::Shape,
};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A size as `Shape::number_in` reads it. Its range stands in the description.
const SIZE: &str = r"^[0-9.][0-9_.]*\s*[A-Za-z]*$";
const TIME: &str = r"^[0-9][0-9A-Za-zµ.\s]*$";
const SHARE: &str = r"^[0-9]+(\.[0-9]{1,2})?\s*%$";

/// What a file may write for a value that becomes a string.
const SCALARS: [&str; 3] = ["string", "number", "boolean"];

pub(super) fn json_schema(keys: &[KnownKey]) -> Value {
    let file = Keys(keys).table("");
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), DRAFT.into());
    schema.insert("title".to_owned(), "The operator's file of Weir".into());
    schema.extend(file);
    schema.into()
}

struct Keys<'k>(&'k [KnownKey]);

impl Keys<'_> {
    /// A table with the keys below `path`, and no others.
    fn table(&self, path: &str) -> Map<String, Value> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for key in self.0 {
            let (table, name) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
            // An entry of a table with free names is no key.
            if table != path || name == NAME {
                continue;
            }
            if key.required {
                required.push(Value::from(name));
            }
            properties.insert(name.to_owned(), self.value(key).into());
        }
        let mut table = object(json!(false));
        table.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            table.insert("required".to_owned(), required.into());
        }
        table
    }

    fn value(&self, key: &KnownKey) -> Map<String, Value> {
        let path = key.path.as_str();
        let table = || self.table(path);
        let entry = || self.table(&format!("{path}.{NAME}"));
        let mut value = match &key.shape {
            Shape::Flag => members(json!({ "type": "boolean" })),
            Shape::Count(range) => count(range.start(), range.end()),
            Shape::Size(range) => any_of([count(range.start(), range.end()), pattern(SIZE)]),
            Shape::Time(_) => pattern(TIME),
            Shape::Share(_) => pattern(SHARE),
            Shape::Text(_) => text(),
            Shape::Choice(words) => members(json!({ "type": "string", "enum": words })),
            Shape::Texts(_) => list(text()),
            Shape::TextsAndTables(_) => list(any_of([text(), table()])),
            Shape::Values => object(json!({ "type": SCALARS })),
            Shape::ValuesAndTables => object(any_of([members(json!({ "type": SCALARS })), entry()]).into()),
            Shape::Table => table(),
            Shape::Tables => list(table()),
            Shape::Named => object(entry().into()),
            Shape::NamedTexts(_) => {
                let mut texts = list(text());
                texts.insert("minItems".to_owned(), 1.into());
                object(texts.into())
            }
            Shape::NamedTextsAndTables(_) => object(any_of([text(), entry()]).into()),
        };
        value.insert("description".to_owned(), description(key).into());
        value
    }
}

/// What the key means, and what its value must be.
fn description(key: &KnownKey) -> String {
    let must_be = format!("Must be {}.", key.shape.with_example());
    let default = match &*key.default {
        "" => String::new(),
        _ if key.required => " It must be set.".to_owned(),
        default => format!(" Default: {}.", plain(default)),
    };
    format!("{} {must_be}{default}", plain(key.meaning)).trim_start().to_owned()
}

/// Markdown without links: their targets are not on the editor's page.
fn plain(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        let Some((before, label)) = before.rsplit_once('[') else { break };
        // "below" alone points to another place of the page.
        match (label, before.strip_suffix(": ")) {
            ("below", Some(before)) => plain.push_str(before),
            _ => plain.extend([before, label]),
        }
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn text() -> Map<String, Value> {
    members(json!({ "type": "string" }))
}

fn count(from: &u64, to: &u64) -> Map<String, Value> {
    members(json!({ "type": "integer", "minimum": from, "maximum": to }))
}

fn pattern(pattern: &str) -> Map<String, Value> {
    members(json!({ "type": "string", "pattern": pattern }))
}

fn list(items: Map<String, Value>) -> Map<String, Value> {
    members(json!({ "type": "array", "items": items }))
}

fn any_of(schemas: [Map<String, Value>; 2]) -> Map<String, Value> {
    members(json!({ "anyOf": schemas }))
}

fn object(others: Value) -> Map<String, Value> {
    members(json!({ "type": "object", "additionalProperties": others }))
}

fn members(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(members) => members,
        other => Map::from_iter([("const".to_owned(), other)]),
    }
}

#[cfg(test)]
mod tests;
