//! A contract for extensions: constants of `weir_sdk::contract!`, so that the extension says what it needs of it.

use weir_openrpc::ErrorCode;

use super::{
    doc, parts, string,
    types::{EMPTY, Types},
    write_parts,
};
use crate::{
    contract::{Contract, Input},
    names::{Scope, pascal, upper},
    text::Code,
};

/// The type of a payload that is no JSON.
const BYTES: &str = "bytes";

/// Writes the constants of a contract, and its types.
pub(super) fn contract(code: &mut Code, contract: &Contract, _: &str) {
    let (constants, definitions) = parts(contract, true, constants);
    code.gap();
    if definitions.contains("BTreeMap<") || constants.contains("BTreeMap<") {
        code.line("use std::collections::BTreeMap;");
        code.gap();
    }
    if definitions.contains("Serialize") {
        code.line("use serde::{Deserialize, Serialize};");
    }
    write_parts(code, &constants, &definitions);
}

fn constants(code: &mut Code, contract: &Contract, types: &mut Types<'_>) {
    let document = &contract.document;
    let mut scope = Scope::with("CONTRACT");
    code.block("weir_sdk::contract! {", "    ", |code| {
        doc(code, &document.description);
        code.line(format!("pub const CONTRACT = {};", string(document.contract.as_str())));
        if !document.methods.is_empty() {
            code.gap();
        }
        for (method, input) in contract.methods() {
            doc(code, &method.description);
            let name = scope.take(&upper(&method.name));
            let arguments = match input {
                Input::Nothing => EMPTY.into(),
                Input::Bytes => BYTES.into(),
                Input::Record(record) => types.name(record),
                Input::Value(schema) => types.of_hint(schema, &format!("{}Arguments", pascal(&method.name))),
            };
            let result = types.of_payload(&method.result, BYTES, &format!("{}Result", pascal(&method.name)));
            let head = format!("pub const {name}: fn({arguments}) -> {result} = {}", string(&method.name));
            if method.errors.is_empty() {
                code.line(format!("{head};"));
            } else {
                code.line(format!("{head}, errors {{"));
                for ErrorCode { code: word, description } in &method.errors {
                    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
                    code.line(format!("    {}: {},", string(word), string(&description)));
                }
                code.line("};");
            }
        }
        if !document.topics.is_empty() {
            code.gap();
        }
        for topic in &document.topics {
            doc(code, &topic.description);
            let name = contract.topic_name(topic);
            let of = types.of_payload(&topic.payload, BYTES, &pascal(&name));
            let name = scope.take(&upper(&name));
            code.line(format!("pub const {name}: topic({of}) = {};", string(&topic.pattern)));
        }
        if !document.queues.is_empty() {
            code.gap();
        }
        for queue in &document.queues {
            doc(code, &queue.description);
            let of = types.of_payload(&queue.job, BYTES, &format!("{}Job", pascal(&queue.name)));
            let name = scope.take(&upper(&queue.name));
            code.line(format!("pub const {name}: queue({of}) = {};", string(&queue.name)));
        }
    });
}
