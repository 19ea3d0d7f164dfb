//! The description of one contract.

use weir_names::{ContractName, Role};

use crate::{Field, Schema};

/// What a contract is: its operations, topics and queues, and their types.
///
/// Every [`Shape::Named`](crate::Shape::Named) in it is in `types`, and no type consists of itself alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The contract.
    pub contract: ContractName,
    /// What it is for. May be empty.
    pub description: String,
    /// Which side describes it.
    pub role: Role,
    /// Its operations, in the order of the document. No two have one name.
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
    /// What it does. May be empty.
    pub description: String,
    /// What it takes.
    pub arguments: Arguments,
    /// What it answers.
    pub result: Payload,
    /// Errors of the contract's own that it may answer.
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
    /// Any other JSON. No payload stands for `null`.
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
    /// When it is answered. May be empty.
    pub description: String,
}

/// A topic, or several by a pattern.
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

    /// The type of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Schema> {
        self.types.iter().find_map(|(known, schema)| (known == name).then_some(schema))
    }

    /// The type behind names: never [`Shape::Named`](crate::Shape::Named) in a parsed document.
    #[must_use]
    pub fn resolve<'a>(&'a self, schema: &'a Schema) -> &'a Schema {
        let mut schema = schema;
        for _ in 0..=self.types.len() {
            match &schema.shape {
                crate::Shape::Named(name) => match self.named(name) {
                    Some(named) => schema = named,
                    None => return schema,
                },
                _ => return schema,
            }
        }
        schema
    }
}
