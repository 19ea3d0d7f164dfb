//! What tells the possibilities of a type apart.

use std::collections::HashSet;

use weir_openrpc::{Document, Field, Schema, Shape};

use crate::contract::word_of;

/// A type with several possibilities, by what tells them apart.
#[derive(Debug)]
pub(crate) enum Union<'d> {
    /// Objects that all have a field `tag`, each with another word in it.
    Tagged { tag: &'d str, variants: Vec<Variant<'d>>, strict: bool },
    /// Words, and objects with one field each. The word or the name of the field tells them apart.
    Named(Vec<NamedVariant<'d>>),
    /// Only their JSON tells them apart.
    Plain,
}

#[derive(Debug)]
pub(crate) struct Variant<'d> {
    pub(crate) word: &'d str,
    pub(crate) description: &'d str,
    /// The fields, without the one with the word.
    pub(crate) fields: Vec<&'d Field>,
}

#[derive(Debug)]
pub(crate) struct NamedVariant<'d> {
    pub(crate) name: &'d str,
    pub(crate) description: &'d str,
    /// The type of the field. `None` for a word.
    pub(crate) content: Option<&'d Schema>,
}

impl<'d> Union<'d> {
    pub(crate) fn of(document: &'d Document, options: &'d [Schema]) -> Self {
        tagged(document, options).or_else(|| named(options)).unwrap_or(Self::Plain)
    }
}

fn tagged<'d>(document: &'d Document, options: &'d [Schema]) -> Option<Union<'d>> {
    let records: Vec<(&str, &[Field], bool)> = options
        .iter()
        .map(|option| match &document.resolve(option).shape {
            Shape::Record { fields, strict } => Some((&*option.description, &**fields, *strict)),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (_, first, strict) = records.first()?;
    let tag = first.iter().map(|field| &*field.name).find(|tag| {
        let words: Option<Vec<&str>> = records.iter().map(|(_, fields, _)| word(fields, tag)).collect();
        words.is_some_and(|words| are_different(&words))
    })?;
    let variants = records.iter().map(|&(description, fields, _)| {
        let word = word(fields, tag)?;
        Some(Variant { word, description, fields: fields.iter().filter(|field| field.name != tag).collect() })
    });
    Some(Union::Tagged { tag, variants: variants.collect::<Option<_>>()?, strict: *strict })
}

/// Returns the only word that the field `tag` may have, if the field is required and has only one.
fn word<'d>(fields: &'d [Field], tag: &str) -> Option<&'d str> {
    fields.iter().find(|field| field.required && field.name == tag).and_then(|field| word_of(&field.schema))
}

fn named<'d>(options: &'d [Schema]) -> Option<Union<'d>> {
    let mut variants = Vec::new();
    for option in options {
        let description = &*option.description;
        match &option.shape {
            Shape::Words { words, open: false } => variants.extend(words.iter().map(|word| NamedVariant {
                name: &word.word,
                description: &word.description,
                content: None,
            })),
            Shape::Constant(word) => {
                variants.push(NamedVariant { name: word.as_str()?, description, content: None });
            }
            Shape::Record { fields, strict: true } => match &**fields {
                [field] if field.required => {
                    variants.push(NamedVariant {
                        name: &field.name,
                        description: if description.is_empty() { &field.description } else { description },
                        content: Some(&field.schema),
                    });
                }
                _ => return None,
            },
            _ => return None,
        }
    }
    let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
    (variants.iter().any(|variant| variant.content.is_some()) && are_different(&names))
        .then_some(Union::Named(variants))
}

fn are_different(words: &[&str]) -> bool {
    words.iter().collect::<HashSet<_>>().len() == words.len()
}
