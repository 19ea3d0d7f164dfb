//! Whether a new version of a contract may replace an old one: each side must be able to read what the other writes.
//!
//! Callers write arguments, and providers write results and events. Jobs of a queue are judged like arguments, because
//! jobs from before the change may still be in the queue.

mod change;
mod scalar;
mod walk;

use std::fmt;

use weir_names::rules::covers;

use self::{change::Sides, walk::Walk};
use crate::{Arguments, Document, Method, Payload, check::View, check::nearest, path};

/// A difference between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The place of the difference, such as `$.operations.get.result.key`.
    pub path: String,
    /// What differs at that place.
    pub message: String,
    /// Whether callers and providers that go by different documents may fail.
    pub severity: Severity,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A caller that goes by one document and a provider that goes by the other may fail.
    Breaking,
    /// A caller that goes by one document and a provider that goes by the other work together.
    Compatible,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path, self.message)
    }
}

/// The differences from `old` to `new`, and what each means for callers and providers of `old`.
#[must_use]
pub fn compare(old: &Document, new: &Document) -> Vec<Finding> {
    let mut walk = Walk::new(old, new, Sides::Versions);
    if old.contract != new.contract {
        walk.breaking("$", format!("was `{}`, and is `{}`", old.contract, new.contract));
    }
    documents(walk, old, new)
}

/// What the caller's document needs and the provider's does not describe, or describes otherwise. A field that only the
/// caller describes is reported even where it is compatible, because the caller may have misspelt it.
#[must_use]
pub fn needs(caller: &Document, provider: &Document) -> Vec<Finding> {
    documents(Walk::new(caller, provider, Sides::CallerAndProvider), caller, provider)
}

fn documents<'a>(mut walk: Walk<'a>, old: &'a Document, new: &'a Document) -> Vec<Finding> {
    let walk = &mut walk;
    let sides = walk.sides;
    let is_same = |new: &str, old: &str| new == old;
    entries(walk, "operations", (&old.methods, &new.methods), |it| &it.name, is_same, operation);
    let is_covered =
        |new: &str, old: &str| covers(new, old) || (sides == Sides::CallerAndProvider && covers(old, new));
    entries(
        walk,
        "topics",
        (&old.topics, &new.topics),
        |it| &it.pattern,
        is_covered,
        |walk, old, new, path| {
            payload(walk, (&old.payload, &new.payload), false, path + ".payload");
        },
    );
    entries(
        walk,
        "queues",
        (&old.queues, &new.queues),
        |it| &it.name,
        is_same,
        |walk, old, new, path| {
            payload(walk, (&old.job, &new.job), true, path + ".job");
        },
    );
    std::mem::take(&mut walk.findings)
}

/// Compares the entries of one kind. `fits` takes the names of a new entry and of an old one, and says whether the new
/// one stands for the old one.
fn entries<'a, T>(
    walk: &mut Walk<'a>,
    kind: &str,
    (olds, news): (&'a [T], &'a [T]),
    name: fn(&T) -> &str,
    fits: impl Fn(&str, &str) -> bool,
    compare: impl Fn(&mut Walk<'a>, &'a T, &'a T, String),
) {
    let path = |entry: &T| format!("$.{kind}{}", path::field(name(entry)));
    for old in olds {
        match (news.iter().find(|new| fits(name(new), name(old))), walk.sides) {
            (Some(new), _) => compare(walk, old, new, path(old)),
            (None, Sides::Versions) => walk.breaking(&path(old), "is removed"),
            (None, Sides::CallerAndProvider) => {
                walk.breaking(&path(old), missing(name(old), news.iter().map(name)));
            }
        }
    }
    if walk.sides == Sides::Versions {
        for new in news.iter().filter(|new| !olds.iter().any(|old| fits(name(new), name(old)))) {
            walk.compatible(&path(new), "is new");
        }
    }
}

fn missing<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(nearest) => {
            format!("is not described by the provider: did you mean `{}`?", path::shown(nearest))
        }
        None => "is not described by the provider".into(),
    }
}

fn operation<'a>(walk: &mut Walk<'a>, old: &'a Method, new: &'a Method, path: String) {
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

/// The type of the arguments, or nothing if they are bytes.
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
