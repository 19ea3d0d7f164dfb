//! Types of a contract in TypeScript.

use std::collections::{HashMap, HashSet};

use weir_openrpc::{Document, Field, Schema, Shape};

use super::{comment, doc, string};
use crate::{
    names::Scope,
    text::{Code, prose},
};

/// Writes a contract's types, and knows their names.
pub(super) struct Types<'d> {
    document: &'d Document,
    names: HashMap<&'d str, String>,
}

impl<'d> Types<'d> {
    pub(super) fn new(document: &'d Document, scope: &mut Scope, name: impl Fn(&str) -> String) -> Self {
        let names = document.types.iter().map(|(known, _)| (&**known, scope.take(&name(known)))).collect();
        Self { document, names }
    }

    /// Writes all types of the contract.
    pub(super) fn write(&self, code: &mut Code) {
        for (name, schema) in &self.document.types {
            let own = self.name(name);
            code.gap();
            match &schema.shape {
                Shape::Record { fields, .. } => {
                    doc(code, &schema.description);
                    if fields.is_empty() {
                        code.line(format!("export interface {own} {{}}"));
                        continue;
                    }
                    code.block(format!("export interface {own} {{"), "  ", |code| {
                        for field in fields {
                            doc(code, &field.description);
                            code.line(format!("{};", self.field(field)));
                        }
                    });
                }
                Shape::Words { words, open } if words.iter().any(|word| !word.description.is_empty()) => {
                    doc(code, &schema.description);
                    code.line(format!("export type {own} ="));
                    code.inside("  ", |code| {
                        for word in words {
                            doc(code, &word.description);
                            code.line(format!("| {}", string(&word.word)));
                        }
                        if *open {
                            code.line(format!("| {LATER_WORD}"));
                        }
                    });
                    code.append(";");
                }
                Shape::OneOf { options, open } => {
                    let mut lines = prose(&schema.description);
                    if *open {
                        lines.push("A later version of the contract may have more.".into());
                    }
                    comment(code, &lines);
                    code.line(format!("export type {own} ="));
                    code.inside("  ", |code| {
                        let mut known = HashSet::new();
                        for option in options {
                            let of = self.of(option);
                            if known.insert(of.clone()) {
                                doc(code, &option.description);
                                code.line(format!("| {of}"));
                            }
                        }
                        if options.is_empty() {
                            code.line("never");
                        }
                    });
                    code.append(";");
                }
                _ => {
                    doc(code, &schema.description);
                    code.line(format!("export type {own} = {};", self.of(schema)));
                }
            }
        }
    }

    pub(super) fn name(&self, name: &str) -> String {
        self.names.get(name).cloned().unwrap_or_else(|| "unknown".into())
    }

    /// Returns the type of a schema, in one line.
    pub(super) fn of(&self, schema: &Schema) -> String {
        match &schema.shape {
            Shape::Any => "Json".into(),
            Shape::Never => "never".into(),
            Shape::Null => "null".into(),
            Shape::Boolean => "boolean".into(),
            Shape::Integer { .. } | Shape::Number { .. } => "number".into(),
            Shape::String { .. } => "string".into(),
            Shape::Constant(value) => match value.as_str() {
                Some(text) => string(text),
                None => value.to_string(),
            },
            Shape::Words { words, open } => {
                let mut words: Vec<String> = words.iter().map(|word| string(&word.word)).collect();
                words.extend(open.then(|| LATER_WORD.to_owned()));
                words.join(" | ")
            }
            Shape::List { items, .. } => format!("{}[]", self.grouped(items)),
            Shape::Tuple(places) => {
                let places: Vec<String> = places.iter().map(|place| self.of(place)).collect();
                format!("[{}]", places.join(", "))
            }
            Shape::Map(values) => format!("{{ [key: string]: {} }}", self.of(values)),
            Shape::Record { fields, .. } if fields.is_empty() => "{ [key: string]: Json }".into(),
            Shape::Record { fields, .. } => {
                let fields: Vec<String> = fields.iter().map(|field| self.field(field)).collect();
                format!("{{ {} }}", fields.join("; "))
            }
            Shape::OneOf { options, .. } if options.is_empty() => "never".into(),
            Shape::OneOf { options, .. } => {
                let mut all: Vec<String> = options.iter().map(|option| self.of(option)).collect();
                let mut known = HashSet::new();
                all.retain(|of| known.insert(of.clone()));
                all.join(" | ")
            }
            Shape::Nullable(inner) => format!("{} | null", self.of(inner)),
            Shape::Named(name) => self.name(name),
        }
    }

    /// Returns the type that stands before `[]`, in brackets if it needs them.
    fn grouped(&self, schema: &Schema) -> String {
        let text = self.of(schema);
        let is_union =
            matches!(&schema.shape, Shape::Words { .. } | Shape::OneOf { .. } | Shape::Nullable(_));
        if is_union { format!("({text})") } else { text }
    }

    fn field(&self, field: &Field) -> String {
        let optional = if field.required { "" } else { "?" };
        format!("{}{optional}: {}", property(&field.name), self.of(&field.schema))
    }
}

/// The type of words of a later version. The intersection keeps the known words apart from it in an editor.
const LATER_WORD: &str = "(string & {})";

/// Returns the name of a property, in quotes if it is no name in JavaScript.
fn property(name: &str) -> String {
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
        && name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '$'));
    if is_name { name.to_owned() } else { string(name) }
}
