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
    let head = json!({ "$schema": DRAFT, "title": "The operator's file of Weir" });
    // The schema begins with the members of `head`, for people who read it.
    let members = [head, table(keys, "")].into_iter().filter_map(|value| match value {
        Value::Object(members) => Some(members),
        _ => None,
    });
    members.flatten().collect()
}

/// A table with the keys below `path`, and no others.
fn table(keys: &[KnownKey], path: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys {
        let (table, name) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
        // An entry of a table with free names is no key.
        if table == path && name != NAME {
            required.extend(key.required.then_some(name));
            properties.insert(name.to_owned(), value(keys, key));
        }
    }
    let table = with(object(json!(false)), "properties", properties);
    if required.is_empty() { table } else { with(table, "required", required) }
}

fn value(keys: &[KnownKey], key: &KnownKey) -> Value {
    let table_of = || table(keys, &key.path);
    let entry = || table(keys, &format!("{}.{NAME}", key.path));
    let text = || json!({ "type": "string" });
    let pattern = |pattern| json!({ "type": "string", "pattern": pattern });
    let scalar = || json!({ "type": SCALARS });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let any_of = |schemas: [Value; 2]| json!({ "anyOf": schemas });
    let count = |from: &u64, to: &u64| json!({ "type": "integer", "minimum": from, "maximum": to });
    let value = match &key.shape {
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Count(range) => count(range.start(), range.end()),
        Shape::CountOr(range, word) => any_of([count(range.start(), range.end()), json!({ "const": word })]),
        Shape::Size(range) => any_of([count(range.start(), range.end()), pattern(SIZE)]),
        Shape::Time(_) => pattern(TIME),
        Shape::Share(_) => pattern(SHARE),
        Shape::Text(_) => text(),
        Shape::Choice(words) => json!({ "type": "string", "enum": words }),
        Shape::Texts(_) => list(text()),
        Shape::TextsAndTables(_) => list(any_of([text(), table_of()])),
        Shape::Values => object(scalar()),
        Shape::ValuesAndTables => object(any_of([scalar(), entry()])),
        Shape::Table => table_of(),
        Shape::Tables => list(table_of()),
        Shape::Named => object(entry()),
        Shape::NamedTexts(_) => object(json!({ "type": "array", "items": text(), "minItems": 1 })),
        Shape::NamedTextsAndTables(_) => object(any_of([text(), entry()])),
    };
    with(value, "description", description(key))
}

/// The object with a further member.
fn with(mut object: Value, name: &str, member: impl Into<Value>) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), member.into());
    }
    object
}

fn object(others: Value) -> Value {
    json!({ "type": "object", "additionalProperties": others })
}

/// The description of a key for an editor: what the key means, what its value must be, and its default or that it must
/// be set.
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
        // A link "below" points to another place of the page, so it is left out.
        match (label, before.strip_suffix(": ")) {
            ("below", Some(before)) => plain.push_str(before),
            _ => plain.extend([before, label]),
        }
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests;
