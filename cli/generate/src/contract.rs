//! A contract in the form of which the clients of all languages are written.

use weir_openrpc::{Arguments, Document, Field, Method, Role, Schema, Shape, Topic};

use crate::{
    names::{Scope, pascal},
    text::item,
};

/// A contract, with types for the arguments of its operations before its other types.
#[derive(Debug)]
pub(crate) struct Contract {
    pub(crate) document: Document,
    /// The number of types at the beginning of the document's list that are arguments alone.
    pub(crate) arguments: usize,
    /// What each operation takes, in the order of the document's methods.
    pub(crate) inputs: Vec<Input>,
}

/// What an operation takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    Nothing,
    Bytes,
    /// Arguments, which are the record of this name.
    Record(String),
    Value(Schema),
}

impl Contract {
    /// Returns each contract once, as its first provider describes it, or else its last caller.
    pub(crate) fn all(documents: &[Document]) -> Vec<Self> {
        let mut all: Vec<&Document> = Vec::new();
        for document in documents {
            match all.iter_mut().find(|other| other.contract == document.contract) {
                Some(other) if other.role == Role::Caller => *other = document,
                Some(_) => {}
                None => all.push(document),
            }
        }
        all.into_iter().map(Self::new).collect()
    }

    fn new(document: &Document) -> Self {
        let mut document = document.clone();
        let methods = std::mem::take(&mut document.methods);
        let mut arguments: Vec<(String, Schema)> = Vec::new();
        let mut inputs = Vec::new();
        for method in &methods {
            inputs.push(match &method.arguments {
                Arguments::Bytes => Input::Bytes,
                Arguments::Value(schema) => Input::Value(schema.clone()),
                Arguments::Fields { fields, strict: false, .. } if fields.is_empty() => Input::Nothing,
                Arguments::Fields { name, strict, fields } => {
                    let record = Shape::Record { fields: fields.clone(), strict: *strict };
                    Input::Record(named(&mut arguments, &document, method, name, record))
                }
            });
        }
        let count = arguments.len();
        arguments.append(&mut document.types);
        document.types = arguments;
        document.methods = methods;
        Self { document, arguments: count, inputs }
    }

    /// Returns the contract's name without its version.
    pub(crate) fn base_name(&self) -> &str {
        let name = self.document.contract.as_str();
        name.split_once('@').map_or(name, |(base, _)| base)
    }

    /// Takes a free name for the contract's client, in a language where clients are classes in one file.
    pub(crate) fn class_name(&self, scope: &mut Scope) -> String {
        scope.take(&format!("{}Client", pascal(self.base_name())))
    }

    /// Returns the name of a type in the output. It has the contract's name, too, if another contract has a type of
    /// that name.
    pub(crate) fn type_name(
        &self,
        all: &[Self],
        client: &str,
        name: &str,
        has: impl Fn(&Self) -> bool,
    ) -> String {
        let mut others = all.iter().filter(|other| other.document.contract != self.document.contract);
        let prefix = if others.any(has) { client.replacen("Client", "", 1) } else { String::new() };
        prefix + &pascal(name)
    }

    /// Returns the operations, and what they take.
    pub(crate) fn methods(&self) -> impl Iterator<Item = (&Method, &Input)> {
        self.document.methods.iter().zip(&self.inputs)
    }

    /// Returns the types, without those that are arguments alone.
    pub(crate) fn described_types(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.document.types.iter().skip(self.arguments).map(|(name, schema)| (&**name, schema))
    }

    /// Returns the name of a topic within the contract: `changed` for `settings.changed.>` of `settings@1`. It is
    /// `events` if the rest of the pattern has only wildcards.
    pub(crate) fn topic_name(&self, topic: &Topic) -> String {
        let pattern = topic.pattern.strip_prefix(self.base_name()).and_then(|rest| rest.strip_prefix('.'));
        let segments = pattern.unwrap_or(&topic.pattern).split('.');
        let segments: Vec<&str> = segments.filter(|segment| !matches!(*segment, "*" | ">")).collect();
        if segments.is_empty() { "events".to_owned() } else { segments.join("-") }
    }

    /// Returns the fields of a record of arguments.
    pub(crate) fn fields(&self, record: &str) -> &[Field] {
        match self.document.named(record).map(|schema| &schema.shape) {
            Some(Shape::Record { fields, .. }) => fields,
            _ => &[],
        }
    }
}

/// Returns the name for a record of arguments: that of the document, unless another type has it. Adds the record to
/// `arguments`, unless there is an equal one of that name.
fn named(
    arguments: &mut Vec<(String, Schema)>,
    document: &Document,
    method: &Method,
    name: &str,
    record: Shape,
) -> String {
    let longer = format!("{}{}", pascal(&method.name), pascal(name));
    let numbered = (2..).map(|number| format!("{longer}{number}"));
    for name in [name.to_owned(), longer.clone()].into_iter().chain(numbered) {
        let known = arguments.iter().find(|(known, _)| *known == name).map(|(_, schema)| schema);
        match known.or_else(|| document.named(&name)) {
            Some(known) if known.shape == record => return name,
            Some(_) => {}
            None => {
                let description = format!("Arguments of `{}`.", method.name);
                arguments.push((name.clone(), Schema { description, shape: record }));
                return name;
            }
        }
    }
    // The numbers have no end.
    String::new()
}

/// Returns lines of a comment on the contract's own errors, if an operation has some.
pub(crate) fn errors_doc(method: &Method) -> Vec<String> {
    let mut lines = Vec::new();
    if !method.errors.is_empty() {
        lines.extend([String::new(), "Codes of a `WeirError` that are the contract's own:".to_owned()]);
    }
    for error in &method.errors {
        lines.extend(item(&format!("`{}`", error.code), &error.description));
    }
    lines
}

/// Returns the string, if the type has only that one value.
pub(crate) fn word_of(schema: &Schema) -> Option<&str> {
    match &schema.shape {
        Shape::Constant(value) => value.as_str(),
        Shape::Words { words, open: false } => match &**words {
            [only] => Some(&only.word),
            _ => None,
        },
        _ => None,
    }
}
