//! Compares calls of extensions and aliases of the gateway with what the components that serve them describe.

use std::{collections::HashMap, path::Path, rc::Rc};

#[cfg(feature = "gateway")]
use weir_gateway::{Alias, GatewayConfig};
use weir_host::{
    Config, ExtensionConfig,
    component::{self, Inspection},
    openrpc::{Document, needs},
};
#[cfg(feature = "gateway")]
use weir_host::{config::extend::nearest, names::ContractName};

/// The most warnings about one contract of one caller.
const MAX_SHOWN: usize = 8;

/// The inspections of components. Each file is read once.
#[derive(Debug, Default)]
pub(super) struct Inspected<'c>(HashMap<&'c Path, Option<Rc<Inspection>>>);

impl<'c> Inspected<'c> {
    /// Inspects the extension's component. Returns `None` if it is an artifact, or cannot be read, which is an error
    /// elsewhere.
    pub(super) fn of(&mut self, extension: &'c ExtensionConfig) -> Option<Rc<Inspection>> {
        let path = extension.component.path()?;
        self.0.entry(path).or_insert_with(|| component::inspect(path).ok().map(Rc::new)).clone()
    }
}

/// Warns of contracts that an extension calls otherwise than their provider describes them.
pub(super) fn warnings<'c>(config: &'c Config, inspected: &mut Inspected<'c>) -> Vec<String> {
    let found = config.extensions.iter().map(|extension| Some((extension, inspected.of(extension)?)));
    let described: Vec<_> = found.flatten().collect();
    let mut warnings = Vec::new();
    for (caller, found) in &described {
        for expected in found.expected_by(caller) {
            let provider = described.iter().find_map(|(provider, found)| {
                let served = found.served_as(provider, &expected.contract)?;
                provider.fulfills.contains(&expected.contract).then_some((provider, served))
            });
            if let Some((provider, served)) = provider {
                warnings.extend(of_pair(caller, &expected, provider, &served));
            }
        }
    }
    warnings
}

fn of_pair(
    caller: &ExtensionConfig,
    expected: &Document,
    provider: &ExtensionConfig,
    served: &Document,
) -> Vec<String> {
    let findings = needs(expected, served);
    let head = format!("`{}` calls `{}` of `{}`", caller.id, served.contract, provider.id);
    let mut warnings: Vec<String> =
        findings.iter().take(MAX_SHOWN).map(|finding| format!("{head}: {finding}")).collect();
    if let Some(more) = findings.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        warnings.push(format!("{head}: and {more} more"));
    }
    warnings
}

/// Warns of aliases of the gateway for calls that nothing would answer.
#[cfg(feature = "gateway")]
pub(super) fn of_aliases<'c>(config: &'c Config, inspected: &mut Inspected<'c>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, alias) in config.section::<GatewayConfig>().into_iter().flat_map(|gateway| &gateway.aliases) {
        let Alias::Call { contract, operation } = alias else { continue };
        let head = format!("`gateway.alias.{name:?}` stands for `{contract}/{operation}`");
        if let Some((provider, found)) = provider(config, contract, inspected) {
            let id = &provider.id;
            // A provider that describes nothing may have any operation.
            let Some(described) = found.and_then(|found| found.served_as(provider, contract)) else {
                continue;
            };
            let operations = || described.methods.iter().map(|method| method.name.as_str());
            if !operations().any(|known| known == operation.as_str()) {
                let near = nearest(operation.as_str(), operations());
                let help = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
                warnings.push(format!("{head}, and `{id}` describes no such operation{help}"));
            }
        } else if !is_served_otherwise(config, contract) {
            warnings.push(format!("{head}, and no extension or peer fulfills the contract"));
        }
    }
    warnings
}

#[cfg(feature = "gateway")]
fn provider<'c>(
    config: &'c Config,
    contract: &ContractName,
    inspected: &mut Inspected<'c>,
) -> Option<(&'c ExtensionConfig, Option<Rc<Inspection>>)> {
    let extension = config.extensions.iter().find(|extension| extension.fulfills.contains(contract))?;
    Some((extension, inspected.of(extension)))
}

#[cfg(feature = "gateway")]
fn is_served_otherwise(config: &Config, contract: &ContractName) -> bool {
    config.peers.iter().any(|peer| peer.fulfills.contains(contract))
        || config.main.serves.contains(contract)
        || config.contracts_of_sections().contains(contract)
}
