//! WIT: contracts as interfaces that components import, for tools that know nothing of Weir.
//!
//! Values of the types that stand here have the JSON that the contract describes: `docs/exports.md` has the table, and the
//! exceptions. An operation whose types have no such form is left out, and a comment says why. A document is a stranger's:
//! of it come names of WIT, and comments.

mod interface;
mod labels;

use std::collections::BTreeMap;

use weir_names::rules::is_semantic_version;
use weir_openrpc::Document;

use self::{
    interface::{Interface, doc},
    labels::{Taken, escaped, label},
};
use crate::{
    contract::Contract,
    names::kebab,
    text::{Code, listed, prose},
};

/// Returns a package with a world, `caller`, that imports an interface for each contract.
#[must_use]
pub fn wit(documents: &[Document]) -> String {
    let contracts = Contract::all(documents);
    let (mut taken, mut packages) = (Taken::default(), BTreeMap::<String, Vec<_>>::new());
    let (mut imports, mut in_snake_case) = (Vec::new(), Vec::new());
    for contract in &contracts {
        let (package, interface) = place_of(contract, &mut taken);
        let name = full_name(&package, &interface);
        imports.push(format!("\"{}\" = \"{}\"", name.replace('%', ""), contract.document.contract));
        // Fields may have `-` for `_` if those of all operations that remain have.
        let [found, renamed] = [false, true].map(|renames| Interface::of(&contract.document, renames));
        let found = if renamed.count > found.count { renamed } else { found };
        if found.renames {
            in_snake_case.push(format!("\"{}\"", name.replace('%', "")));
        }
        packages.entry(package).or_default().push((interface, &contract.document, found));
    }
    let mut code = Code::default();
    let names = listed(contracts.iter().map(|contract| contract.document.contract.as_str()));
    for line in prose(&format!("Written by `weir generate wit` from {names}: changes here do not last.")) {
        code.line(format!("// {line}"));
    }
    code.line("//");
    code.line("// A component that imports them has this in its table:");
    code.line(format!("// imports = {{ {} }}", imports.join(", ")));
    if !in_snake_case.is_empty() {
        code.line(format!("// snake-case-imports = [{}]", in_snake_case.join(", ")));
    }
    // Several files may lie beside each other.
    let root: Vec<_> = contracts.iter().map(|contract| kebab(contract.document.contract.as_str())).collect();
    code.line(format!("package generated:{};", escaped(&root.join("-and-"))));
    code.gap();
    code.block("world caller {", "  ", |code| {
        for (package, interfaces) in &packages {
            for (interface, ..) in interfaces {
                code.line(format!("import {};", full_name(package, interface)));
            }
        }
    });
    for (package, interfaces) in packages {
        code.gap();
        code.block(format!("package {package} {{"), "  ", |code| {
            for (interface, document, found) in interfaces {
                code.gap();
                doc(code, &document.description);
                code.block(format!("interface {interface} {{"), "  ", |code| found.write(code));
            }
        });
    }
    code.into_text()
}

/// The package and the interface that a contract stands for: those of the component that it describes, if these are names
/// and no other contract has them, else its own.
fn place_of(contract: &Contract, taken: &mut Taken) -> (String, String) {
    let exported = contract.document.export.as_deref().and_then(place_of_export);
    if let Some((package, interface)) = exported
        && taken.take(&full_name(&package, &interface))
    {
        return (package, interface);
    }
    let version = contract.document.contract.as_str().split_once('@').map_or("0", |(_, version)| version);
    let name = kebab(contract.base_name());
    let name = taken.free(&name, |name| full_name(&format!("contracts:{name}@{version}.0.0"), "operations"));
    (format!("contracts:{}@{version}.0.0", escaped(&name)), "operations".to_owned())
}

/// The package and interface of an export that nobody else defines.
fn place_of_export(export: &str) -> Option<(String, String)> {
    let (name, version) = match export.split_once('@') {
        Some((name, version)) => (name, Some(version).filter(|version| is_semantic_version(version))?),
        None => (export, ""),
    };
    let (namespace, rest) = name.split_once(':')?;
    let (package, interface) = rest.split_once('/')?;
    let is_taken = ["generated", "wasi", "weir"].contains(&namespace);
    if is_taken || [namespace, package].iter().any(|name| name.contains(|it: char| it.is_ascii_uppercase())) {
        return None;
    }
    let version = if version.is_empty() { String::new() } else { format!("@{version}") };
    let [namespace, package, interface] = [namespace, package, interface].map(|name| label(name).ok());
    Some((format!("{}:{}{version}", namespace?, package?), interface?))
}

fn full_name(package: &str, interface: &str) -> String {
    match package.split_once('@') {
        Some((name, version)) => format!("{name}/{interface}@{version}"),
        None => format!("{package}/{interface}"),
    }
}
