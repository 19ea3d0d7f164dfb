//! The description of one contract, and those of one component or program.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use weir_names::{ContractName, Role};

use crate::{Field, Schema, Shape};

/// What a contract is: its operations, topics and queues, and their types.
///
/// In a parsed document, every [`Shape::Named`] is in `types`, and a type contains itself only inside a list, a tuple,
/// a map or a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The contract.
    pub contract: ContractName,
    /// What the contract is for. May be empty.
    pub description: String,
    /// The side that describes the contract.
    pub role: Role,
    /// The interface of a component whose functions are the operations, as in `acme:greeter/api@1.0.0`, or `*` for the
    /// functions that it exports by themselves. `None` for a contract that a program serves or calls itself.
    pub export: Option<String>,
    /// The operations, in the order of the document. No two have the same name.
    pub methods: Vec<Method>,
    /// Topics that the contract's providers publish.
    pub topics: Vec<Topic>,
    /// Shared queues that belong to the contract.
    pub queues: Vec<Queue>,
    /// Types with a name.
    pub types: Vec<(String, Schema)>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// The operation, without the contract.
    pub name: String,
    /// What the operation does. May be empty.
    pub description: String,
    /// The arguments.
    pub arguments: Arguments,
    /// The result.
    pub result: Payload,
    /// The contract's own errors that the operation may answer.
    pub errors: Vec<ErrorCode>,
}

/// What an operation takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// Raw bytes.
    Bytes,
    /// An object with a field for each argument. No payload, or `null`, stands for `{}`.
    Fields {
        /// The name of the argument type.
        name: String,
        /// Whether other arguments are refused.
        strict: bool,
        /// The arguments.
        fields: Vec<Field>,
    },
    /// Any other JSON. No payload, or `null`, stands for `null`, or for `{}` if the type does not take `null`.
    Value(Schema),
}

/// What an operation answers, a topic carries, or a queue holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Raw bytes.
    Bytes,
    /// JSON.
    Json {
        /// The name of the type. Only a result has one; else it is empty.
        name: String,
        /// The type.
        schema: Schema,
    },
}

/// An error that a provider answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// The code, such as `not-found`.
    pub code: String,
    /// When the provider answers this error. May be empty.
    pub description: String,
}

/// A topic, or a pattern of topics.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// The topic or pattern.
    pub pattern: String,
    /// What is published there. May be empty.
    pub description: String,
    /// What an event carries.
    pub payload: Payload,
}

/// A shared queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The name.
    pub name: String,
    /// What is put there. May be empty.
    pub description: String,
    /// What a job is.
    pub job: Payload,
}

impl Document {
    /// The operation of this name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// The document among these that describes an exported interface, under the contract that stands for it.
    #[must_use]
    pub fn of_export(documents: &[Self], export: &str, contract: &ContractName) -> Option<Self> {
        let is_it = |it: &&Self| it.role == Role::Provider && it.export.as_deref() == Some(export);
        Some(Self { contract: contract.clone(), ..documents.iter().find(is_it)?.clone() })
    }

    /// The type of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Schema> {
        self.types.iter().find_map(|(known, schema)| (known == name).then_some(schema))
    }

    /// Follows names to the type that they stand for. In a parsed document, the result is never [`Shape::Named`].
    #[must_use]
    pub fn resolve<'a>(&'a self, schema: &'a Schema) -> &'a Schema {
        let mut schema = schema;
        for _ in 0..=self.types.len() {
            match &schema.shape {
                Shape::Named(name) => match self.named(name) {
                    Some(named) => schema = named,
                    None => return schema,
                },
                _ => return schema,
            }
        }
        schema
    }
}

/// Documents as text, one on each line, within the bounds of [`Document::parse_section`].
#[derive(Debug, Default)]
pub struct Descriptions {
    text: Arc<str>,
    /// Contracts that stand for exported interfaces.
    exports: BTreeMap<ContractName, String>,
    kept: OnceLock<Box<[Document]>>,
}

impl Descriptions {
    /// The documents in this text, which is not parsed here. A text that cannot be parsed has no documents, so a caller
    /// that wants to know of errors parses it first.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), exports: BTreeMap::new(), kept: OnceLock::new() }
    }

    /// The documents of these exported interfaces alone, each under the contract that stands for it.
    #[must_use]
    pub fn of_exports(&self, exports: BTreeMap<ContractName, String>) -> Self {
        Self { text: self.text.clone(), exports, kept: OnceLock::new() }
    }

    /// Whether the text is empty. A text that cannot be parsed is not empty, although it has no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Parses all documents, and does not keep them. That takes about a millisecond for the longest text.
    #[must_use]
    pub fn documents(&self) -> Vec<Document> {
        let documents = Document::parse_section(self.text.as_bytes()).unwrap_or_default();
        if self.exports.is_empty() {
            return documents;
        }
        let named =
            |(contract, export): (&ContractName, &String)| Document::of_export(&documents, export, contract);
        self.exports.iter().filter_map(named).collect()
    }

    /// The document in which a provider describes a contract. The first call parses all documents and keeps them.
    #[must_use]
    pub fn of_provider(&self, contract: &str) -> Option<&Document> {
        let documents = self.kept.get_or_init(|| self.documents().into());
        let is_it = |it: &&Document| it.role == Role::Provider && it.contract.as_str() == contract;
        documents.iter().find(is_it)
    }

    /// Whether [`of_provider`](Self::of_provider) has parsed the documents.
    #[must_use]
    pub fn is_parsed(&self) -> bool {
        self.kept.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"openrpc":"1.3.2","info":{"title":"it@1","version":"1"},"methods":[]}"#;

    #[test]
    fn documents_are_parsed_when_something_is_checked_by_them_and_kept() {
        let descriptions = Descriptions::new(DOCUMENT);
        assert_eq!(descriptions.documents().len(), 1);
        assert!(!descriptions.is_parsed());
        let first: *const Document = descriptions.of_provider("it@1").unwrap();
        assert!(descriptions.is_parsed() && std::ptr::eq(first, descriptions.of_provider("it@1").unwrap()));
        assert_eq!(descriptions.of_provider("it@2"), None);
    }

    #[test]
    fn what_no_parser_takes_describes_nothing() {
        let descriptions = Descriptions::new("{}");
        assert_eq!((descriptions.documents(), descriptions.of_provider("it@1")), (Vec::new(), None));
        assert!(Descriptions::default().is_empty());
    }
}
