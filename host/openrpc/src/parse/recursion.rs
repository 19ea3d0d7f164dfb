//! Types that consist of themselves alone, such as one that is a reference to itself: no value has one.

use std::collections::HashSet;

use super::DocumentError;
use crate::{Document, Schema, Shape, path::shown};

/// The document, if no type is such.
pub(super) fn checked(document: Document) -> Result<Document, DocumentError> {
    let mut finite: HashSet<&str> = HashSet::new();
    for (name, _) in &document.types {
        let mut open = vec![Step::Into(name)];
        let mut within: HashSet<&str> = HashSet::new();
        while let Some(step) = open.pop() {
            let name = match step {
                Step::Out(name) => {
                    within.remove(name);
                    finite.insert(name);
                    continue;
                }
                Step::Into(name) if finite.contains(name) => continue,
                Step::Into(name) => name,
            };
            if !within.insert(name) {
                return Err(DocumentError::new(format_args!("type `{}` consists of itself", shown(name)))
                    .at("schemas")
                    .at("components"));
            }
            open.push(Step::Out(name));
            if let Some(schema) = document.named(name) {
                same_value(schema, &mut |name| open.push(Step::Into(name)));
            }
        }
    }
    Ok(document)
}

enum Step<'a> {
    Into(&'a str),
    Out(&'a str),
}

/// Calls `found` with the types that the same value has, too.
fn same_value<'a>(schema: &'a Schema, found: &mut impl FnMut(&'a str)) {
    match &schema.shape {
        Shape::Named(name) => found(name),
        Shape::Nullable(inner) => same_value(inner, found),
        Shape::OneOf { options, .. } => {
            for option in options {
                same_value(option, found);
            }
        }
        _ => {}
    }
}
