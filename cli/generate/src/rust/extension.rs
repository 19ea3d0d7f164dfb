//! A contract for extensions: constants of `weir_sdk::contract!`, so that the extension says what it needs of it.

use weir_openrpc::{ErrorCode, Payload};

use super::{
    doc, string,
    types::{EMPTY, Place, Types},
};
use crate::{
    contract::{Contract, Input},
    names::{Scope, pascal, upper},
    text::Code,
};

/// Writes the contract.
pub(super) fn contract(code: &mut Code, contract: &Contract, _: &str) {
    let mut types = Types::new(&contract.document, true, super::RESERVED);
    let mut definitions = Code::default();
    types.write(&mut definitions);
    let mut constants = Code::default();
    self::constants(&mut constants, contract, &mut types);
    types.write_waiting(&mut definitions);
    let (constants, definitions) = (constants.into_text(), definitions.into_text());

    code.gap();
    if definitions.contains("BTreeMap<") || constants.contains("BTreeMap<") {
        code.line("use std::collections::BTreeMap;");
        code.gap();
    }
    if definitions.contains("Serialize") {
        code.line("use serde::{Deserialize, Serialize};");
        code.gap();
    }
    code.lines(constants.trim_end());
    if !definitions.trim().is_empty() {
        code.gap();
        code.lines(definitions.trim());
    }
}

fn constants(code: &mut Code, contract: &Contract, types: &mut Types<'_>) {
    let document = &contract.document;
    let mut scope = Scope::with(&["CONTRACT"]);
    code.line("weir_sdk::contract! {");
    code.inside("    ", |code| {
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
                Input::Bytes => "bytes".into(),
                Input::Record(record) => types.name(record),
                Input::Value(schema) => {
                    types.of(schema, place(&format!("{}Arguments", pascal(&method.name))))
                }
            };
            let result = payload(types, &method.result, &format!("{}Result", pascal(&method.name)));
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
            let of = payload(types, &topic.payload, &pascal(&name));
            let name = scope.take(&upper(&name));
            code.line(format!("pub const {name}: topic({of}) = {};", string(&topic.pattern)));
        }
        if !document.queues.is_empty() {
            code.gap();
        }
        for queue in &document.queues {
            doc(code, &queue.description);
            let of = payload(types, &queue.job, &format!("{}Job", pascal(&queue.name)));
            let name = scope.take(&upper(&queue.name));
            code.line(format!("pub const {name}: queue({of}) = {};", string(&queue.name)));
        }
    });
    code.line("}");
}

fn payload(types: &mut Types<'_>, payload: &Payload, hint: &str) -> String {
    match payload {
        Payload::Bytes => "bytes".into(),
        Payload::Json { schema, .. } => types.of(schema, place(hint)),
    }
}

fn place(hint: &str) -> Place<'_> {
    Place { hint, inside: None }
}
