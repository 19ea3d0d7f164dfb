//! Contracts as the extensions that serve them describe them.

use std::collections::BTreeSet;

use serde::Serialize;
use weir_names::{ContractName, ExtensionId};
use weir_openrpc::{Arguments, Document, Payload, Role, Schema, Shape};
use weir_supervisor::Roster;

use crate::peers::Session;

/// A contract as the component of its provider describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DescribedContract {
    /// The contract.
    pub contract: ContractName,
    /// The extension that serves it.
    pub provider: ExtensionId,
    /// What it says of the contract.
    pub document: Document,
}

/// What extensions with a loaded component describe of what they serve, in the order of the configuration.
pub(crate) fn described(roster: &Roster) -> Vec<DescribedContract> {
    let mut described = Vec::new();
    for unit in roster.listed() {
        let version = unit.version();
        // Copies run the same component.
        if version.config.copy_of.is_some() {
            continue;
        }
        let documents = version.program().map(|loaded| loaded.program.contracts()).unwrap_or_default();
        let is_served = |document: &Document| {
            document.role == Role::Provider && version.config.fulfills.contains(&document.contract)
        };
        described.extend(documents.into_iter().filter(is_served).map(|document| DescribedContract {
            contract: document.contract.clone(),
            provider: unit.id().clone(),
            document,
        }));
    }
    described
}

/// The part of a document that a program may reach; none if it may reach nothing of it.
pub(crate) fn reachable(
    mut document: Document,
    session: &Session,
    callable: &BTreeSet<(ContractName, String)>,
) -> Option<Document> {
    let Document { contract, methods, topics, queues, .. } = &mut document;
    methods.retain(|method| callable.contains(&(contract.clone(), method.name.clone())));
    topics.retain(|topic| session.may_subscribe(&topic.pattern).is_ok());
    queues.retain(|queue| session.client().queue(&queue.name).is_ok());
    let is_empty = methods.is_empty() && topics.is_empty() && queues.is_empty();
    drop_unused_types(&mut document);
    (!is_empty).then_some(document)
}

/// Else the types would tell what an app may not see.
fn drop_unused_types(document: &mut Document) {
    let mut open: Vec<&Schema> = Vec::new();
    for method in &document.methods {
        match &method.arguments {
            Arguments::Bytes => {}
            Arguments::Fields { fields, .. } => open.extend(fields.iter().map(|field| &field.schema)),
            Arguments::Value(schema) => open.push(schema),
        }
    }
    let results = document.methods.iter().map(|method| &method.result);
    let topics = document.topics.iter().map(|topic| &topic.payload);
    let jobs = document.queues.iter().map(|queue| &queue.job);
    open.extend(results.chain(topics).chain(jobs).filter_map(|payload| match payload {
        Payload::Bytes => None,
        Payload::Json { schema, .. } => Some(schema),
    }));
    let mut used = BTreeSet::new();
    while let Some(schema) = open.pop() {
        match &schema.shape {
            Shape::Named(name) if used.insert(name.clone()) => {
                open.extend(document.named(name));
            }
            Shape::List { items: inner, .. } | Shape::Map(inner) | Shape::Nullable(inner) => open.push(inner),
            Shape::Tuple(schemas) | Shape::OneOf { options: schemas, .. } => open.extend(schemas),
            Shape::Record { fields, .. } => open.extend(fields.iter().map(|field| &field.schema)),
            _ => {}
        }
    }
    document.types.retain(|(name, _)| used.contains(name));
}
