//! Writes documents as JSON. Documents that say the same are written in the same form.

use serde::{Serialize, Serializer};
use serde_json::Number;

use crate::{
    Arguments, Document, ErrorCode, Field, Json, Method, Payload, Queue, Role, Schema, Shape, Topic, Word,
    parse::HANDLER_ERROR,
};

/// The version of OpenRPC that is written.
pub(crate) const OPENRPC: &str = "1.3.2";

impl Document {
    /// The document as OpenRPC.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let contract = self.contract.as_str();
        let version = contract.split_once('@').map_or("", |(_, version)| version);
        let info = Object::default()
            .with("title", contract)
            .with("version", version)
            .with_text("description", &self.description);
        let role = match self.role {
            Role::Provider => "provider",
            Role::Caller => "caller",
        };
        Object::default()
            .with("openrpc", OPENRPC)
            .with("info", info)
            .with("x-role", role)
            .with_some("x-export", self.export.as_deref())
            .with("methods", Json::Array(methods(self).collect()))
            .with_list("x-topics", topics(self))
            .with_list("x-queues", queues(self))
            .with_components(types(self).collect())
            .into()
    }

    /// The document as OpenRPC on one line, without a line end.
    #[must_use]
    pub fn line(&self) -> String {
        self.to_json().to_string()
    }
}

/// Serializes the document as OpenRPC.
impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

pub(crate) fn methods(document: &Document) -> impl Iterator<Item = Json> {
    document.methods.iter().map(|method| write_method(document.contract.as_str(), method))
}

pub(crate) fn topics(document: &Document) -> impl Iterator<Item = Json> {
    document.topics.iter().map(topic)
}

pub(crate) fn queues(document: &Document) -> impl Iterator<Item = Json> {
    document.queues.iter().map(queue)
}

pub(crate) fn types(document: &Document) -> impl Iterator<Item = (String, Json)> {
    document.types.iter().map(|(name, named)| (name.clone(), schema(named)))
}

fn write_method(contract: &str, method: &Method) -> Json {
    let object = Object::default()
        .with("name", &*format!("{contract}/{}", method.name))
        .with_text("description", &method.description);
    let object = match &method.arguments {
        Arguments::Bytes => object.with("x-bytes", true).with("params", Json::Array(Vec::new())),
        Arguments::Value(argument) => {
            object.with("params", Json::Array(Vec::new())).with("x-argument", schema(argument))
        }
        Arguments::Fields { name, strict, fields } => object
            .with("paramStructure", "by-name")
            .with("x-arguments", &**name)
            .with_flag("x-strict", *strict)
            .with("params", Json::Array(fields.iter().map(parameter).collect())),
    };
    let result = match &method.result {
        Payload::Bytes => Object::default().with("name", "bytes").with("schema", Json::Object(Vec::new())),
        Payload::Json { name, schema: result } => {
            Object::default().with("name", &**name).with("schema", schema(result))
        }
    };
    object.with("result", result).with_list("errors", method.errors.iter().map(error_code)).into()
}

fn parameter(field: &Field) -> Json {
    Object::default()
        .with("name", &*field.name)
        .with_text("description", &field.description)
        .with_flag("required", field.required)
        .with("schema", schema(&field.schema))
        .into()
}

fn error_code(error: &ErrorCode) -> Json {
    Object::default()
        .with("code", Json::Number(Number::from(HANDLER_ERROR)))
        .with("message", &*error.code)
        .with_text("data", &error.description)
        .into()
}

fn topic(topic: &Topic) -> Json {
    Object::default()
        .with("name", &*topic.pattern)
        .with_text("description", &topic.description)
        .with_payload("payload", &topic.payload)
        .into()
}

fn queue(queue: &Queue) -> Json {
    Object::default()
        .with("name", &*queue.name)
        .with_text("description", &queue.description)
        .with_payload("job", &queue.job)
        .into()
}

/// An object that is being written.
#[derive(Default)]
pub(crate) struct Object(Vec<(String, Json)>);

impl Object {
    pub(crate) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    fn with_some(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    fn with_text(self, name: &str, text: &str) -> Self {
        self.with_some(name, (!text.is_empty()).then_some(text))
    }

    fn with_flag(self, name: &str, is_set: bool) -> Self {
        self.with_some(name, is_set.then_some(true))
    }

    pub(crate) fn with_list(self, name: &str, values: impl Iterator<Item = Json>) -> Self {
        let values: Vec<Json> = values.collect();
        self.with_some(name, (!values.is_empty()).then_some(Json::Array(values)))
    }

    pub(crate) fn with_components(self, schemas: Vec<(String, Json)>) -> Self {
        let components =
            (!schemas.is_empty()).then(|| Object::default().with("schemas", Json::Object(schemas)));
        self.with_some("components", components)
    }

    fn with_payload(self, name: &str, payload: &Payload) -> Self {
        match payload {
            Payload::Bytes => self.with("x-bytes", true),
            Payload::Json { schema: payload, .. } => self.with(name, schema(payload)),
        }
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

/// The schema as JSON.
fn schema(schema: &Schema) -> Json {
    described(schema, &schema.description)
}

/// The schema as JSON, with this description instead of its own.
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
        // A choice of no options fits no value.
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

/// The schema of a type that may be `null`. Where the type's own JSON can list `null`, it does, so that a document is
/// not written deeper than it was read. Otherwise the type becomes a choice of itself and `null`.
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

/// Lists `null` in the JSON of a type. Returns `false` if that JSON has no place for it.
fn take_null(json: &mut Json, shape: &Shape) -> bool {
    match shape {
        Shape::Constant(_) => return false,
        // A single option would be read as that option itself, not as a choice.
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

/// A list of strings: an `enum`, or a choice of constants if one of the strings has a description.
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
