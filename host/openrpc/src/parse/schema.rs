//! Reads schemas from JSON.

use std::collections::HashSet;

use super::{
    DocumentError, MAX_ENTRIES,
    fields::{At, description, different, fault, flag, list, missing, object, text},
    keywords,
};
use crate::{Field, Json, Schema, Shape, Word, path::shown};

/// The most levels of a schema.
pub const MAX_SCHEMA_DEPTH: usize = 32;

/// The beginning of a reference to a type.
const REFERENCE: &str = "#/components/schemas/";

/// The types of a document that have names.
pub(super) struct Types<'a> {
    named: Vec<(&'a str, &'a Json)>,
    names: HashSet<&'a str>,
}

impl<'a> Types<'a> {
    pub(super) fn of(json: &'a Json) -> Result<Self, DocumentError> {
        let schemas = json.get("components").and_then(|components| components.get("schemas"));
        let named: Vec<(&str, &Json)> = match schemas {
            None => Vec::new(),
            Some(schemas) => {
                let schemas = object(schemas).at("schemas").at("components")?;
                schemas.iter().map(|(name, schema)| (&**name, schema)).collect()
            }
        };
        if named.len() > MAX_ENTRIES {
            return Err(fault!("has {} types, of at most {MAX_ENTRIES}", named.len())
                .at("schemas")
                .at("components"));
        }
        Ok(Self { names: named.iter().map(|(name, _)| *name).collect(), named })
    }

    pub(super) fn parsed(&self) -> Result<Vec<(String, Schema)>, DocumentError> {
        self.named
            .iter()
            .map(|(name, schema)| Ok(((*name).to_owned(), self.schema(schema).at(name)?)))
            .collect()
    }

    pub(super) fn schema(&self, json: &Json) -> Result<Schema, DocumentError> {
        self.below(json, MAX_SCHEMA_DEPTH)
    }

    /// Reads a schema that has at most this many levels.
    fn below(&self, json: &Json, levels: usize) -> Result<Schema, DocumentError> {
        let Some(levels) = levels.checked_sub(1) else {
            return Err(fault!("a schema has at most {MAX_SCHEMA_DEPTH} levels"));
        };
        match json {
            Json::Bool(true) => return Ok(Shape::Any.into()),
            Json::Bool(false) => return Ok(Shape::Never.into()),
            other => object(other)?,
        };
        let form = keywords::form(json)?;
        let shape = match form {
            "$ref" => self.reference(text(json, "$ref")?).at("$ref")?,
            "const" => json.get("const").map_or(Ok(Shape::Any), constant).at("const")?,
            "enum" => words(json).at("enum")?,
            "oneOf" | "anyOf" => self.alternatives(json, form, levels)?,
            _ => self.typed(json, levels)?,
        };
        Ok(Schema { description: description(json)?, shape })
    }

    fn reference(&self, to: &str) -> Result<Shape, DocumentError> {
        let name = to
            .strip_prefix(REFERENCE)
            .ok_or_else(|| fault!("`{}` does not begin with `{REFERENCE}`", shown(to)))?;
        // JSON pointers escape `/` and `~` like this.
        let name = name.replace("~1", "/").replace("~0", "~");
        if self.names.contains(&*name) {
            Ok(Shape::Named(name))
        } else {
            Err(fault!("there is no type `{}`", shown(&name)))
        }
    }

    fn alternatives(&self, json: &Json, form: &str, levels: usize) -> Result<Shape, DocumentError> {
        let mut options = list(json, form, |option| self.below(option, levels))?;
        let before = options.len();
        options.retain(|option| option.shape != Shape::Null);
        let nullable = options.len() < before;
        let open = flag(json, "x-open")?;
        if options.is_empty() && !open {
            return Ok(if nullable { Shape::Null } else { Shape::Never });
        }
        if !options.is_empty() && options.iter().all(is_word) {
            let words: Vec<Word> = options.into_iter().flat_map(into_words).collect();
            different(words.iter().map(|word| &*word.word)).at(form)?;
            return Ok(nullable_if(nullable, Shape::Words { words, open }));
        }
        match <[Schema; 1]>::try_from(options) {
            Ok([only]) if nullable && !open && is_nullable(&only) => Ok(only.shape),
            Ok([only]) if nullable && !open => Ok(Shape::Nullable(Box::new(only))),
            Ok(only) => Ok(nullable_if(nullable, Shape::OneOf { options: only.into(), open })),
            Err(options) => Ok(nullable_if(nullable, Shape::OneOf { options, open })),
        }
    }

    fn typed(&self, json: &Json, levels: usize) -> Result<Shape, DocumentError> {
        let (kind, nullable) = keywords::kind(json)?;
        let shape = match kind {
            "boolean" => Shape::Boolean,
            "null" => Shape::Null,
            "integer" | "number" | "string" => keywords::scalar(json, kind)?,
            "array" => self.array(json, levels)?,
            "object" => self.object(json, levels)?,
            _ => Shape::Any,
        };
        Ok(nullable_if(nullable, shape))
    }

    fn array(&self, json: &Json, levels: usize) -> Result<Shape, DocumentError> {
        let (min, max) = keywords::bounds(json, "minItems", "maxItems")?;
        if json.get("prefixItems").is_some() {
            let places = list(json, "prefixItems", |place| self.below(place, levels))?;
            let length = u64::try_from(places.len()).ok();
            let no_more = matches!(json.get("items"), Some(Json::Bool(false))) || max == length;
            if min != length || !no_more {
                return Err(fault!(
                    "needs `minItems` and `maxItems` of {}, as many as there are",
                    places.len()
                )
                .at("prefixItems"));
            }
            return Ok(Shape::Tuple(places));
        }
        let items =
            json.get("items").map_or(Ok(Shape::Any.into()), |items| self.below(items, levels)).at("items")?;
        Ok(Shape::List { items: Box::new(items), min, max, unique: flag(json, "uniqueItems")? })
    }

    fn object(&self, json: &Json, levels: usize) -> Result<Shape, DocumentError> {
        let rest = json.get("additionalProperties").map(|values| self.below(values, levels)).transpose();
        let rest = rest.at("additionalProperties")?;
        let strict = rest.as_ref().is_some_and(|values| values.shape == Shape::Never);
        let required = list(json, "required", |name| match name {
            Json::String(name) => Ok(name.clone()),
            other => Err(DocumentError::expected("a string", other)),
        })?;
        let named: HashSet<&str> = required.iter().map(String::as_str).collect();
        let Some(properties) = json.get("properties") else {
            if let Some(name) = required.first() {
                return Err(missing_property(name));
            }
            return Ok(match rest {
                Some(values) if !strict => Shape::Map(Box::new(values)),
                _ => Shape::Record { fields: Vec::new(), strict },
            });
        };
        let fields = object(properties).at("properties")?;
        let read = |(name, schema): &(String, Json)| {
            let mut schema = self.below(schema, levels).at(name)?;
            let description = std::mem::take(&mut schema.description);
            Ok(Field { name: name.clone(), description, required: named.contains(name.as_str()), schema })
        };
        let fields: Vec<Field> = fields.iter().map(read).collect::<Result<_, _>>().at("properties")?;
        let known: HashSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        if let Some(name) = required.iter().find(|name| !known.contains(name.as_str())) {
            return Err(missing_property(name));
        }
        // A type for fields that are not among the `properties` is read, but not kept: such fields may have any value.
        Ok(Shape::Record { fields, strict })
    }
}

fn missing_property(name: &str) -> DocumentError {
    fault!("`{}` is none of the `properties`", shown(name)).at("required")
}

fn constant(value: &Json) -> Result<Shape, DocumentError> {
    match value {
        Json::Null => Ok(Shape::Null),
        Json::Array(_) | Json::Object(_) => Err(fault!("must not be {}", value.kind())),
        other => Ok(Shape::Constant(other.clone().into())),
    }
}

/// Reads an `enum`. If all its values are strings, they become words, otherwise each becomes a type of its own.
fn words(json: &Json) -> Result<Shape, DocumentError> {
    let values = match json.get("enum") {
        Some(Json::Array(values)) if !values.is_empty() => values,
        Some(_) => return Err(DocumentError::new("must be a list of at least one value")),
        None => return Err(missing("enum")),
    };
    let open = flag(json, "x-open")?;
    let nullable = values.contains(&Json::Null);
    let values: Vec<&Json> = values.iter().filter(|value| **value != Json::Null).collect();
    let words: Option<Vec<Word>> = values
        .iter()
        .map(|value| Some(Word { word: value.as_str()?.into(), description: String::new() }))
        .collect();
    let shape = match words {
        _ if values.is_empty() => return Ok(Shape::Null),
        Some(words) => {
            different(words.iter().map(|word| &*word.word))?;
            Shape::Words { words, open }
        }
        None => {
            let options: Result<_, DocumentError> =
                values.into_iter().map(|value| Ok(constant(value)?.into())).collect();
            Shape::OneOf { options: options?, open }
        }
    };
    Ok(nullable_if(nullable, shape))
}

/// Whether the schema is one string, or a closed list of strings, so that it can become part of a longer list.
fn is_word(schema: &Schema) -> bool {
    match &schema.shape {
        Shape::Constant(value) => value.is_string(),
        Shape::Words { open, .. } => !open,
        _ => false,
    }
}

fn into_words(schema: Schema) -> Vec<Word> {
    let Schema { description, shape } = schema;
    match shape {
        Shape::Words { words, .. } => words,
        Shape::Constant(serde_json::Value::String(word)) => vec![Word { word, description }],
        _ => Vec::new(),
    }
}

fn nullable_if(nullable: bool, shape: Shape) -> Shape {
    let schema: Schema = shape.into();
    if nullable && !is_nullable(&schema) { Shape::Nullable(Box::new(schema)) } else { schema.shape }
}

fn is_nullable(schema: &Schema) -> bool {
    matches!(schema.shape, Shape::Null | Shape::Any | Shape::Nullable(_))
}
