//! Types that contain themselves.

use std::collections::HashSet;

use weir_openrpc::{Document, Schema, Shape};

/// What leads from one type to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A value lies within another one. Lists and maps hold theirs elsewhere.
    Inside,
    /// A type is only a name for another one, or for a list or map of it.
    Alias,
}

/// Whether a type leads to the type named `to`.
pub(crate) fn leads_to(document: &Document, from: &Schema, to: &str, way: Way) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![from];
    while let Some(schema) = open.pop() {
        match &schema.shape {
            Shape::Named(name) if name == to => return true,
            Shape::Named(name) => {
                if seen.insert(&**name)
                    && let Some(schema) = document.named(name)
                {
                    open.push(schema);
                }
            }
            Shape::Nullable(inner) => open.push(inner),
            Shape::Tuple(places) => open.extend(places),
            Shape::List { items: inner, .. } | Shape::Map(inner) if way == Way::Alias => open.push(inner),
            // In Rust an array is no list.
            Shape::List { items: inner, min, max, .. } if min.is_some() && min == max => open.push(inner),
            Shape::Record { fields, .. } if way == Way::Inside => {
                open.extend(fields.iter().map(|field| &field.schema));
            }
            Shape::OneOf { options, .. } if way == Way::Inside => open.extend(options),
            _ => {}
        }
    }
    false
}
