//! The types of functions as far as values have a JSON form, taken from compiled components.

use wasmtime::component::types::{ComponentFunc, Type};
use weir_names::harmless;

/// The most levels of a value.
pub(super) const MAX_LEVELS: usize = 32;

/// The most types in one interface, each use counted.
const MAX_TYPES: usize = 4096;

/// A type whose values have a JSON form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueType {
    Bool,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
    Float32,
    Float64,
    Char,
    String,
    /// A `list<u8>`.
    Bytes,
    List(Box<Self>),
    Record(Box<[(Box<str>, Self)]>),
    Tuple(Box<[Self]>),
    Variant(Box<[(Box<str>, Option<Self>)]>),
    Enum(Box<[Box<str>]>),
    Option(Box<Self>),
    Result {
        ok: Option<Box<Self>>,
        error: Option<Box<Self>>,
    },
    Flags(Box<[Box<str>]>),
}

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Signature {
    pub(super) parameters: Box<[(Box<str>, ValueType)]>,
    pub(super) returns: Returns,
}

impl Signature {
    /// Whether the payload and the answer are bytes themselves: the only argument is bytes, and so is what is returned.
    pub(super) fn is_of_bytes(&self) -> bool {
        let is_bytes = |ty: &ValueType| *ty == ValueType::Bytes;
        let answers_bytes = match &self.returns {
            Returns::Nothing => true,
            Returns::Value(ty) => is_bytes(ty),
            Returns::Fallible { ok, .. } => ok.as_ref().is_none_or(is_bytes),
        };
        answers_bytes && matches!(&*self.parameters, [(_, ValueType::Bytes)])
    }
}

/// What a function returns.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Returns {
    Nothing,
    Value(ValueType),
    /// A `result`, whose error is an error of the operation.
    Fallible {
        ok: Option<ValueType>,
        error: Option<ValueType>,
    },
}

/// Why a function cannot be called with JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unmapped {
    #[error("{0}, which JSON has no form for")]
    Kind(&'static str),
    #[error("has types of more than {MAX_LEVELS} levels")]
    Deep,
    #[error("has too large types")]
    Large,
    #[error("has an unknown type")]
    Unknown,
}

impl Unmapped {
    /// The fault with the name of the function.
    pub(super) fn of_function(self, name: &str) -> String {
        format!("`{}` {self}", harmless(name, 128))
    }
}

/// Reads the types of one interface, which are bounded together.
pub(super) struct Types {
    left: usize,
}

impl Types {
    pub(super) fn new() -> Self {
        Self { left: MAX_TYPES }
    }

    pub(super) fn signature(&mut self, function: &ComponentFunc) -> Result<Signature, Unmapped> {
        if function.async_() {
            return Err(Unmapped::Kind("is asynchronous"));
        }
        let parameters = function.params().map(|(name, ty)| Ok((name.into(), self.of(&ty, MAX_LEVELS)?)));
        let parameters = parameters.collect::<Result<_, Unmapped>>()?;
        let returns = match function.results().next() {
            None => Returns::Nothing,
            Some(Type::Result(result)) => Returns::Fallible {
                ok: result.ok().map(|ty| self.of(&ty, MAX_LEVELS)).transpose()?,
                error: result.err().map(|ty| self.of(&ty, MAX_LEVELS)).transpose()?,
            },
            Some(ty) => Returns::Value(self.of(&ty, MAX_LEVELS)?),
        };
        Ok(Signature { parameters, returns })
    }

    /// The type, if its values have at most so many levels.
    fn of(&mut self, ty: &Type, levels: usize) -> Result<ValueType, Unmapped> {
        let levels = levels.checked_sub(1).ok_or(Unmapped::Deep)?;
        self.left = self.left.checked_sub(1).ok_or(Unmapped::Large)?;
        Ok(match ty {
            Type::Bool => ValueType::Bool,
            Type::S8 => ValueType::S8,
            Type::U8 => ValueType::U8,
            Type::S16 => ValueType::S16,
            Type::U16 => ValueType::U16,
            Type::S32 => ValueType::S32,
            Type::U32 => ValueType::U32,
            Type::S64 => ValueType::S64,
            Type::U64 => ValueType::U64,
            Type::Float32 => ValueType::Float32,
            Type::Float64 => ValueType::Float64,
            Type::Char => ValueType::Char,
            Type::String => ValueType::String,
            Type::List(list) => match self.of(&list.ty(), levels)? {
                ValueType::U8 => ValueType::Bytes,
                element => ValueType::List(Box::new(element)),
            },
            Type::Record(record) => {
                let fields =
                    record.fields().map(|field| Ok((field.name.into(), self.of(&field.ty, levels)?)));
                ValueType::Record(fields.collect::<Result<_, Unmapped>>()?)
            }
            Type::Tuple(tuple) => {
                ValueType::Tuple(tuple.types().map(|ty| self.of(&ty, levels)).collect::<Result<_, _>>()?)
            }
            Type::Variant(variant) => {
                let case = |case: wasmtime::component::types::Case<'_>| {
                    Ok((case.name.into(), case.ty.map(|ty| self.of(&ty, levels)).transpose()?))
                };
                ValueType::Variant(variant.cases().map(case).collect::<Result<_, Unmapped>>()?)
            }
            Type::Enum(cases) => ValueType::Enum(cases.names().map(Into::into).collect()),
            Type::Option(option) => ValueType::Option(Box::new(self.of(&option.ty(), levels)?)),
            Type::Result(result) => {
                let mut boxed =
                    |ty: Option<Type>| ty.map(|ty| self.of(&ty, levels).map(Box::new)).transpose();
                ValueType::Result { ok: boxed(result.ok())?, error: boxed(result.err())? }
            }
            Type::Flags(flags) => ValueType::Flags(flags.names().map(Into::into).collect()),
            Type::Own(_) | Type::Borrow(_) => return Err(Unmapped::Kind("has a resource")),
            Type::Future(_) | Type::Stream(_) => return Err(Unmapped::Kind("has a future or a stream")),
            Type::Map(_) | Type::FixedLengthList(_) => {
                return Err(Unmapped::Kind("has a map or a list of fixed length"));
            }
            Type::ErrorContext => return Err(Unmapped::Kind("has an error context")),
        })
    }
}
