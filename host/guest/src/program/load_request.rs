//! What is to be loaded: the component of an extension or of a hook, and within which limits.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use weir_config::{ArtifactHash, ComponentSource, ExtensionConfig, InterfaceName, Limits, Traces};
use weir_names::{ContractName, ExtensionId};
use weir_openrpc::Descriptions;

use super::{ComponentOrigin, Program};
use crate::{
    engine::EngineKind,
    fit::{Fit, GuestKind, World},
};

/// A component to load, and the limits within which it is loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest<'w> {
    /// The requester: an extension's id, or a hook's path. Warnings are logged under it.
    pub name: &'w str,
    /// Where the component is.
    pub component: &'w ComponentSource,
    /// The directory that a file must be in, if there is one.
    pub plugin_dir: Option<&'w Path>,
    /// The hash that the component must have, if one is pinned.
    pub sha256: Option<ArtifactHash>,
    /// The text of the component's signature, if it is not in the file beside the component.
    pub signature: Option<&'w Arc<str>>,
    /// The extension that runs the component, or its original if that is a copy. None for a hook.
    pub extension: Option<&'w ExtensionId>,
    /// The id that the component is signed as, if that is not the extension's.
    pub signed_as: Option<&'w ExtensionId>,
    /// The limits on the component's size, code, compilation and stack.
    pub limits: &'w Limits,
    /// How much the traces of its instances tell.
    pub traces: Traces,
    /// Whether blocking work may block the waiting thread.
    pub may_block: bool,
    /// For an HTTP server, how many instances it may have at once.
    pub servers: Option<u32>,
    /// The exports that are operations of contracts, if there are any.
    pub exports: Option<&'w BTreeMap<ContractName, InterfaceName>>,
    /// Whether requests, events or jobs come to it.
    pub has_messages: bool,
    /// The contracts that answer imports.
    pub imports: Option<&'w BTreeMap<InterfaceName, ContractName>>,
}

impl<'w> LoadRequest<'w> {
    /// Requests the component of a hook in this directory.
    pub fn of_hook(name: &'w str, component: &'w ComponentSource, dir: &'w Path, limits: &'w Limits) -> Self {
        Self {
            name,
            component,
            plugin_dir: Some(dir),
            sha256: None,
            signature: None,
            extension: None,
            signed_as: None,
            limits,
            traces: Traces::default(),
            may_block: false,
            servers: None,
            exports: None,
            has_messages: false,
            imports: None,
        }
    }

    /// Returns the component's name in errors.
    pub fn origin(&self) -> ComponentOrigin {
        match self.component {
            ComponentSource::Path(path) => ComponentOrigin::File(path.clone()),
            ComponentSource::Bytes(_) => ComponentOrigin::Memory(self.name.to_owned()),
        }
    }

    pub(super) fn engine(&self) -> EngineKind {
        EngineKind::of(self.limits, self.traces)
    }

    pub(crate) fn world(&self) -> World {
        match (self.servers, self.exports) {
            (Some(_), _) => World::HttpServer,
            (None, Some(_)) => World::Exports,
            (None, None) => World::Program,
        }
    }

    /// Whether a contract answers this import.
    pub(crate) fn answers(&self, import: &str) -> bool {
        self.imports.is_some_and(|imports| imports.contains_key(import))
    }

    /// The imports that contracts answer.
    pub(super) fn answered(&self) -> BTreeSet<InterfaceName> {
        self.imports.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// What the component must be to run as this kind of guest.
    pub(crate) fn fit(&self, kind: GuestKind) -> Fit {
        Fit {
            kind,
            world: Some(self.world()),
            answered: Some(self.answered()),
            exports: self.exports.cloned().unwrap_or_default(),
            has_messages: self.has_messages,
            features: self.limits.features,
        }
    }

    /// The descriptions of a program's contracts, under the names that they have here.
    pub(super) fn descriptions<G>(&self, program: &Program<G>) -> Arc<Descriptions> {
        let Some(exports) = self.exports else { return program.descriptions.clone() };
        let exports = exports.iter().map(|(contract, export)| (contract.clone(), export.to_string()));
        program.descriptions.of_exports(exports.collect()).into()
    }
}

impl<'w> From<&'w ExtensionConfig> for LoadRequest<'w> {
    fn from(config: &'w ExtensionConfig) -> Self {
        Self {
            name: config.id.as_str(),
            component: &config.component,
            plugin_dir: config.plugin_dir.as_deref(),
            sha256: config.sha256,
            signature: config.signature.as_ref(),
            extension: Some(config.copy_of.as_ref().unwrap_or(&config.id)),
            signed_as: config.signed_as.as_ref(),
            limits: &config.limits,
            traces: config.traces,
            may_block: false,
            servers: config.serves_http.as_ref().map(|http| http.at_once),
            exports: (!config.exports.is_empty()).then_some(&config.exports),
            has_messages: !(config.fulfills.is_empty()
                && config.subscribes.is_empty()
                && config.takes.is_empty()),
            imports: Some(&config.imports),
        }
    }
}
