//! Whether a contract may become another: what each side writes, the other has to be able to read.
//!
//! Callers write arguments, and providers write results and events. A job of a queue is judged like arguments: jobs
//! of before the change may still be in the queue.

mod change;
mod record;
mod scalar;
mod text;
mod walk;

use std::fmt;

use weir_names::rules::covers;

use self::{change::Sides, walk::Walk};
use crate::{Arguments, Document, Method, Payload, check::View, check::nearest, path};

/// A difference between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, such as `$.operations.get.result.key`.
    pub path: String,
    /// What is different there.
    pub message: String,
    /// Whether it breaks the other side.
    pub severity: Severity,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The other side may fail.
    Breaking,
    /// The other side goes on as before.
    Compatible,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path, self.message)
    }
}

/// What changes from `old` to `new`, for callers and providers of `old`.
#[must_use]
pub fn compare(old: &Document, new: &Document) -> Vec<Finding> {
    let mut walk = Walk::new(old, new, Sides::Versions);
    if old.contract != new.contract {
        walk.breaking("$", format!("was `{}`, and is `{}`", old.contract, new.contract));
    }
    for method in &old.methods {
        let path = entry("operations", &method.name);
        match new.method(&method.name) {
            Some(new) => operation(&mut walk, method, new, &path),
            None => walk.breaking(&path, "is removed"),
        }
    }
    for method in new.methods.iter().filter(|method| old.method(&method.name).is_none()) {
        walk.compatible(&entry("operations", &method.name), "is new");
    }
    for topic in &old.topics {
        let path = entry("topics", &topic.pattern);
        match new.topics.iter().find(|new| covers(&new.pattern, &topic.pattern)) {
            Some(new) => payload(&mut walk, (&topic.payload, &new.payload), false, path + ".payload"),
            None => walk.breaking(&path, "is removed"),
        }
    }
    for topic in &new.topics {
        if !old.topics.iter().any(|old| covers(&topic.pattern, &old.pattern)) {
            walk.compatible(&entry("topics", &topic.pattern), "is new");
        }
    }
    for queue in &old.queues {
        let path = entry("queues", &queue.name);
        match new.queues.iter().find(|new| new.name == queue.name) {
            Some(new) => payload(&mut walk, (&queue.job, &new.job), true, path + ".job"),
            None => walk.breaking(&path, "is removed"),
        }
    }
    for queue in &new.queues {
        if !old.queues.iter().any(|old| old.name == queue.name) {
            walk.compatible(&entry("queues", &queue.name), "is new");
        }
    }
    walk.findings()
}

/// What the caller's document needs and the provider's does not describe. A caller that names a field which the
/// provider ignores goes on, but may have misspelt it: that finding is compatible.
#[must_use]
pub fn needs(caller: &Document, provider: &Document) -> Vec<Finding> {
    let mut walk = Walk::new(caller, provider, Sides::CallerAndProvider);
    for method in &caller.methods {
        let path = entry("operations", &method.name);
        match provider.method(&method.name) {
            Some(described) => operation(&mut walk, method, described, &path),
            None => {
                walk.breaking(&path, missing(&method.name, provider.methods.iter().map(|known| &*known.name)))
            }
        }
    }
    for topic in &caller.topics {
        let path = entry("topics", &topic.pattern);
        let fits = |known: &str| covers(known, &topic.pattern) || covers(&topic.pattern, known);
        match provider.topics.iter().find(|known| fits(&known.pattern)) {
            Some(known) => payload(&mut walk, (&topic.payload, &known.payload), false, path + ".payload"),
            None => walk.breaking(
                &path,
                missing(&topic.pattern, provider.topics.iter().map(|known| &*known.pattern)),
            ),
        }
    }
    for queue in &caller.queues {
        let path = entry("queues", &queue.name);
        match provider.queues.iter().find(|known| known.name == queue.name) {
            Some(known) => payload(&mut walk, (&queue.job, &known.job), true, path + ".job"),
            None => {
                walk.breaking(&path, missing(&queue.name, provider.queues.iter().map(|known| &*known.name)))
            }
        }
    }
    walk.findings()
}

fn entry(kind: &str, name: &str) -> String {
    format!("$.{kind}{}", path::field(name))
}

fn missing<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(nearest) => {
            format!("is not described by the provider: did you mean `{}`?", path::shown(nearest))
        }
        None => "is not described by the provider".into(),
    }
}

fn operation<'a>(walk: &mut Walk<'a>, old: &'a Method, new: &'a Method, path: &str) {
    match (view(&old.arguments), view(&new.arguments)) {
        (Some(old), Some(new)) => walk.add((old, new), true, format!("{path}.arguments")),
        (None, None) => {}
        (None, Some(_)) => walk.breaking(&format!("{path}.arguments"), walk.was("bytes", "JSON")),
        (Some(_), None) => walk.breaking(&format!("{path}.arguments"), walk.was("JSON", "bytes")),
    }
    payload(walk, (&old.result, &new.result), false, format!("{path}.result"));
    if walk.sides == Sides::Versions {
        for (from, to, what) in [(old, new, "is no longer an error"), (new, old, "is a new error")] {
            let is_in = |code: &str| to.errors.iter().any(|error| error.code == code);
            for error in from.errors.iter().filter(|error| !is_in(&error.code)) {
                walk.compatible(&format!("{path}.errors{}", path::field(&error.code)), what);
            }
        }
    }
}

fn view(arguments: &Arguments) -> Option<View<'_>> {
    match arguments {
        Arguments::Bytes => None,
        Arguments::Fields { fields, strict, .. } => Some(View::Record { fields, strict: *strict }),
        Arguments::Value(schema) => Some(View::Schema(schema)),
    }
}

fn payload<'a>(walk: &mut Walk<'a>, pair: (&'a Payload, &'a Payload), new_reads: bool, path: String) {
    match pair {
        (Payload::Bytes, Payload::Bytes) => {}
        (Payload::Bytes, Payload::Json { .. }) => walk.breaking(&path, walk.was("bytes", "JSON")),
        (Payload::Json { .. }, Payload::Bytes) => walk.breaking(&path, walk.was("JSON", "bytes")),
        (Payload::Json { schema: old, .. }, Payload::Json { schema: new, .. }) => {
            walk.add((View::Schema(old), View::Schema(new)), new_reads, path);
        }
    }
}
