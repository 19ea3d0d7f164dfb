//! Clients in TypeScript, on `weir-client`: it connects, subscribes again and tells of gaps, and repeats no call.

mod client;
mod types;

use weir_openrpc::Document;

use self::types::Types;
use crate::{
    contract::Contract,
    names::Scope,
    text::{Code, has_word, listed, prose},
};

/// Names that mean something else in the output.
const RESERVED: &str = "\
    Array CallOptions Job JSON Json Promise PutOptions String SubscribeOptions Subscription TextEncoder \
    TakeOptions Uint8Array Weir WeirError WeirEvent";

/// The names that are imported if they are used.
const IMPORTS: &[&str] =
    &["AskOptions", "CallOptions", "Job", "Json", "SubscribeOptions", "Subscription", "Weir", "WeirEvent"];

/// The function that makes bytes of a payload: the gateway sends bytes that are JSON as JSON.
const BYTES: &str = "\
/** The gateway sends bytes that are JSON as JSON: then their spaces and the form of their numbers may differ. */
function bytesOf(payload: unknown): Uint8Array {
  return payload instanceof Uint8Array ? payload : new TextEncoder().encode(JSON.stringify(payload));
}";

/// Returns clients in TypeScript, a class for each contract. A type name that several contracts have is preceded by
/// that of its contract.
#[must_use]
pub fn typescript(documents: &[Document]) -> String {
    let contracts = Contract::all(documents);
    let mut scope = Scope::with(RESERVED);
    let clients: Vec<String> = contracts.iter().map(|contract| contract.class_name(&mut scope)).collect();
    let mut body = Code::default();
    for (contract, client) in contracts.iter().zip(&clients) {
        let types = Types::new(&contract.document, &mut scope, |name| {
            contract.type_name(&contracts, client, name, |other| other.document.named(name).is_some())
        });
        client::write(&mut body, contract, client, &types);
        types.write(&mut body);
    }
    let mut body = body.into_text();
    if body.contains("bytesOf(") {
        body.push('\n');
        body.push_str(BYTES);
        body.push('\n');
    }

    let mut code = Code::default();
    let names = listed(contracts.iter().map(|contract| contract.document.contract.as_str()));
    for line in
        prose(&format!("Written by `weir generate typescript` from {names}: changes here do not last."))
    {
        code.line(format!("// {line}"));
    }
    let imports: Vec<&str> = IMPORTS.iter().copied().filter(|name| has_word(&body, name, &['_'])).collect();
    if !imports.is_empty() {
        code.gap();
        code.line(format!("import type {{ {} }} from \"weir-client\";", imports.join(", ")));
    }
    code.gap();
    code.lines(body.trim_start());
    code.into_text()
}

/// Writes a description before what it describes.
fn doc(code: &mut Code, description: &str) {
    comment(code, &prose(description));
}

fn comment(code: &mut Code, lines: &[String]) {
    let lines = lines.iter().skip_while(|line| line.is_empty());
    let lines: Vec<String> = lines.map(|line| line.replace("*/", "*\\/")).collect();
    match &*lines {
        [] => {}
        [only] => code.line(format!("/** {only} */")),
        lines => {
            code.line("/**");
            for line in lines {
                code.line(format!(" * {line}").trim_end());
            }
            code.line(" */");
        }
    }
}

/// Writes a string literal.
fn string(text: &str) -> String {
    crate::text::literal(text, |code| format!("\\u{{{code:x}}}"))
}
