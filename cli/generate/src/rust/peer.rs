//! A contract for programs beside Main: a client on `weir-peer`.

use weir_openrpc::{Method, Payload, Queue, Topic};

use super::{doc, parts, string, types::Types, value_name, write_parts};
use crate::{
    Kind,
    contract::{Contract, Input},
    names::{Scope, pascal, snake},
    text::{Code, item},
};

/// The names of methods that each client has.
const METHODS: &str = "new within of";

/// The type of a payload that is no JSON.
const BYTES: &str = "Vec<u8>";

/// The code that all clients share.
const COMMON: &str = include_str!("runtime/common.rs");
const APP: &str = include_str!("runtime/app.rs");
const SIDECAR: &str = include_str!("runtime/sidecar.rs");

/// Writes the module that the clients share, unless they are for extensions.
pub(super) fn runtime(code: &mut Code, kind: Kind) {
    let own = match kind {
        Kind::Extension => return,
        Kind::App => APP,
        Kind::Sidecar => SIDECAR,
    };
    code.gap();
    code.line("/// The connection, events and jobs.");
    code.block("pub mod runtime {", "    ", |code| {
        code.lines(own);
        code.gap();
        code.lines(COMMON);
    });
}

/// Writes the client of a contract, and its types. `above` leads to the module of [`runtime`].
pub(super) fn contract(code: &mut Code, contract: &Contract, above: &str) {
    let (client, definitions) = parts(contract, false, client);
    code.gap();
    if definitions.contains("BTreeMap<") || client.contains("BTreeMap<") {
        code.line("use std::collections::BTreeMap;");
    }
    code.line("use std::time::Duration;");
    code.gap();
    if definitions.contains("Serialize") {
        code.line("use serde::{Deserialize, Serialize};");
    }
    code.line("use weir_peer::Error;");
    code.gap();
    code.line(if above.is_empty() {
        "use self::runtime::Connection;".into()
    } else {
        format!("use {above}runtime::{{self, Connection}};")
    });
    write_parts(code, &client, &definitions);
}

fn client(code: &mut Code, contract: &Contract, types: &mut Types<'_>) {
    let document = &contract.document;
    code.line("/// The contract.");
    code.line(format!("pub const CONTRACT: &str = {};", string(document.contract.as_str())));
    code.gap();
    doc(code, &document.description);
    code.lines("#[derive(Clone, Debug)]\npub struct Client {\n    connection: Connection,\n}");
    code.gap();
    code.block("impl Client {", "    ", |code| {
        code.lines(include_str!("runtime/client.rs"));
        let mut scope = Scope::with(METHODS);
        for (method, input) in contract.methods() {
            operation(code, types, method, input, &mut scope);
        }
        for topic in &document.topics {
            subscription(code, types, topic, &snake(&contract.topic_name(topic)), &mut scope);
        }
        for queue in &document.queues {
            jobs(code, types, queue, &mut scope);
        }
    });
}

fn operation(code: &mut Code, types: &mut Types<'_>, method: &Method, input: &Input, scope: &mut Scope) {
    let hint = pascal(&method.name);
    let (parameter, argument) = match input {
        Input::Nothing => (String::new(), "&runtime::Nothing {}"),
        Input::Bytes => (", bytes: impl Into<Vec<u8>>".to_owned(), "bytes.into()"),
        Input::Record(record) => (format!(", arguments: &{}", types.name(record)), "arguments"),
        Input::Value(schema) => {
            let of = types.of_hint(schema, &format!("{hint}Arguments"));
            (format!(", argument: &{}", borrowed(&of)), "argument")
        }
    };
    let result = types.of_payload(&method.result, BYTES, &format!("{hint}Result"));
    let call = if matches!(input, Input::Bytes) { "call_bytes" } else { "call" };
    code.gap();
    documented(code, &method.description, "", "Those of [`Error`].");
    if !method.errors.is_empty() {
        code.append(" Codes of the contract's own:");
    }
    for error in &method.errors {
        for line in item(&format!("`{}`", error.code), &error.description) {
            code.line(format!("/// {line}"));
        }
    }
    let name = value_name(scope, &snake(&method.name));
    code.line(format!("pub async fn {name}(&self{parameter}) -> Result<{result}, Error> {{"));
    code.line(format!("    self.connection.{call}(CONTRACT, {}, {argument}).await", string(&method.name)));
    code.line("}");
}

fn subscription(code: &mut Code, types: &mut Types<'_>, topic: &Topic, name: &str, scope: &mut Scope) {
    let of = types.of_payload(&topic.payload, BYTES, &pascal(name));
    let suffix = if matches!(topic.payload, Payload::Bytes) { "_bytes" } else { "" };
    let result = format!("Result<runtime::Events<{of}>, Error>");
    code.gap();
    documented(code, &topic.description, "", "If the topic is not granted, or subscribed to already.");
    let own = scope.take(&format!("subscribe_{name}"));
    code.line(format!("pub async fn {own}(&self) -> {result} {{"));
    code.line(format!("    self.connection.subscribe{suffix}({}).await", string(&topic.pattern)));
    code.line("}");
    if topic.pattern.contains(['*', '>']) {
        let does = format!("As `{own}`, for topics that `{}` covers: one, or a pattern.", topic.pattern);
        code.gap();
        documented(code, "", &does, "If the topics are not granted, or subscribed to already.");
        let own = scope.take(&format!("{own}_at"));
        code.line(format!("pub async fn {own}(&self, topics: &str) -> {result} {{"));
        code.line(format!("    self.connection.subscribe{suffix}(topics).await"));
        code.line("}");
    }
}

fn jobs(code: &mut Code, types: &mut Types<'_>, queue: &Queue, scope: &mut Scope) {
    let of = types.of_payload(&queue.job, BYTES, &format!("{}Job", pascal(&queue.name)));
    let suffix = if matches!(queue.job, Payload::Bytes) { "_bytes" } else { "" };
    let (name, literal) = (snake(&queue.name), string(&queue.name));
    code.gap();
    let does = "Puts a job into the queue, and gives Main's number of it.";
    documented(code, &queue.description, does, "If the queue is not granted, not there or full.");
    let own = scope.take(&format!("put_{name}"));
    code.line(format!("pub async fn {own}(&self, job: &{}) -> Result<u64, Error> {{", borrowed(&of)));
    code.line(format!("    self.connection.put{suffix}({literal}, job).await"));
    code.line("}");
    code.gap();
    let does = "Takes a job, and waits for it without a limit.";
    let errors =
        "If the queue is not granted, or the session ends. A job that does not fit the contract goes back.";
    documented(code, &queue.description, does, errors);
    let own = scope.take(&format!("take_{name}"));
    code.line(format!("pub async fn {own}(&self) -> Result<runtime::Job<{of}>, Error> {{"));
    code.line(format!("    self.connection.take{suffix}({literal}).await"));
    code.line("}");
}

/// Writes a description, then what the method does, then why it fails.
fn documented(code: &mut Code, description: &str, does: &str, errors: &str) {
    for part in [description, does] {
        doc(code, part);
        if !part.is_empty() {
            code.line("///");
        }
    }
    code.line("/// # Errors");
    doc(code, errors);
}

/// Returns the type behind a reference to a value.
fn borrowed(of: &str) -> String {
    match of.strip_prefix("Vec<").and_then(|of| of.strip_suffix('>')) {
        Some(item) => format!("[{item}]"),
        None if of == "String" => "str".into(),
        None => of.to_owned(),
    }
}
