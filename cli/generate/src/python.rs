//! Clients in Python, on `weir_peer.py`, with types for `mypy --strict`.

mod client;
mod types;

use weir_openrpc::Document;

use self::types::Types;
use crate::{
    Kind,
    contract::Contract,
    names::{Scope, snake},
    text::{Code, has_word, listed, prose},
};

const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The names of built-in types in annotations.
const BUILT_IN: &[&str] = &["bool", "bytes", "dict", "float", "int", "list", "object", "str"];

/// Names that mean something else in the output.
const RESERVED: &str = "\
    Any Client Connection Ended EOFError Event False Gap Generic Iterator Job Json Literal Mapping Never \
    None NotRequired OSError P Peer Sequence True TypeAlias TypeVar TypedDict WAITS";

/// The modules, and the names that are imported of each, if they are used.
const IMPORTS: &[(&str, &[&str])] = &[
    ("collections.abc", &["Iterator", "Mapping", "Sequence"]),
    ("dataclasses", &["dataclass"]),
    ("typing", &["Any", "Generic", "Literal", "Never", "NotRequired", "TypeAlias", "TypedDict", "TypeVar"]),
];

/// The characters that a word of Python has beside letters and digits. A name after a `.` is another name.
const PARTS: &[char] = &['_', '.'];

const JSON: &str = "\
Json: TypeAlias = \"None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]\"
\"\"\"Anything that JSON can say.\"\"\"";

const COMMON: &str = include_str!("python/common.py");
const APP: &str = include_str!("python/app.py");
const SIDECAR: &str = include_str!("python/sidecar.py");

/// Returns clients in Python, a class for each contract. A type name that several contracts have is preceded by that of
/// its contract. There is no client for extensions, so for them this returns that of a sidecar.
#[must_use]
pub fn python(documents: &[Document], kind: Kind) -> String {
    let contracts = Contract::all(documents);
    let mut scope = Scope::with(RESERVED);
    let clients: Vec<String> = contracts.iter().map(|contract| contract.class_name(&mut scope)).collect();
    let mut body = Code::default();
    body.lines(if kind == Kind::App { APP } else { SIDECAR });
    two_gaps(&mut body);
    body.lines(COMMON);
    for (contract, client) in contracts.iter().zip(&clients) {
        let mut types = Types::new(contract, &mut scope, |name| {
            let has = |other: &Contract| other.described_types().any(|(known, _)| known == name);
            contract.type_name(&contracts, client, name, has)
        });
        let mut class = Code::default();
        client::write(&mut class, contract, client, kind, &mut types);
        let mut definitions = Code::default();
        types.write(&mut definitions);
        for part in [class, definitions].map(Code::into_text) {
            if !part.trim().is_empty() {
                two_gaps(&mut body);
                body.lines(part.trim());
            }
        }
    }
    let mut body = body.into_text();
    if has_word(&body, "Json", PARTS) {
        body.insert_str(0, &format!("{JSON}\n\n\n"));
    }

    let mut code = Code::default();
    let description = match &*contracts {
        [contract] => prose(&contract.document.description),
        _ => Vec::new(),
    };
    let names = listed(contracts.iter().map(|contract| contract.document.contract.as_str()));
    let origin = prose(&format!(
        "Written from {names} by `weir generate python --for {kind}`: changes here do not last."
    ));
    let between = (!description.is_empty()).then(String::new);
    docstring(&mut code, &description.into_iter().chain(between).chain(origin).collect::<Vec<_>>());
    code.gap();
    imports(&mut code, &body, kind);
    two_gaps(&mut code);
    code.lines(body.trim());
    code.into_text()
}

fn imports(code: &mut Code, body: &str, kind: Kind) {
    code.line("from __future__ import annotations");
    code.gap();
    if has_word(body, "builtins.", PARTS) {
        code.line("import builtins");
    }
    code.line("import json");
    if kind == Kind::App {
        code.lines("import threading\nimport time");
    }
    for (module, names) in IMPORTS {
        let names: Vec<&str> = names.iter().copied().filter(|name| has_word(body, name, PARTS)).collect();
        if !names.is_empty() {
            code.line(format!("from {module} import {}", names.join(", ")));
        }
    }
    code.gap();
    code.line("import weir_peer");
    code.line(if kind == Kind::App {
        "from weir_peer import Ended, Peer"
    } else {
        "from weir_peer import Peer"
    });
}

/// Writes two empty lines, as between the definitions of a module.
fn two_gaps(code: &mut Code) {
    code.gap();
    code.empty_line();
}

/// Writes a string literal that documents what it stands in, or after.
fn docstring(code: &mut Code, lines: &[String]) {
    let lines: Vec<String> = lines
        .iter()
        .skip_while(|line| line.is_empty())
        .map(|line| line.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\""))
        .collect();
    match &*lines {
        [] => {}
        // A quote at the end would join those that end the literal.
        [only] if !only.ends_with('"') => code.line(format!("\"\"\"{only}\"\"\"")),
        [first, more @ ..] => {
            code.line(format!("\"\"\"{first}"));
            for line in more {
                code.line(line);
            }
            code.line("\"\"\"");
        }
    }
}

/// Writes a string literal.
fn string(text: &str) -> String {
    crate::text::literal(text, |code| format!("\\U{code:08x}"))
}

/// Returns a free name for a parameter.
fn parameter_name(scope: &mut Scope, name: &str) -> String {
    let own = snake(name);
    if own == "self" || BUILT_IN.contains(&&*own) {
        scope.take(&format!("{own}_"))
    } else {
        value_name(scope, name)
    }
}

/// Returns a free name for a function or a parameter.
fn value_name(scope: &mut Scope, name: &str) -> String {
    let name = snake(name);
    if KEYWORDS.contains(&&*name) { scope.take(&format!("{name}_")) } else { scope.take(&name) }
}
