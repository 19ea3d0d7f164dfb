//! What extensions call, and what the extensions that serve it in the same configuration describe.

use std::rc::Rc;

use weir_host::{
    Config, ExtensionConfig,
    component::Inspection,
    openrpc::{Document, Role, needs},
};

use super::inspected::Inspected;

/// Warnings of one caller about one contract.
const MAX_SHOWN: usize = 8;

/// What is called otherwise than it is described. A component that cannot be read has an error of its own.
pub(super) fn warnings<'c>(config: &'c Config, inspected: &mut Inspected<'c>) -> Vec<String> {
    let mut described: Vec<(&ExtensionConfig, Rc<Inspection>)> = Vec::new();
    for extension in &config.extensions {
        let found = extension.component.path().and_then(|path| inspected.of(path));
        described.extend(found.map(|found| (extension, found)));
    }
    let mut warnings = Vec::new();
    for (caller, found) in &described {
        for expected in found.contracts.iter().filter(|document| document.role == Role::Caller) {
            let provider = described.iter().find_map(|(provider, found)| {
                let is_it = |document: &&Document| {
                    document.role == Role::Provider && document.contract == expected.contract
                };
                let serves = provider.fulfills.contains(&expected.contract);
                found.contracts.iter().find(is_it).filter(|_| serves).map(|document| (provider, document))
            });
            if let Some((provider, served)) = provider {
                warnings.extend(of_pair(caller, expected, provider, served));
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
