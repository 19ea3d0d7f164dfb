//! Several contracts in one document, for tools that know OpenRPC alone.

use std::collections::{HashMap, HashSet};

use crate::{
    Arguments, Document, Field, Json, Payload, Schema, Shape,
    write::{self, Object},
};

/// One OpenRPC document with all operations, topics and queues of `documents`. A type whose name another contract
/// has, too, is called by its contract as well.
#[must_use]
pub fn combined(documents: &[Document]) -> Json {
    let mut taken: HashSet<String> = HashSet::new();
    let documents: Vec<Document> = documents.iter().map(|document| renamed(document, &mut taken)).collect();
    let types = documents.iter().flat_map(write::types).collect();
    Object::default()
        .with("openrpc", write::OPENRPC)
        .with("info", Object::default().with("title", "contracts").with("version", "1"))
        .with("methods", Json::Array(documents.iter().flat_map(write::methods).collect()))
        .with_list("x-topics", documents.iter().flat_map(write::topics))
        .with_list("x-queues", documents.iter().flat_map(write::queues))
        .with_components(types)
        .into()
}

fn renamed(document: &Document, taken: &mut HashSet<String>) -> Document {
    let mut document = document.clone();
    let mut names: HashMap<String, String> = HashMap::new();
    for (name, _) in &mut document.types {
        let mut new = name.clone();
        if taken.contains(&new) {
            new = format!("{}.{name}", document.contract.as_str().replace('@', "."));
        }
        while !taken.insert(new.clone()) {
            new.push('_');
        }
        if new != *name {
            names.insert(std::mem::replace(name, new.clone()), new);
        }
    }
    if !names.is_empty() {
        rename(&mut document, &names);
    }
    document
}

fn rename(document: &mut Document, names: &HashMap<String, String>) {
    for method in &mut document.methods {
        match &mut method.arguments {
            Arguments::Bytes => {}
            Arguments::Fields { fields, .. } => rename_fields(fields, names),
            Arguments::Value(schema) => rename_schema(schema, names),
        }
        rename_payload(&mut method.result, names);
    }
    for topic in &mut document.topics {
        rename_payload(&mut topic.payload, names);
    }
    for queue in &mut document.queues {
        rename_payload(&mut queue.job, names);
    }
    for (_, schema) in &mut document.types {
        rename_schema(schema, names);
    }
}

fn rename_payload(payload: &mut Payload, names: &HashMap<String, String>) {
    if let Payload::Json { schema, .. } = payload {
        rename_schema(schema, names);
    }
}

fn rename_fields(fields: &mut [Field], names: &HashMap<String, String>) {
    for field in fields {
        rename_schema(&mut field.schema, names);
    }
}

fn rename_schema(schema: &mut Schema, names: &HashMap<String, String>) {
    match &mut schema.shape {
        Shape::Named(name) => {
            if let Some(new) = names.get(name) {
                name.clone_from(new);
            }
        }
        Shape::List { items: inner, .. } | Shape::Map(inner) | Shape::Nullable(inner) => {
            rename_schema(inner, names);
        }
        Shape::Tuple(inner) | Shape::OneOf { options: inner, .. } => {
            for schema in inner {
                rename_schema(schema, names);
            }
        }
        Shape::Record { fields, .. } => rename_fields(fields, names),
        _ => {}
    }
}
