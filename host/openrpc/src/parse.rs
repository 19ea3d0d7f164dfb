//! Reads documents from text. Whatever this crate cannot represent is an error that names its place.

mod fields;
mod keywords;
mod schema;

use weir_names::{ContractName, Description, OperationName, QueueName, TopicPattern};

pub(crate) use self::fields::fault;
pub use self::{fields::DocumentError, schema::MAX_SCHEMA_DEPTH};
use self::{
    fields::{At, description, different, flag, list, missing, name, object, optional_text, text},
    schema::Types,
};
use crate::{
    Arguments, Document, ErrorCode, Field, Json, Method, Payload, Queue, Role, Schema, Topic, path::shown,
    types,
};

/// The name of the custom sections with documents.
pub const SECTION: &str = "weir:contracts";

/// The most bytes of documents in all custom sections of one component together.
pub const MAX_SECTION: usize = Description::MOST_BYTES;

/// The most documents of a component, counting those that are there twice.
pub const MAX_DOCUMENTS: usize = 64;

/// The most operations, topics and queues of a document, or of all documents of a component together. Also the most
/// types of one document.
pub const MAX_ENTRIES: usize = 1_000;

/// The most levels of JSON in a document.
pub const MAX_DEPTH: usize = 64;

/// The most bytes of a text outside a component, which is one document or a list of them, and may have several lines.
pub const MAX_DOCUMENT: usize = 1 << 20;

/// The JSON-RPC code of the provider's own errors.
pub(crate) const HANDLER_ERROR: i64 = -32010;

impl Document {
    /// The document in `text`.
    ///
    /// # Errors
    /// If the text is longer than [`MAX_DOCUMENT`], is no JSON, or is no description of a contract that this crate can
    /// represent within its bounds.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        Self::from_json(&json(text)?)
    }

    /// The document in `json`.
    ///
    /// # Errors
    /// If `json` is no description of a contract that this crate can represent within its bounds.
    pub fn from_json(json: &Json) -> Result<Self, DocumentError> {
        document(json).and_then(types::finite).map_err(DocumentError::at_root)
    }

    /// The documents in `text`: one, or a list of them.
    ///
    /// # Errors
    /// If the text is longer than [`MAX_DOCUMENT`], is no JSON, or one of the documents is no description of a contract
    /// that this crate can represent within its bounds.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, DocumentError> {
        match json(text)? {
            Json::Array(documents) => {
                let document = |(number, json)| Self::from_json(json).map_err(|error| error.on_line(number));
                (1..).zip(&documents).map(document).collect()
            }
            document => Self::from_json(&document).map(|document| vec![document]),
        }
    }

    /// The documents in the sections of one component, one on each line. A document that is there twice is returned
    /// once.
    ///
    /// # Errors
    /// If a bound is exceeded, the section is no UTF-8, a line is no document, or two documents differ in how the
    /// component serves one contract.
    pub fn parse_section(section: &[u8]) -> Result<Vec<Self>, DocumentError> {
        if section.len() > MAX_SECTION {
            return Err(fault!("the section takes {} bytes, of at most {MAX_SECTION}", section.len()));
        }
        let text =
            str::from_utf8(section).map_err(|error| fault!("byte {} is no UTF-8", error.valid_up_to()))?;
        let count = text.lines().count();
        if count > MAX_DOCUMENTS {
            return Err(fault!("it has {count} documents, of at most {MAX_DOCUMENTS}"));
        }
        let mut documents: Vec<Self> = Vec::new();
        let mut entries = 0;
        for (line, text) in (1..).zip(text.lines()) {
            let document = Self::parse(text).map_err(|error| error.on_line(line))?;
            entries += document.entries();
            if entries > MAX_ENTRIES {
                return Err(
                    fault!("it has more than {MAX_ENTRIES} operations, topics and queues").on_line(line)
                );
            }
            if documents.contains(&document) {
                continue;
            }
            let is_same = |other: &Self| other.contract == document.contract && other.role == Role::Provider;
            if document.role == Role::Provider && documents.iter().any(is_same) {
                return Err(
                    fault!("`{}` is described before, and differently", document.contract).on_line(line)
                );
            }
            documents.push(document);
        }
        Ok(documents)
    }

    fn entries(&self) -> usize {
        self.methods.len() + self.topics.len() + self.queues.len()
    }
}

fn json(text: &str) -> Result<Json, DocumentError> {
    if text.len() > MAX_DOCUMENT {
        return Err(fault!("it takes {} bytes, of at most {MAX_DOCUMENT}", text.len()));
    }
    serde_json::from_str(text).map_err(|error| DocumentError::not_json(&error))
}

fn document(json: &Json) -> Result<Document, DocumentError> {
    object(json)?;
    if !text(json, "openrpc")?.starts_with("1.") {
        return Err(DocumentError::new("must be `1.…`, the version of OpenRPC").at("openrpc"));
    }
    let types = Types::of(json)?;
    let info = json.get("info").ok_or_else(|| missing("info"))?;
    let document = Document {
        contract: name::<ContractName>(info, "title").at("info")?,
        description: description(info).at("info")?,
        role: role(json)?,
        export: json.get("x-export").map(|_| text(json, "x-export").map(ToOwned::to_owned)).transpose()?,
        methods: Vec::new(),
        topics: list(json, "x-topics", |json| topic(json, &types))?,
        queues: list(json, "x-queues", |json| queue(json, &types))?,
        types: types.parsed().at("schemas").at("components")?,
    };
    let methods = list(json, "methods", |json| method(json, &types, &document.contract))?;
    let document = Document { methods, ..document };
    if document.entries() > MAX_ENTRIES {
        return Err(fault!(
            "it has {} operations, topics and queues, of at most {MAX_ENTRIES}",
            document.entries()
        ));
    }
    different(document.methods.iter().map(|method| &*method.name)).at("methods")?;
    different(document.topics.iter().map(|topic| &*topic.pattern)).at("x-topics")?;
    different(document.queues.iter().map(|queue| &*queue.name)).at("x-queues")?;
    Ok(document)
}

fn role(json: &Json) -> Result<Role, DocumentError> {
    match json.get("x-role").map(|role| role.as_str().unwrap_or_default()) {
        None | Some("provider") => Ok(Role::Provider),
        Some("caller") => Ok(Role::Caller),
        Some(_) => Err(DocumentError::new("must be `provider` or `caller`").at("x-role")),
    }
}

fn method(json: &Json, types: &Types<'_>, contract: &ContractName) -> Result<Method, DocumentError> {
    let full = text(json, "name")?;
    let operation = full.strip_prefix(contract.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let operation =
        operation.ok_or_else(|| fault!("`{}` does not begin with `{contract}/`", shown(full)).at("name"))?;
    let operation: OperationName = operation.parse().map_err(DocumentError::new).at("name")?;
    let is_bytes = flag(json, "x-bytes")?;
    Ok(Method {
        description: description(json)?,
        arguments: if is_bytes { Arguments::Bytes } else { arguments(json, types, &operation)? },
        result: if is_bytes { Payload::Bytes } else { result(json, types)? },
        errors: list(json, "errors", error_code)?,
        name: operation.to_string(),
    })
}

fn arguments(json: &Json, types: &Types<'_>, operation: &OperationName) -> Result<Arguments, DocumentError> {
    let fields = list(json, "params", |json| parameter(json, types))?;
    if let Some(argument) = json.get("x-argument") {
        if !fields.is_empty() {
            return Err(DocumentError::new("must be empty beside `x-argument`").at("params"));
        }
        return Ok(Arguments::Value(types.schema(argument).at("x-argument")?));
    }
    different(fields.iter().map(|field| &*field.name)).at("params")?;
    let name = match json.get("x-arguments") {
        Some(_) => text(json, "x-arguments")?.to_owned(),
        None => type_name(operation.as_str()),
    };
    Ok(Arguments::Fields { name, strict: flag(json, "x-strict")?, fields })
}

/// The name for an argument type without a name in the document: `ListNetworks` for `list-networks`.
fn type_name(operation: &str) -> String {
    let words = operation.split(|character: char| !character.is_ascii_alphanumeric());
    words
        .flat_map(|word| {
            word.chars().take(1).map(|first| first.to_ascii_uppercase()).chain(word.chars().skip(1))
        })
        .collect()
}

fn parameter(json: &Json, types: &Types<'_>) -> Result<Field, DocumentError> {
    let schema = json.get("schema").ok_or_else(|| missing("schema"))?;
    let mut schema = types.schema(schema).at("schema")?;
    let own = std::mem::take(&mut schema.description);
    let description = description(json)?;
    Ok(Field {
        name: text(json, "name")?.to_owned(),
        description: if description.is_empty() { own } else { description },
        required: flag(json, "required")?,
        schema,
    })
}

fn result(json: &Json, types: &Types<'_>) -> Result<Payload, DocumentError> {
    let result = json.get("result").ok_or_else(|| missing("result"))?;
    let read = || {
        let schema = result.get("schema").ok_or_else(|| missing("schema"))?;
        let schema = types.schema(schema).at("schema")?;
        Ok(Payload::Json { name: text(result, "name")?.to_owned(), schema })
    };
    read().at("result")
}

fn error_code(json: &Json) -> Result<ErrorCode, DocumentError> {
    let code = match json.get("code") {
        Some(Json::Number(code)) => code.as_i64(),
        _ => None,
    };
    if code != Some(HANDLER_ERROR) {
        return Err(fault!("must be {HANDLER_ERROR}, the code of an error of the provider's own").at("code"));
    }
    let description = optional_text(json, "data")?.to_owned();
    Ok(ErrorCode { code: text(json, "message")?.to_owned(), description })
}

fn topic(json: &Json, types: &Types<'_>) -> Result<Topic, DocumentError> {
    Ok(Topic {
        pattern: name::<TopicPattern>(json, "name")?.to_string(),
        description: description(json)?,
        payload: payload(json, "payload", types)?,
    })
}

fn queue(json: &Json, types: &Types<'_>) -> Result<Queue, DocumentError> {
    Ok(Queue {
        name: name::<QueueName>(json, "name")?.to_string(),
        description: description(json)?,
        job: payload(json, "job", types)?,
    })
}

fn payload(json: &Json, key: &str, types: &Types<'_>) -> Result<Payload, DocumentError> {
    if flag(json, "x-bytes")? {
        return Ok(Payload::Bytes);
    }
    let schema: Schema = types.schema(json.get(key).ok_or_else(|| missing(key))?).at(key)?;
    Ok(Payload::Json { name: String::new(), schema })
}
