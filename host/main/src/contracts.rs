//! Contracts as those that serve them describe them.

use std::{collections::BTreeSet, fmt::Display};

use serde::Serialize;
use weir_bus::Error;
use weir_names::{ContractName, harmless};
use weir_openrpc::{Document, MAX_SECTION, Role};
use weir_supervisor::Roster;

use crate::peers::{Registry, Session};

/// A contract as its provider describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DescribedContract {
    /// The contract.
    pub contract: ContractName,
    /// The extension or peer that serves it.
    pub provider: String,
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
            provider: unit.id().to_string(),
            document,
        }));
    }
    described
}

/// What the sessions of peers describe of what they serve.
pub(crate) fn described_by_peers(registry: &Registry) -> Vec<DescribedContract> {
    let mut described = Vec::new();
    for (name, serves, contracts) in registry.described() {
        if !contracts.contracts.iter().any(|contract| serves.contains(contract)) {
            continue;
        }
        let documents = Document::parse_section(contracts.text.as_bytes()).unwrap_or_default();
        let served = documents.into_iter().filter(|document| serves.contains(&document.contract));
        described.extend(served.map(|document| DescribedContract {
            contract: document.contract.clone(),
            provider: name.to_string(),
            document,
        }));
    }
    described
}

/// What a session describes.
#[derive(Debug)]
pub(crate) struct PeerContracts {
    contracts: Vec<ContractName>,
    /// The documents, one a line.
    text: Box<str>,
}

/// The documents in the JSON of a peer, if it may serve all their contracts. Takes milliseconds.
pub(crate) fn of_peer(
    documents: &[u8],
    may_serve: impl Fn(&ContractName) -> Result<(), Error>,
) -> Result<PeerContracts, Error> {
    let malformed = |error: &dyn Display| Error::Invalid(format!("contracts: {}", harmless(error, 512)));
    if documents.len() > MAX_SECTION {
        let (bytes, allowed) = (documents.len() as u64, MAX_SECTION as u64);
        return Err(Error::TooLarge { bytes, allowed });
    }
    let text = str::from_utf8(documents).map_err(|error| malformed(&error))?;
    let documents = Document::parse_list(text).map_err(|error| malformed(&error))?;
    for document in &documents {
        if document.role != Role::Provider {
            return Err(malformed(&format_args!("`{}` is described as its callers do", document.contract)));
        }
        may_serve(&document.contract)?;
    }
    let text: String = documents.iter().map(|document| document.line() + "\n").collect();
    // The bounds of all together.
    Document::parse_section(text.as_bytes()).map_err(|error| malformed(&error))?;
    let contracts = documents.into_iter().map(|document| document.contract).collect();
    Ok(PeerContracts { contracts, text: text.into() })
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
