//! The types that one value may have.

use std::{collections::HashSet, ptr};

use crate::{Field, Schema, Shape};

/// A type that values are judged by: a schema, or the fields of an object or of arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    Schema(&'a Schema),
    Record { fields: &'a [Field], strict: bool },
}

impl View<'_> {
    fn is(&self, other: &View<'_>) -> bool {
        match (self, other) {
            (View::Schema(one), View::Schema(other)) => ptr::eq(*one, *other),
            (View::Record { fields: one, strict }, View::Record { fields: other, strict: other_strict }) => {
                ptr::eq(*one, *other) && strict == other_strict
            }
            _ => false,
        }
    }
}

/// Types of which a value has to fit one. None of them is a union or a reference.
#[derive(Debug, Default)]
pub(crate) struct Union<'a> {
    pub(crate) members: Vec<View<'a>>,
    /// Whether a value may also be what a later version adds.
    pub(crate) open: bool,
}

impl<'a> Union<'a> {
    /// All types that `view` stands for. `named` finds types by name.
    pub(crate) fn of(view: View<'a>, named: impl Fn(&str) -> Option<&'a Schema>) -> Self {
        let mut union = Self::default();
        let mut names: HashSet<&str> = HashSet::new();
        let mut waiting = vec![view];
        while let Some(view) = waiting.pop() {
            let View::Schema(schema) = view else {
                union.members.push(view);
                continue;
            };
            match &schema.shape {
                Shape::Named(name) => {
                    if names.insert(name) {
                        waiting.extend(named(name).map(View::Schema));
                    }
                }
                Shape::Nullable(inner) => {
                    waiting.push(View::Schema(&NULL));
                    waiting.push(View::Schema(inner));
                }
                Shape::OneOf { options, open } => {
                    union.open |= open;
                    waiting.extend(options.iter().rev().map(View::Schema));
                }
                Shape::Record { fields, strict } => {
                    union.members.push(View::Record { fields, strict: *strict });
                }
                _ => union.members.push(view),
            }
        }
        union
    }
}

static NULL: Schema = Schema { description: String::new(), shape: Shape::Null };

/// The members of several unions, each once, and for each union the indices of its members.
pub(super) fn members<'a>(unions: &[Union<'a>]) -> (Vec<View<'a>>, Vec<Vec<usize>>) {
    let mut all: Vec<View<'a>> = Vec::new();
    let places = unions.iter().map(|union| {
        let place = |member: &View<'a>| {
            all.iter().position(|known| known.is(member)).unwrap_or_else(|| {
                all.push(*member);
                all.len() - 1
            })
        };
        union.members.iter().map(place).collect()
    });
    let places = places.collect();
    (all, places)
}
