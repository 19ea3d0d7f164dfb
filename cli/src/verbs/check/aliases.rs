//! Aliases of the gateway, and the operations that their providers describe.

use std::rc::Rc;

use weir_gateway::{Alias, GatewayConfig};
use weir_host::{Config, component::Inspection, config::extend::nearest, names::ContractName, openrpc::Role};

use super::inspected::Inspected;

/// Calls that nothing would answer.
pub(super) fn warnings<'c>(config: &'c Config, inspected: &mut Inspected<'c>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, alias) in config.section::<GatewayConfig>().into_iter().flat_map(|gateway| &gateway.aliases) {
        let Alias::Call { contract, operation } = alias else { continue };
        let head = format!("`gateway.alias.{name:?}` stands for `{contract}/{operation}`");
        if let Some((id, found)) = provider(config, contract, inspected) {
            let is_it = |described: &&weir_host::openrpc::Document| {
                described.role == Role::Provider && described.contract == *contract
            };
            // A provider that describes nothing may have any operation.
            let Some(described) = found.as_ref().and_then(|it| it.contracts.iter().find(is_it)) else {
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

fn provider<'c>(
    config: &'c Config,
    contract: &ContractName,
    inspected: &mut Inspected<'c>,
) -> Option<(&'c str, Option<Rc<Inspection>>)> {
    let extension = config.extensions.iter().find(|extension| extension.fulfills.contains(contract))?;
    Some((extension.id.as_str(), extension.component.path().and_then(|path| inspected.of(path))))
}

fn is_served_otherwise(config: &Config, contract: &ContractName) -> bool {
    config.peers.iter().any(|peer| peer.fulfills.contains(contract))
        || config.main.serves.contains(contract)
        || config.contracts_of_sections().contains(contract)
}
