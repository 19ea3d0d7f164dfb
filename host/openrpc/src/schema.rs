//! The JSON that a type reads and writes.

use serde_json::Value;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// What the type is, for people. May be empty.
    pub description: String,
    /// The JSON of the type.
    pub shape: Shape,
}

/// The JSON of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Any value.
    Any,
    /// No value.
    Never,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without fraction.
    Integer {
        /// The least value.
        minimum: Option<i128>,
        /// The greatest value.
        maximum: Option<i128>,
        /// The format, such as `int32`, `uint64` or `uint`. A known format bounds the value, too.
        format: Option<String>,
    },
    /// A number.
    Number {
        /// The least value.
        minimum: Option<f64>,
        /// The greatest value.
        maximum: Option<f64>,
        /// The format, such as `float` or `double`. It is for people and not checked.
        format: Option<String>,
    },
    /// A text.
    String {
        /// The format, such as `date-time`. It is for people and not checked.
        format: Option<String>,
        /// The least number of characters.
        min_length: Option<u64>,
        /// The greatest number of characters.
        max_length: Option<u64>,
    },
    /// This value alone.
    Constant(Value),
    /// One of these strings.
    Words {
        /// The strings.
        words: Vec<Word>,
        /// Whether a later version of the contract may have more. Then any string fits.
        open: bool,
    },
    /// A list of values of one type.
    List {
        /// The type.
        items: Box<Schema>,
        /// The least number of values.
        min: Option<u64>,
        /// The greatest number of values.
        max: Option<u64>,
        /// Whether the list is a set. This is for people and not checked.
        unique: bool,
    },
    /// A list with a type for each place.
    Tuple(Vec<Schema>),
    /// An object with any names and values of one type.
    Map(Box<Schema>),
    /// An object with fields.
    Record {
        /// The fields, in the order of the document.
        fields: Vec<Field>,
        /// Whether other fields are refused.
        strict: bool,
    },
    /// One of several types.
    OneOf {
        /// The types.
        options: Vec<Schema>,
        /// Whether a later version of the contract may have more.
        open: bool,
    },
    /// The type, or `null`.
    Nullable(Box<Schema>),
    /// The type of this name in [`Document::types`](crate::Document::types). A parsed document always has this type.
    Named(String),
}

/// A field of an object, or a named argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// What it is, for people. May be empty.
    pub description: String,
    /// Whether the field has to be there.
    pub required: bool,
    /// The type.
    pub schema: Schema,
}

/// A string that stands for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The string.
    pub word: String,
    /// What it stands for, for people. May be empty.
    pub description: String,
}

impl From<Shape> for Schema {
    fn from(shape: Shape) -> Self {
        Self { description: String::new(), shape }
    }
}
