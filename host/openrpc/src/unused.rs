//! A document without the types that nothing in it uses.

use std::collections::HashSet;

use crate::{Arguments, Document, Payload, Schema, Shape};

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
}
