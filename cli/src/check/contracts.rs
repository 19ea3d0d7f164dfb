//! What extensions call, and what the extensions that serve it in the same configuration describe.

use std::{collections::HashMap, path::Path, rc::Rc};

use weir_host::{
    Config, ExtensionConfig,
    openrpc::{Document, Role, needs},
};

/// Warnings of one caller about one contract.
const MAX_SHOWN: usize = 8;

/// What is called otherwise than it is described. A component that cannot be read has an error of its own.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let mut read: HashMap<&Path, Rc<[Document]>> = HashMap::new();
    let mut described: Vec<(&ExtensionConfig, Rc<[Document]>)> = Vec::new();
    for extension in &config.extensions {
        if let Some(path) = extension.component.path() {
            let documents = read.entry(path).or_insert_with(|| documents(path)).clone();
            described.push((extension, documents));
        }
    }
    let mut warnings = Vec::new();
    for (caller, documents) in &described {
        for expected in documents.iter().filter(|document| document.role == Role::Caller) {
            let provider = described.iter().find_map(|(provider, documents)| {
                let is_it = |document: &&Document| {
                    document.role == Role::Provider && document.contract == expected.contract
                };
                let serves = provider.fulfills.contains(&expected.contract);
                documents.iter().find(is_it).filter(|_| serves).map(|document| (provider, document))
            });
            if let Some((provider, served)) = provider {
                warnings.extend(of_pair(caller, expected, provider, served));
            }
        }
    }
    warnings
}

fn documents(path: &Path) -> Rc<[Document]> {
    weir_host::component::inspect(path).map(|found| found.contracts).unwrap_or_default().into()
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
