//! Contracts as those that serve them describe them.

use std::{collections::BTreeSet, fmt::Display, iter, sync::Arc};

use serde::Serialize;
use weir_bus::{Error, Peer};
use weir_names::{ContractName, MAIN, harmless};
use weir_openrpc::{Descriptions, Document, MAX_SECTION, Role};
use weir_supervisor::Unit;

use crate::{control::Control, peers::Session};

/// A contract as its provider describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DescribedContract {
    /// The contract.
    pub contract: ContractName,
    /// The extension or peer that serves it, or `main`.
    pub provider: String,
    /// What it says of the contract.
    pub document: Document,
}

/// What an extension, a peer or Main serves, and what it describes of that.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) serves: Vec<ContractName>,
    pub(crate) descriptions: Arc<Descriptions>,
}

impl Provider {
    /// The described contracts that the provider serves.
    pub(crate) fn contracts(self) -> impl Iterator<Item = DescribedContract> {
        let Self { name, serves, descriptions } = self;
        let is_served =
            move |document: &Document| document.role == Role::Provider && serves.contains(&document.contract);
        descriptions.documents().into_iter().filter(is_served).map(move |document| DescribedContract {
            contract: document.contract.clone(),
            provider: name.clone(),
            document,
        })
    }
}

/// What the first provider of a contract, or the named one, describes.
pub(crate) fn of_call(
    control: &Control,
    contract: &str,
    provider: Option<&str>,
) -> Option<Arc<Descriptions>> {
    let is_it = |name: &str, serves: &[ContractName]| {
        provider.is_none_or(|provider| provider == name)
            && serves.iter().any(|served| served.as_str() == contract)
    };
    let found = providers(control, is_it).next()?;
    // Another owner takes precedence over Main, whatever it describes.
    let is_main = |owner: &Arc<Peer>| owner.id() == control.bus.main().id();
    let owner = contract.parse().ok().and_then(|contract| control.bus.owner_of(&contract));
    let is_of_another = found.name == MAIN && owner.is_some_and(|owner| !is_main(&owner));
    (provider.is_some() || !is_of_another).then_some(found.descriptions)
}

/// The providers that describe contracts and that `is_wanted` accepts by name and contracts: extensions with a loaded
/// component in the order of the configuration, then peers, then Main itself.
pub(crate) fn providers<'m>(
    control: &'m Control,
    is_wanted: impl Fn(&str, &[ContractName]) -> bool + Copy + 'm,
) -> impl Iterator<Item = Provider> + 'm {
    let of_extension = move |unit: Arc<Unit>| {
        let version = unit.version();
        let config = &version.config;
        // Copies run the same component.
        if config.copy_of.is_some() || !is_wanted(unit.id().as_str(), &config.fulfills) {
            return None;
        }
        let descriptions = version.program()?.descriptions.clone();
        let (name, serves) = (unit.id().to_string(), config.fulfills.clone());
        (!descriptions.is_empty()).then_some(Provider { name, serves, descriptions })
    };
    let of_main = || control.stores.described().into_iter().chain(control.described.iter().cloned());
    let others = iter::once_with(move || control.peers.described().into_iter().chain(of_main())).flatten();
    let others = others.filter(move |other| is_wanted(&other.name, &other.serves));
    control.roster.listed().into_iter().filter_map(of_extension).chain(others)
}

/// Parses the documents that a peer sends of contracts that it may serve. Takes milliseconds.
pub(crate) fn of_peer(
    documents: &[u8],
    may_serve: impl Fn(&ContractName) -> Result<(), Error>,
) -> Result<Arc<Descriptions>, Error> {
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
    // Checks the bounds of all documents together.
    Document::parse_section(text.as_bytes()).map_err(|error| malformed(&error))?;
    Ok(Descriptions::new(text).into())
}

/// The part of a document that a program may reach. `None` if it may reach nothing of it.
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
    // Unused types would tell the program of what it may not see.
    document.drop_unused_types();
    (!is_empty).then_some(document)
}
