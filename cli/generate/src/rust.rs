//! Clients in Rust: with the SDK for extensions, with `weir-peer` for programs beside Main.

mod definitions;
mod extension;
mod peer;
mod types;

use weir_openrpc::Document;

use self::types::Types;
use crate::{
    Kind,
    contract::Contract,
    names::{Scope, snake},
    text::{Code, listed, prose},
};

/// The keywords that become names with `r#`.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The names of types that the output uses for something else.
const RESERVED: &str = "\
    BTreeMap Box Client Clone Connection Debug Default Duration Deserialize Error Option Ok Err None Self \
    Serialize Some String Vec PartialEq Eq Hash Copy Result";

/// Returns clients in Rust. Each contract has a module of its own if there are several.
#[must_use]
pub fn rust(documents: &[Document], kind: Kind) -> String {
    let contracts = Contract::all(documents);
    let mut code = Code::default();
    if let [contract] = &*contracts {
        inner_doc(&mut code, &contract.document.description);
    } else {
        inner_doc(&mut code, "Clients of several contracts.");
    }
    if !contracts.is_empty() {
        code.line("//!");
    }
    let names = listed(contracts.iter().map(|contract| contract.document.contract.as_str()));
    inner_doc(
        &mut code,
        &format!("Written by `weir generate rust --for {kind}` from {names}: changes here do not last."),
    );
    code.gap();
    code.line("#![allow(dead_code, reason = \"a contract has more than one program uses\")]");
    let body = match kind {
        Kind::Extension => extension::contract,
        Kind::App | Kind::Sidecar => peer::contract,
    };
    if let [contract] = &*contracts {
        body(&mut code, contract, "");
    } else {
        let mut scope = Scope::with("runtime");
        for contract in &contracts {
            code.gap();
            doc(&mut code, &contract.document.description);
            let name = value_name(&mut scope, &snake(contract.base_name()));
            code.block(format!("pub mod {name} {{"), "    ", |code| body(code, contract, "super::"));
        }
    }
    peer::runtime(&mut code, kind);
    code.into_text()
}

/// Returns a contract as text: its constants or its client, as `write` writes it, and its types.
fn parts(
    contract: &Contract,
    described: bool,
    write: fn(&mut Code, &Contract, &mut Types<'_>),
) -> (String, String) {
    let mut types = Types::new(&contract.document, described);
    let mut definitions = Code::default();
    types.write(&mut definitions);
    let mut own = Code::default();
    write(&mut own, contract, &mut types);
    types.write_waiting(&mut definitions);
    (own.into_text(), definitions.into_text())
}

/// Writes a client, and after it the types of its contract.
fn write_parts(code: &mut Code, own: &str, definitions: &str) {
    code.gap();
    code.lines(own.trim_end());
    if !definitions.trim().is_empty() {
        code.gap();
        code.lines(definitions.trim());
    }
}

fn inner_doc(code: &mut Code, description: &str) {
    for line in prose(description) {
        code.line(format!("//! {line}").trim_end());
    }
}

/// Writes a description before what it describes.
fn doc(code: &mut Code, description: &str) {
    for line in prose(description) {
        code.line(format!("/// {line}").trim_end());
    }
}

/// Returns a free name for a field. A name of the form that Rust uses for fields stays as it is.
fn field_name(scope: &mut Scope, name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|character| matches!(character, 'a'..='z' | '0'..='9' | '_'))
        && name != "_";
    value_name(scope, &if is_plain { name.to_owned() } else { snake(name) })
}

/// Returns a free name for a function, a module or a field.
fn value_name(scope: &mut Scope, name: &str) -> String {
    match name {
        "self" | "super" | "crate" => scope.take(&format!("{name}_")),
        name => {
            let own = scope.take(name);
            if KEYWORDS.contains(&&*own) { format!("r#{own}") } else { own }
        }
    }
}

/// Returns the attribute that makes serde use the name of the document, if another name stands in the source.
fn rename(own: &str, name: &str) -> Option<String> {
    (own.strip_prefix("r#").unwrap_or(own) != name).then(|| format!("rename = {}", string(name)))
}

/// Writes a string literal.
fn string(text: &str) -> String {
    crate::text::literal(text, |code| format!("\\u{{{code:x}}}"))
}
