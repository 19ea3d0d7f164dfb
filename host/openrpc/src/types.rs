//! The types of whole documents: drops unused ones, refuses types that refer to nothing but themselves, and combines
//! the types of several contracts in one document.

use std::collections::{HashMap, HashSet};

use crate::{
    Arguments, Document, DocumentError, Field, Json, Payload, Schema, Shape,
    parse::fault,
    path::shown,
    write::{self, Object},
};

impl Document {
    /// Drops the types that no operation, topic or queue uses.
    pub fn drop_unused_types(&mut self) {
        let mut open: Vec<&Schema> = Vec::new();
        for method in &self.methods {
            match &method.arguments {
                Arguments::Bytes => {}
                Arguments::Fields { fields, .. } => open.extend(fields.iter().map(|field| &field.schema)),
                Arguments::Value(schema) => open.push(schema),
            }
        }
        let results = self.methods.iter().map(|method| &method.result);
        let topics = self.topics.iter().map(|topic| &topic.payload);
        let jobs = self.queues.iter().map(|queue| &queue.job);
        open.extend(results.chain(topics).chain(jobs).filter_map(|payload| match payload {
            Payload::Bytes => None,
            Payload::Json { schema, .. } => Some(schema),
        }));
        let mut used = HashSet::new();
        while let Some(schema) = open.pop() {
            match &schema.shape {
                Shape::Named(name) if used.insert(name.clone()) => open.extend(self.named(name)),
                Shape::List { items: inner, .. } | Shape::Map(inner) | Shape::Nullable(inner) => {
                    open.push(inner);
                }
                Shape::Tuple(schemas) | Shape::OneOf { options: schemas, .. } => open.extend(schemas),
                Shape::Record { fields, .. } => open.extend(fields.iter().map(|field| &field.schema)),
                _ => {}
            }
        }
        self.types.retain(|(name, _)| used.contains(name));
    }

    /// Gives fields and arguments `_` for `-` in their names. Cases of a choice that stand in it keep theirs.
    pub fn fields_in_snake_case(&mut self) {
        for method in &mut self.methods {
            match &mut method.arguments {
                Arguments::Bytes => {}
                Arguments::Fields { fields, .. } => fields.iter_mut().for_each(in_snake_case),
                Arguments::Value(schema) => fields_of(schema),
            }
            if let Payload::Json { schema, .. } = &mut method.result {
                fields_of(schema);
            }
        }
        self.types.iter_mut().for_each(|(_, schema)| fields_of(schema));
    }
}

fn in_snake_case(field: &mut Field) {
    field.name = field.name.replace('-', "_");
    fields_of(&mut field.schema);
}

fn fields_of(schema: &mut Schema) {
    match &mut schema.shape {
        Shape::List { items: inner, .. } | Shape::Map(inner) | Shape::Nullable(inner) => {
            fields_of(inner);
        }
        Shape::Tuple(inner) => inner.iter_mut().for_each(fields_of),
        Shape::OneOf { options, .. } => {
            for option in options {
                match &mut option.shape {
                    Shape::Record { fields, .. } => {
                        fields.iter_mut().for_each(|field| fields_of(&mut field.schema));
                    }
                    _ => fields_of(option),
                }
            }
        }
        Shape::Record { fields, .. } => fields.iter_mut().for_each(in_snake_case),
        _ => {}
    }
}

/// Refuses a document in which a type contains itself other than inside a list, a tuple, a map or a record, such as a
/// reference to itself or a choice of itself and another type.
pub(crate) fn finite(document: Document) -> Result<Document, DocumentError> {
    let mut known: HashSet<&str> = HashSet::new();
    for (name, _) in &document.types {
        let mut open = vec![Step::Into(name)];
        let mut within: HashSet<&str> = HashSet::new();
        while let Some(step) = open.pop() {
            let name = match step {
                Step::Out(name) => {
                    within.remove(name);
                    known.insert(name);
                    continue;
                }
                Step::Into(name) if known.contains(name) => continue,
                Step::Into(name) => name,
            };
            if !within.insert(name) {
                return Err(fault!("type `{}` consists of itself", shown(name))
                    .at("schemas")
                    .at("components"));
            }
            open.push(Step::Out(name));
            if let Some(schema) = document.named(name) {
                same_value(schema, &mut |name| open.push(Step::Into(name)));
            }
        }
    }
    Ok(document)
}

/// A step of the search for types that contain themselves: into a type of this name, or out of it again.
enum Step<'a> {
    Into(&'a str),
    Out(&'a str),
}

/// Calls `found` with the names of all types that a value of this schema itself may have, not only a value inside it.
fn same_value<'a>(schema: &'a Schema, found: &mut impl FnMut(&'a str)) {
    match &schema.shape {
        Shape::Named(name) => found(name),
        Shape::Nullable(inner) => same_value(inner, found),
        Shape::OneOf { options, .. } => {
            for option in options {
                same_value(option, found);
            }
        }
        _ => {}
    }
}

/// One OpenRPC document with all operations, topics and queues of `documents`. A type whose name an earlier
/// document has taken gets the name of its own contract in front, and `_` at the end until no other has its name.
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

/// A copy of the document, with other names for types whose names are in `taken`. Adds its names to `taken`.
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
