//! The class of a contract in Python.

use weir_openrpc::{Field, Method, Payload, Queue, Schema, Shape, Topic};

use super::{BUILT_IN, docstring, parameter_name, string, types::Types, value_name};
use crate::{
    Kind,
    contract::{Contract, Input, errors_doc},
    names::{Scope, pascal, snake},
    text::{Code, WIDTH, item, prose},
};

/// Writes the class of a contract.
pub(super) fn write(code: &mut Code, contract: &Contract, name: &str, kind: Kind, types: &mut Types<'_, '_>) {
    let document = types.document();
    let mut scope = Scope::default();
    let operations: Vec<String> =
        document.methods.iter().map(|method| value_name(&mut scope, &method.name)).collect();
    types.hidden = operations.iter().filter(|name| BUILT_IN.contains(&&***name)).cloned().collect();

    code.line(format!("class {name}(Client):"));
    code.inside("    ", |code| {
        described(code, &document.description, &format!("A client of `{}`.", document.contract));
        code.gap();
        code.line(format!("CONTRACT = {}", string(document.contract.as_str())));
        for ((method, input), own) in contract.methods().zip(&operations) {
            operation(code, contract, types, method, input, own);
        }
        for topic in &document.topics {
            subscription(code, types, topic, &contract.topic_name(topic), kind, &mut scope);
        }
        for queue in &document.queues {
            jobs(code, types, queue, &mut scope);
        }
    });
}

fn operation(
    code: &mut Code,
    contract: &Contract,
    types: &mut Types<'_, '_>,
    method: &Method,
    input: &Input,
    own: &str,
) {
    let hint = pascal(&method.name);
    let result = match &method.result {
        Payload::Bytes => types.built_in("bytes"),
        // The result can have no value. `Never` would say that the method does not return, so its type is `None`.
        Payload::Json { schema, .. } if types.document().resolve(schema).shape == Shape::Never => {
            "None".into()
        }
        Payload::Json { schema, .. } => types.of(schema, &format!("{hint}Result")),
    };
    let mut lines = prose(&method.description);
    let literal = string(&method.name);
    let mut call = Code::default();
    let (parameters, argument) = match input {
        Input::Nothing => (Vec::new(), "{}"),
        Input::Bytes => (vec![format!("payload: {}", types.built_in("bytes"))], "payload"),
        Input::Value(schema) => {
            (vec![format!("argument: {}", types.of(schema, &format!("{hint}Argument")))], "argument")
        }
        Input::Record(record) => {
            let fields = contract.fields(record);
            let mut scope = Scope::default();
            let names: Vec<String> =
                fields.iter().map(|field| parameter_name(&mut scope, &field.name)).collect();
            lines.extend(parameters_doc(fields, &names));
            arguments(&mut call, fields, &names);
            let star = (!fields.is_empty()).then(|| "*".to_owned());
            let parameters =
                fields.iter().zip(&names).map(|(field, name)| parameter(types, field, name, &hint));
            (star.into_iter().chain(parameters).collect(), "_arguments")
        }
    };
    lines.extend(errors_doc(method));
    code.gap();
    define(code, own, &parameters, &result);
    code.inside("    ", |code| {
        docstring(code, &lines);
        code.lines(call.into_text().trim());
        if matches!(input, Input::Bytes) {
            code.line(format!("return self._call_bytes({literal}, {argument})"));
        } else {
            code.line(format!("_answer: {result} = self._call({literal}, {argument})"));
            code.line("return _answer");
        }
    });
}

/// Writes the head of a method, in several lines if it is long.
fn define(code: &mut Code, own: &str, parameters: &[String], result: &str) {
    let joined: String = parameters.iter().map(|parameter| format!(", {parameter}")).collect();
    let line = format!("def {own}(self{joined}) -> {result}:");
    if line.chars().count() <= WIDTH {
        code.line(line);
        return;
    }
    code.line(format!("def {own}("));
    for parameter in ["self"].into_iter().chain(parameters.iter().map(|parameter| &**parameter)) {
        code.line(format!("    {parameter},"));
    }
    code.line(format!(") -> {result}:"));
}

fn parameter(types: &mut Types<'_, '_>, field: &Field, name: &str, hint: &str) -> String {
    let of = types.of(&field.schema, &format!("{hint}{}", pascal(&field.name)));
    if field.required {
        format!("{name}: {of}")
    } else if of.ends_with("None") {
        format!("{name}: {of} = None")
    } else {
        format!("{name}: {of} | None = None")
    }
}

fn parameters_doc(fields: &[Field], names: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for (field, name) in fields.iter().zip(names) {
        if !field.description.is_empty() {
            lines.extend(item(name, &field.description));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

/// Writes the dictionary of arguments. An argument that is not given is left out.
fn arguments(code: &mut Code, fields: &[Field], names: &[String]) {
    let required = fields.iter().zip(names).filter(|(field, _)| field.required);
    let required: Vec<String> =
        required.map(|(field, name)| format!("{}: {name}", string(&field.name))).collect();
    code.line(format!("_arguments: dict[str, object] = {{{}}}", required.join(", ")));
    for (field, name) in fields.iter().zip(names).filter(|(field, _)| !field.required) {
        code.line(format!("if {name} is not None:"));
        code.line(format!("    _arguments[{}] = {name}", string(&field.name)));
    }
}

fn subscription(
    code: &mut Code,
    types: &mut Types<'_, '_>,
    topic: &Topic,
    name: &str,
    kind: Kind,
    scope: &mut Scope,
) {
    let (of, read) = payload(types, &topic.payload, &pascal(name));
    let (update, gap) =
        if kind == Kind::App { (" | Gap", " A `Gap` tells that events may be missing.") } else { ("", "") };
    let narrower = if topic.pattern.contains(['*', '>']) { " `pattern` may name fewer topics." } else { "" };
    let does = format!("Subscribes, and gives the events as they come.{narrower}{gap}");
    code.gap();
    let own = scope.take(&format!("subscribe_{}", snake(name)));
    let (text, pattern) = (types.built_in("str"), string(&topic.pattern));
    define(code, &own, &[format!("pattern: {text} = {pattern}")], &format!("Iterator[Event[{of}]{update}]"));
    code.inside("    ", |code| {
        described(code, &topic.description, &does);
        code.line(format!("return self._events(pattern, {read})"));
    });
}

fn jobs(code: &mut Code, types: &mut Types<'_, '_>, queue: &Queue, scope: &mut Scope) {
    let (of, read) = payload(types, &queue.job, &format!("{}Job", pascal(&queue.name)));
    let name = snake(&queue.name);
    let literal = string(&queue.name);
    code.gap();
    let own = scope.take(&format!("put_{name}"));
    let flag = types.built_in("bool");
    code.line(format!("def {own}(self, job: {of}, until_done: {flag} = False) -> None:"));
    code.inside("    ", |code| {
        described(code, &queue.description, "Puts a job into the queue.");
        let job = if matches!(queue.job, Payload::Bytes) { "job" } else { "_written(job)" };
        code.line(format!("self._put({literal}, {job}, until_done)"));
    });
    code.gap();
    let own = scope.take(&format!("take_{name}"));
    code.line(format!("def {own}(self) -> Job[{of}]:"));
    code.inside("    ", |code| {
        described(code, &queue.description, "Takes a job, and waits for it without a limit.");
        code.line(format!("return self._take({literal}, {read})"));
    });
}

/// Returns the type of a payload, and the name of the function that reads it.
fn payload(types: &mut Types<'_, '_>, payload: &Payload, hint: &str) -> (String, &'static str) {
    match payload {
        Payload::Bytes => (types.built_in("bytes"), "bytes"),
        Payload::Json { schema, .. } => (types.of(schema as &Schema, hint), "_read"),
    }
}

/// Writes a description, and what the class or the method does.
fn described(code: &mut Code, description: &str, does: &str) {
    docstring(code, &prose(&format!("{description}\n\n{does}")));
}
