//! Schemas as JSON Schema.

use serde_json::Number;

use super::Object;
use crate::{Field, Json, Schema, Shape, Word};

/// The schema as JSON.
pub(crate) fn schema(schema: &Schema) -> Json {
    described(schema, &schema.description)
}

/// The schema as JSON, with a description of its place.
fn described(schema: &Schema, description: &str) -> Json {
    let object = match &schema.shape {
        Shape::Any if description.is_empty() => return Json::Bool(true),
        Shape::Never if description.is_empty() => return Json::Bool(false),
        Shape::Nullable(inner) => return nullable(inner, description),
        shape => shape_of(shape),
    };
    object.with_text("description", description).into()
}

fn shape_of(shape: &Shape) -> Object {
    let object = Object::default();
    match shape {
        Shape::Any | Shape::Nullable(_) => object,
        // No value is one of none.
        Shape::Never => object.with("oneOf", Json::Array(Vec::new())),
        Shape::Null => object.with("type", "null"),
        Shape::Boolean => object.with("type", "boolean"),
        Shape::Integer { minimum, maximum, format } => object
            .with("type", "integer")
            .with_some("format", format.as_deref())
            .with_some("minimum", minimum.and_then(Number::from_i128).map(Json::Number))
            .with_some("maximum", maximum.and_then(Number::from_i128).map(Json::Number)),
        Shape::Number { minimum, maximum, format } => object
            .with("type", "number")
            .with_some("format", format.as_deref())
            .with_some("minimum", minimum.and_then(Number::from_f64).map(Json::Number))
            .with_some("maximum", maximum.and_then(Number::from_f64).map(Json::Number)),
        Shape::String { format, min_length, max_length } => object
            .with("type", "string")
            .with_some("format", format.as_deref())
            .with_some("minLength", min_length.map(count))
            .with_some("maxLength", max_length.map(count)),
        Shape::Constant(value) => {
            object.with_some("type", value.is_string().then_some("string")).with("const", value.clone())
        }
        Shape::Words { words, open } => words_of(words).with_flag("x-open", *open),
        Shape::List { items, min, max, unique } => object
            .with("type", "array")
            .with("items", schema(items))
            .with_some("minItems", min.map(count))
            .with_some("maxItems", max.map(count))
            .with_flag("uniqueItems", *unique),
        Shape::Tuple(places) => {
            let length = u64::try_from(places.len()).unwrap_or(u64::MAX);
            object
                .with("type", "array")
                .with("prefixItems", Json::Array(places.iter().map(schema).collect()))
                .with("minItems", count(length))
                .with("maxItems", count(length))
        }
        Shape::Map(values) => object.with("type", "object").with("additionalProperties", schema(values)),
        Shape::Record { fields, strict } => record(fields, *strict),
        Shape::OneOf { options, open } => {
            object.with("oneOf", Json::Array(options.iter().map(schema).collect())).with_flag("x-open", *open)
        }
        Shape::Named(name) => {
            let name = name.replace('~', "~0").replace('/', "~1");
            object.with("$ref", &*format!("#/components/schemas/{name}"))
        }
    }
}

/// `null` is written into the type where that has a place for it, so that what was read is written no deeper.
fn nullable(inner: &Schema, description: &str) -> Json {
    let mut json = schema(inner);
    if !(inner.description.is_empty() && take_null(&mut json, &inner.shape)) {
        let null = Object::default().with("type", "null").into();
        json = Object::default().with("anyOf", Json::Array(vec![json, null])).into();
    }
    match json {
        Json::Object(fields) => Object(fields).with_text("description", description).into(),
        other => other,
    }
}

fn take_null(json: &mut Json, shape: &Shape) -> bool {
    match shape {
        Shape::Constant(_) => return false,
        // With one option alone it would be read as that option.
        Shape::OneOf { options, open } if options.len() == 1 && !open => return false,
        _ => {}
    }
    if let Some(Json::Array(options)) = json.get_mut("oneOf") {
        options.push(Object::default().with("type", "null").into());
        return true;
    }
    if let Some(Json::Array(words)) = json.get_mut("enum") {
        words.push(Json::Null);
    }
    match json.get_mut("type") {
        Some(kind @ Json::String(_)) => {
            *kind = Json::Array(vec![kind.clone(), "null".into()]);
            true
        }
        _ => false,
    }
}

fn words_of(words: &[Word]) -> Object {
    if words.iter().all(|word| word.description.is_empty()) {
        let words = words.iter().map(|word| (&*word.word).into()).collect();
        return Object::default().with("type", "string").with("enum", Json::Array(words));
    }
    let option = |word: &Word| {
        Object::default()
            .with("type", "string")
            .with("const", &*word.word)
            .with_text("description", &word.description)
            .into()
    };
    Object::default().with("oneOf", Json::Array(words.iter().map(option).collect()))
}

fn record(fields: &[Field], strict: bool) -> Object {
    let object = Object::default().with("type", "object");
    let object = if fields.is_empty() {
        object
    } else {
        let property = |field: &Field| (field.name.clone(), described(&field.schema, &field.description));
        object.with("properties", Json::Object(fields.iter().map(property).collect()))
    };
    object
        .with_list(
            "required",
            fields.iter().filter(|field| field.required).map(|field| (&*field.name).into()),
        )
        .with_some("additionalProperties", strict.then_some(false))
}

fn count(number: u64) -> Json {
    Json::Number(number.into())
}
