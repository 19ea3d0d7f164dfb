//! Contracts as the extensions that serve them describe them.

use std::collections::BTreeSet;

use serde::Serialize;
use weir_names::{ContractName, ExtensionId};
use weir_openrpc::{Document, Role};
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
    // Else the types would tell what an app may not see.
    document.drop_unused_types();
    (!is_empty).then_some(document)
}
