//! Types of a contract in Python.

use std::collections::{HashMap, HashSet, VecDeque};

use weir_openrpc::{Document, Field, Schema, Shape, Word};

use super::{BUILT_IN, KEYWORDS, docstring, string, two_gaps};
use crate::{
    contract::{Contract, word_of},
    names::{Scope, pascal},
    text::{Code, item, prose},
};

/// Writes a contract's types, and knows their names.
pub(super) struct Types<'d, 's> {
    contract: &'d Contract,
    names: HashMap<&'d str, String>,
    scope: &'s mut Scope,
    /// Types without a name in the document, to be written after the one that they are in.
    waiting: VecDeque<(String, Schema)>,
    /// Built-in types that a method of the class hides.
    pub(super) hidden: HashSet<String>,
}

impl<'d, 's> Types<'d, 's> {
    pub(super) fn new(contract: &'d Contract, scope: &'s mut Scope, name: impl Fn(&str) -> String) -> Self {
        let types = contract.described_types();
        let names = types.map(|(known, _)| (known, scope.take(&name(known)))).collect();
        Self { contract, names, scope, waiting: VecDeque::new(), hidden: HashSet::new() }
    }

    /// Writes all types of the contract.
    pub(super) fn write(&mut self, code: &mut Code) {
        self.hidden.clear();
        let contract = self.contract;
        self.write_waiting(code);
        for (name, schema) in contract.described_types() {
            let own = self.name(name);
            self.write_type(code, &own, schema);
            self.write_waiting(code);
        }
    }

    fn write_waiting(&mut self, code: &mut Code) {
        while let Some((name, schema)) = self.waiting.pop_front() {
            self.write_type(code, &name, &schema);
        }
    }

    fn write_type(&mut self, code: &mut Code, name: &str, schema: &Schema) {
        two_gaps(code);
        match &schema.shape {
            Shape::Record { fields, .. } => self.record(code, name, &schema.description, fields),
            shape => {
                let of = self.alternatives(schema, name);
                // A literal names no type that comes later, so it needs no quotes.
                let is_plain = matches!(shape, Shape::Words { .. } | Shape::Constant(_));
                let of = if is_plain { of } else { string(&of) };
                code.line(format!("{name}: TypeAlias = {of}"));
                let mut lines = prose(&schema.description);
                match shape {
                    Shape::Words { words, open } => described(&mut lines, words, *open),
                    Shape::OneOf { open: true, .. } => described(&mut lines, &[], true),
                    _ => {}
                }
                docstring(code, &lines);
            }
        }
    }

    fn record(&mut self, code: &mut Code, name: &str, description: &str, fields: &[Field]) {
        let types: Vec<String> = fields.iter().map(|field| self.of_field(field, name)).collect();
        if fields.iter().all(|field| is_name(&field.name)) {
            code.line(format!("class {name}(TypedDict):"));
            code.inside("    ", |code| {
                docstring(code, &prose(description));
                for (field, of) in fields.iter().zip(types) {
                    code.gap();
                    code.line(format!("{}: {of}", field.name));
                    docstring(code, &prose(&field.description));
                }
                if fields.is_empty() && description.is_empty() {
                    code.line("pass");
                }
            });
            return;
        }
        code.line(format!("{name} = TypedDict("));
        code.line(format!("    \"{name}\","));
        code.line("    {");
        code.inside("        ", |code| {
            for (field, of) in fields.iter().zip(types) {
                for line in prose(&field.description) {
                    code.line(format!("# {line}").trim_end());
                }
                code.line(format!("{}: {},", string(&field.name), string(&of)));
            }
        });
        code.line("    },");
        code.line(")");
        docstring(code, &prose(description));
    }

    fn name(&self, name: &str) -> String {
        self.names.get(name).cloned().unwrap_or_else(|| "Json".into())
    }

    fn of_field(&mut self, field: &Field, name: &str) -> String {
        let of = self.of(
            &field.schema,
            &format!("{name}{}", pascal(&format!("a-{}", field.name)).trim_start_matches('A')),
        );
        if field.required { of } else { format!("NotRequired[{of}]") }
    }

    /// Returns the type of a schema. If it needs a name, that begins as `hint`.
    pub(super) fn of(&mut self, schema: &Schema, hint: &str) -> String {
        match &schema.shape {
            Shape::Record { fields, .. } if fields.is_empty() => {
                format!("{}[{}, Json]", self.built_in("dict"), self.built_in("str"))
            }
            Shape::Record { .. } => {
                let name = self.scope.take(&pascal(hint));
                self.waiting.push_back((name.clone(), schema.clone()));
                name
            }
            _ => self.alternatives(schema, hint),
        }
    }

    fn alternatives(&mut self, schema: &Schema, hint: &str) -> String {
        match &schema.shape {
            Shape::Any | Shape::Record { .. } => "Json".into(),
            Shape::Never => "Never".into(),
            Shape::Null => "None".into(),
            Shape::Boolean => self.built_in("bool"),
            Shape::Integer { .. } => self.built_in("int"),
            Shape::Number { .. } => self.built_in("float"),
            Shape::String { .. } => self.built_in("str"),
            Shape::Constant(value) => match (value.as_str(), value.as_bool()) {
                (Some(text), _) => format!("Literal[{}]", string(text)),
                (None, Some(true)) => "Literal[True]".into(),
                (None, Some(false)) => "Literal[False]".into(),
                (None, None) if value.is_f64() => self.built_in("float"),
                (None, None) => format!("Literal[{value}]"),
            },
            Shape::Words { words, open } => {
                let words: Vec<String> = words.iter().map(|word| string(&word.word)).collect();
                let known = format!("Literal[{}]", words.join(", "));
                if *open { format!("{known} | {}", self.built_in("str")) } else { known }
            }
            Shape::List { items, .. } => {
                let of = self.of(items, &format!("{hint}Item"));
                format!("{}[{of}]", self.built_in("list"))
            }
            // JSON has no tuples: they come as lists.
            Shape::Tuple(places) => {
                let of = self.union(places, hint);
                format!("{}[{of}]", self.built_in("list"))
            }
            Shape::Map(values) => {
                let of = self.of(values, &format!("{hint}Value"));
                format!("{}[{}, {of}]", self.built_in("dict"), self.built_in("str"))
            }
            Shape::OneOf { options, .. } => self.union(options, hint),
            Shape::Nullable(inner) => {
                let of = self.of(inner, hint);
                format!("{of} | None")
            }
            Shape::Named(name) => self.name(name),
        }
    }

    fn union(&mut self, options: &[Schema], hint: &str) -> String {
        let mut all: Vec<String> = Vec::new();
        for option in options {
            let of = self.of(option, &format!("{hint}{}", option_name(option)));
            if !all.contains(&of) {
                all.push(of);
            }
        }
        if all.is_empty() { "Never".into() } else { all.join(" | ") }
    }

    pub(super) fn built_in(&self, name: &str) -> String {
        if self.hidden.contains(name) { format!("builtins.{name}") } else { name.to_owned() }
    }

    pub(super) fn document(&self) -> &'d Document {
        &self.contract.document
    }
}

/// Returns what tells a possibility from others, for its name: the word in its first field with one, or its only field.
fn option_name(option: &Schema) -> String {
    let Shape::Record { fields, .. } = &option.shape else { return String::new() };
    let word = fields.iter().find_map(|field| word_of(&field.schema));
    match (word, &**fields) {
        (Some(word), _) => pascal(word),
        (None, [field]) => pascal(&field.name),
        _ => "Object".into(),
    }
}

fn described(lines: &mut Vec<String>, words: &[Word], open: bool) {
    let mut more: Vec<String> = Vec::new();
    for Word { word, description } in words {
        if !description.is_empty() {
            more.extend(item(&format!("`{word}`"), description));
        }
    }
    if open {
        more.push("A later version of the contract may have more.".into());
    }
    if !lines.is_empty() && !more.is_empty() {
        lines.push(String::new());
    }
    lines.append(&mut more);
}

/// Whether a key can stand as a name in a class. A name with two underscores in front means something else there, and a
/// name of a built-in type would hide the type.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && !name.starts_with("__")
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !KEYWORDS.contains(&name)
        && !BUILT_IN.contains(&name)
}
