//! Documents as JSON, always in one form: what two documents say alike is written alike.

mod schema;

use serde::{Serialize, Serializer};
use serde_json::Number;

use self::schema::schema;
use crate::{
    Arguments, Document, ErrorCode, Field, Json, Method, Payload, Queue, Role, Topic, parse::HANDLER_ERROR,
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
            .with("methods", Json::Array(methods(self).collect()))
            .with_list("x-topics", topics(self))
            .with_list("x-queues", queues(self))
            .with_components(types(self).collect())
            .into()
    }

    /// The document as OpenRPC in one line, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        self.to_json().to_string()
    }
}

/// As OpenRPC.
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

    pub(crate) fn with_some(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn with_text(self, name: &str, text: &str) -> Self {
        self.with_some(name, (!text.is_empty()).then_some(text))
    }

    pub(crate) fn with_flag(self, name: &str, is_set: bool) -> Self {
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
