//! The JSON of a type, as a constant: the part of a contract's description that comes from its types.
//!
//! The derive macro `weir_sdk::Shape` writes the constants, from the same attributes that serde reads. Knows
//! nothing of contracts.

mod definitions;
mod types;
mod write;

use std::mem::MaybeUninit;

pub(crate) use self::{
    definitions::{Definitions, in_place},
    write::Schemas,
};

/// A type with a description of its JSON. Derived with `#[derive(weir_sdk::Shape)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not describe its JSON",
    label = "not described",
    note = "add `#[derive(weir_sdk::Shape)]` to the type, or describe a field of it as another type with \
            `#[shape(as = \"Type\")]`"
)]
pub trait Shape {
    /// The description. The derive refers to this, so a constant of a recursive type is finite.
    const SCHEMA: &'static Schema;
}

/// A JSON Schema, as far as types of serde have one.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    /// Any value.
    Any,
    /// A value of one JSON type.
    Simple {
        /// The JSON type, such as `integer`.
        kind: &'static str,
        /// Further keywords, as JSON that begins with a comma, such as `,"minimum":0`.
        keywords: &'static str,
    },
    /// Exactly this string.
    Word(&'static str),
    /// One of these strings.
    Words {
        /// The strings.
        words: &'static [&'static str],
        /// Whether later versions may add strings.
        open: bool,
    },
    /// A value, or `null`. A field of this type may be absent.
    Nullable(&'static Schema),
    /// A list.
    List(&'static Schema),
    /// A list of different values.
    Set(&'static Schema),
    /// A list of exactly this many values.
    Array(&'static Schema, usize),
    /// An object with values of one type.
    Map(&'static Schema),
    /// A list with a type for each place.
    Tuple(&'static [Described]),
    /// An object with fields.
    Record {
        /// The fields.
        fields: &'static [Field],
        /// Whether other fields are refused.
        strict: bool,
    },
    /// An object type with a further field in front, which holds a word.
    Tagged {
        /// Name of the field.
        tag: &'static str,
        /// The word.
        word: &'static str,
        /// A record or a map.
        content: &'static Schema,
    },
    /// A value of one of several types.
    OneOf {
        /// The possibilities. No two fit one value.
        options: &'static [Described],
        /// Whether later versions may add possibilities.
        open: bool,
    },
    /// A type with a name.
    Named(Reference),
}

impl Schema {
    /// Whether a field of this type may be absent.
    #[must_use]
    pub const fn is_optional(&self) -> bool {
        matches!(self, Self::Nullable(_))
    }
}

/// A type with a name, which a contract describes once.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The name within a contract.
    pub name: &'static str,
    /// A number that differs between types: the [`type_id`] of the type's path and the place of its source.
    pub id: u64,
    /// The type arguments, if the type is generic.
    pub arguments: &'static [&'static Schema],
    /// What it is, for people. May be empty.
    pub doc: &'static str,
    /// The JSON of the type.
    pub schema: &'static Schema,
}

/// A reference to a type's definition.
///
/// The compiler follows every plain reference in a constant, and refuses the constant of a recursive type, which would
/// need itself. It does not follow this kind of reference.
#[derive(Clone, Copy, Debug)]
pub struct Reference(MaybeUninit<&'static Definition>);

impl Reference {
    /// A reference to a definition. It may be a static whose own value is not known yet.
    #[must_use]
    pub const fn new(definition: &'static Definition) -> Self {
        Self(MaybeUninit::new(definition))
    }

    /// The definition.
    #[must_use]
    pub const fn get(self) -> &'static Definition {
        #[expect(unsafe_code, reason = "the only constructor initializes it")]
        // SAFETY: `new` is the only constructor, and it initializes the value.
        unsafe {
            self.0.assume_init()
        }
    }
}

/// A field of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// What it is, for people. May be empty.
    pub doc: &'static str,
    /// Whether it may be absent.
    pub optional: bool,
    /// The type.
    pub schema: &'static Schema,
}

/// A type, and what it means in its place.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// What it is, for people. May be empty.
    pub doc: &'static str,
    /// The type.
    pub schema: &'static Schema,
}

/// A number for a text, almost certainly different from that of any other text (FNV-1a).
#[must_use]
pub const fn type_id(text: &str) -> u64 {
    let mut id = 0xcbf2_9ce4_8422_2325;
    each!(byte in text.as_bytes() => {
        id = (id ^ *byte as u64).wrapping_mul(0x100_0000_01b3);
    });
    id
}
