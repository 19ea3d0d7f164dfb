//! The class of a contract in TypeScript.

use weir_openrpc::{Method, Payload, Queue, Topic};

use super::{comment, doc, string, types::Types};
use crate::{
    contract::{Contract, Input, errors_doc},
    names::{Scope, camel, pascal},
    text::{Code, prose},
};

/// Writes the class of a contract.
pub(super) fn write(code: &mut Code, contract: &Contract, name: &str, types: &Types<'_>) {
    let document = &contract.document;
    code.gap();
    doc(code, &format!("{}\nA client of `{}`.", document.description.trim(), document.contract));
    code.block(format!("export class {name} {{"), "  ", |code| {
        code.lines("readonly #weir: Weir;\n\nconstructor(weir: Weir) {\n  this.#weir = weir;\n}");
        let mut scope = Scope::with("constructor");
        for (method, input) in contract.methods() {
            operation(code, contract, types, method, input, &mut scope);
        }
        for topic in &document.topics {
            subscription(code, types, topic, &contract.topic_name(topic), &mut scope);
        }
        for queue in &document.queues {
            jobs(code, types, queue, &mut scope);
        }
    });
}

fn operation(
    code: &mut Code,
    contract: &Contract,
    types: &Types<'_>,
    method: &Method,
    input: &Input,
    scope: &mut Scope,
) {
    let (parameter, argument) = match input {
        Input::Nothing => (String::new(), "undefined"),
        Input::Bytes => ("bytes: Uint8Array, ".to_owned(), "bytes"),
        Input::Record(record) if contract.fields(record).iter().all(|field| !field.required) => {
            (format!("params: {} = {{}}, ", types.name(record)), "params")
        }
        Input::Record(record) => (format!("params: {}, ", types.name(record)), "params"),
        Input::Value(schema) => (format!("argument: {}, ", types.of(schema)), "argument"),
    };
    let mut lines = prose(&method.description);
    lines.extend(errors_doc(method));
    code.gap();
    comment(code, &lines);
    let name = scope.take(&camel(&method.name));
    let full = string(&format!("{}/{}", contract.document.contract, method.name));
    if matches!(method.result, Payload::Bytes) {
        code.line(format!("async {name}({parameter}options?: CallOptions): Promise<Uint8Array> {{"));
        code.line(format!("  return bytesOf(await this.#weir.call({full}, {argument}, options));"));
    } else {
        let result = payload(types, &method.result);
        code.line(format!("{name}({parameter}options?: CallOptions): Promise<{result}> {{"));
        code.line(format!("  return this.#weir.call<{result}>({full}, {argument}, options);"));
    }
    code.line("}");
}

fn subscription(code: &mut Code, types: &Types<'_>, topic: &Topic, name: &str, scope: &mut Scope) {
    let of = payload(types, &topic.payload);
    let pattern = string(&topic.pattern);
    let narrower = if topic.pattern.contains(['*', '>']) { " `pattern` may name fewer topics." } else { "" };
    code.gap();
    let does = "Subscribes, also after a break of the connection: `onGap` tells that events may be missing.";
    doc(code, &format!("{}\n\n{does}{narrower}", topic.description));
    let own = scope.take(&format!("subscribe{}", pascal(name)));
    code.line(format!("{own}("));
    code.line(format!("  listener: (event: WeirEvent<{of}>) => void,"));
    code.line("  options?: SubscribeOptions,");
    code.line(format!("  pattern: string = {pattern},"));
    code.line("): Promise<Subscription> {");
    if matches!(topic.payload, Payload::Bytes) {
        code.line(
            "  const read = (event: WeirEvent) => listener({ ...event, payload: bytesOf(event.payload) });",
        );
        code.line("  return this.#weir.subscribe(pattern, read, options);");
    } else {
        code.line(format!("  return this.#weir.subscribe<{of}>(pattern, listener, options);"));
    }
    code.line("}");
}

fn jobs(code: &mut Code, types: &Types<'_>, queue: &Queue, scope: &mut Scope) {
    let of = payload(types, &queue.job);
    let name = string(&queue.name);
    code.gap();
    let does = "Puts a job into the queue. Gives null once a reader has finished it, under `untilDone`.";
    doc(code, &format!("{}\n\n{does}", queue.description));
    let own = scope.take(&format!("put{}", pascal(&queue.name)));
    code.line(format!("{own}("));
    code.line(format!("  job: {of},"));
    code.line("  options?: AskOptions & { untilDone?: boolean },");
    code.line("): Promise<{ id: string } | null> {");
    code.line(format!("  return this.#weir.put({name}, job, options);"));
    code.line("}");

    code.gap();
    doc(code, &format!("{}\n\nTakes a job. Gives null if none came in time.", queue.description));
    let own = scope.take(&format!("take{}", pascal(&queue.name)));
    if matches!(queue.job, Payload::Bytes) {
        code.line(format!("async {own}(options?: AskOptions): Promise<Job<Uint8Array> | null> {{"));
        code.line(format!("  const job = await this.#weir.take({name}, options);"));
        code.line("  return job && { ...job, payload: bytesOf(job.payload) };");
    } else {
        code.line(format!("{own}(options?: AskOptions): Promise<Job<{of}> | null> {{"));
        code.line(format!("  return this.#weir.take<{of}>({name}, options);"));
    }
    code.line("}");
}

fn payload(types: &Types<'_>, payload: &Payload) -> String {
    match payload {
        Payload::Bytes => "Uint8Array".into(),
        Payload::Json { schema, .. } => types.of(schema),
    }
}
