//! The types of functions as far as values have a JSON form, taken from compiled components.

use std::collections::HashMap;

use wasmtime::component::types::{ComponentFunc, Type};
use weir_names::harmless;

/// The most levels of a value, which a description bounds, too.
pub(super) const MAX_LEVELS: usize = 32;

/// The most bytes that the types of one component take, each use of a type counted: some thousands of uses.
const MAX_BYTES: usize = 1 << 20;

/// Bytes of one type, and of one name beside its text, which a long list has twice.
const OF_A_TYPE: usize = 64;
const OF_A_NAME: usize = 80;

/// Bytes of a function beside its name and types.
const OF_A_FUNCTION: usize = 256;

/// Lists of names up to this length are searched, and longer ones looked up.
const SEARCHED: usize = 8;

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
    Record(Names, Box<[Self]>),
    Tuple(Box<[Self]>),
    Variant(Names, Box<[Option<Self>]>),
    Enum(Names),
    Option(Box<Self>),
    /// A `result`, as a variant with two cases.
    Result(Names, Box<[Option<Self>]>),
    Flags(Names),
}

/// Different names, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Names {
    list: Box<[Box<str>]>,
    /// The names in JSON, if those are others.
    in_json: Option<Box<[Box<str>]>>,
    /// The place of each name of a long list, as it is in JSON.
    places: HashMap<Box<str>, usize>,
}

impl Names {
    fn new(list: Box<[Box<str>]>) -> Self {
        Self { places: places_of(&list), list, in_json: None }
    }

    /// The same names, with `_` for `-` in JSON.
    fn in_snake_case(&self) -> Self {
        let in_json: Box<_> = self.list.iter().map(|name| name.replace('-', "_").into()).collect();
        let places = places_of(&in_json);
        Self { list: self.list.clone(), in_json: (in_json != self.list).then_some(in_json), places }
    }

    /// The names in JSON.
    pub(super) fn in_json(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.in_json.as_ref().unwrap_or(&self.list).iter().map(|name| &**name)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.list.iter().map(|name| &**name)
    }

    pub(super) fn get(&self, place: usize) -> Option<&str> {
        self.list.get(place).map(|name| &**name)
    }

    /// The place of a name in JSON.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        match self.places.is_empty() {
            true => self.in_json().position(|known| known == name),
            false => self.places.get(name).copied(),
        }
    }
}

fn places_of(list: &[Box<str>]) -> HashMap<Box<str>, usize> {
    match list.len() > SEARCHED {
        true => list.iter().cloned().zip(0..).collect(),
        false => HashMap::new(),
    }
}

impl ValueType {
    /// The same type, whose fields have `_` for `-` in JSON.
    fn in_snake_case(&self) -> Self {
        let all = |types: &[Self]| types.iter().map(Self::in_snake_case).collect();
        let cases =
            |types: &[Option<Self>]| types.iter().map(|ty| ty.as_ref().map(Self::in_snake_case)).collect();
        match self {
            Self::Record(names, types) => Self::Record(names.in_snake_case(), all(types)),
            Self::List(ty) => Self::List(Box::new(ty.in_snake_case())),
            Self::Option(ty) => Self::Option(Box::new(ty.in_snake_case())),
            Self::Tuple(types) => Self::Tuple(all(types)),
            Self::Variant(names, types) => Self::Variant(names.clone(), cases(types)),
            Self::Result(names, types) => Self::Result(names.clone(), cases(types)),
            other => other.clone(),
        }
    }
}

/// What a function takes and returns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Signature {
    /// A record with a field for each parameter.
    pub(super) parameters: ValueType,
    pub(super) returns: Returns,
}

impl Signature {
    /// The same types, whose fields have `_` for `-` in JSON.
    pub(super) fn in_snake_case(&self) -> Self {
        let optional = |ty: &Option<ValueType>| ty.as_ref().map(ValueType::in_snake_case);
        let returns = match &self.returns {
            Returns::Nothing => Returns::Nothing,
            Returns::Value(ty) => Returns::Value(ty.in_snake_case()),
            Returns::Fallible { ok, error } => Returns::Fallible { ok: optional(ok), error: optional(error) },
        };
        Self { parameters: self.parameters.in_snake_case(), returns }
    }

    /// Whether the payload and the answer are bytes themselves: the only argument is bytes, and so is what is returned.
    pub(super) fn is_of_bytes(&self) -> bool {
        let is_bytes = |ty: &ValueType| *ty == ValueType::Bytes;
        let answers_bytes = match &self.returns {
            Returns::Nothing => true,
            Returns::Value(ty) => is_bytes(ty),
            Returns::Fallible { ok, .. } => ok.as_ref().is_none_or(is_bytes),
        };
        answers_bytes
            && matches!(&self.parameters, ValueType::Record(_, types) if matches!(**types, [ValueType::Bytes]))
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
}

impl Unmapped {
    /// The fault with the name of the function.
    pub(super) fn of_function(self, name: &str) -> String {
        format!("`{}` {self}", harmless(name, 128))
    }
}

/// Reads the types of one component, which are bounded together.
#[derive(Debug)]
pub struct Types {
    left: usize,
}

impl Types {
    pub(crate) fn new() -> Self {
        Self { left: MAX_BYTES }
    }

    /// Bytes of what was read so far.
    pub(crate) fn bytes(&self) -> usize {
        MAX_BYTES - self.left
    }

    pub(super) fn signature(&mut self, name: &str, function: &ComponentFunc) -> Result<Signature, Unmapped> {
        if function.async_() {
            return Err(Unmapped::Kind("is asynchronous"));
        }
        self.take(OF_A_FUNCTION + name.len())?;
        let names = self.names(function.params().map(|(name, _)| name.len()), || {
            function.params().map(|(name, _)| name.into()).collect()
        })?;
        let types: Result<_, _> = function.params().map(|(_, ty)| self.of(&ty, MAX_LEVELS)).collect();
        let returns = match function.results().next() {
            None => Returns::Nothing,
            Some(Type::Result(result)) => Returns::Fallible {
                ok: self.optional(result.ok(), MAX_LEVELS)?,
                error: self.optional(result.err(), MAX_LEVELS)?,
            },
            Some(ty) => Returns::Value(self.of(&ty, MAX_LEVELS)?),
        };
        Ok(Signature { parameters: ValueType::Record(names, types?), returns })
    }

    fn optional(&mut self, ty: Option<Type>, levels: usize) -> Result<Option<ValueType>, Unmapped> {
        ty.map(|ty| self.of(&ty, levels)).transpose()
    }

    /// Takes names if there is room for names of these lengths.
    fn names(
        &mut self,
        lengths: impl Iterator<Item = usize>,
        list: impl FnOnce() -> Box<[Box<str>]>,
    ) -> Result<Names, Unmapped> {
        for length in lengths {
            self.take(OF_A_NAME + 2 * length)?;
        }
        Ok(Names::new(list()))
    }

    fn take(&mut self, bytes: usize) -> Result<(), Unmapped> {
        self.left = self.left.checked_sub(bytes).ok_or(Unmapped::Large)?;
        Ok(())
    }

    /// The type, if its values have at most so many levels.
    fn of(&mut self, ty: &Type, levels: usize) -> Result<ValueType, Unmapped> {
        let levels = levels.checked_sub(1).ok_or(Unmapped::Deep)?;
        self.take(OF_A_TYPE)?;
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
                let names = self.names(record.fields().map(|field| field.name.len()), || {
                    record.fields().map(|field| field.name.into()).collect()
                })?;
                let types: Result<_, _> = record.fields().map(|field| self.of(&field.ty, levels)).collect();
                ValueType::Record(names, types?)
            }
            Type::Tuple(tuple) => {
                let types: Result<_, _> = tuple.types().map(|ty| self.of(&ty, levels)).collect();
                ValueType::Tuple(types?)
            }
            Type::Variant(variant) => {
                let names = self.names(variant.cases().map(|case| case.name.len()), || {
                    variant.cases().map(|case| case.name.into()).collect()
                })?;
                let types: Result<_, _> =
                    variant.cases().map(|case| self.optional(case.ty, levels)).collect();
                ValueType::Variant(names, types?)
            }
            Type::Enum(cases) => {
                let names = || cases.names().map(Into::into).collect();
                ValueType::Enum(self.names(cases.names().map(str::len), names)?)
            }
            Type::Flags(flags) => {
                let names = || flags.names().map(Into::into).collect();
                ValueType::Flags(self.names(flags.names().map(str::len), names)?)
            }
            Type::Option(option) => ValueType::Option(Box::new(self.of(&option.ty(), levels)?)),
            Type::Result(result) => {
                let names = [super::json::OK, super::json::ERR].map(Into::into);
                let types = [self.optional(result.ok(), levels)?, self.optional(result.err(), levels)?];
                ValueType::Result(Names::new(names.into()), types.into())
            }
            Type::Own(_) | Type::Borrow(_) => return Err(Unmapped::Kind("has a resource")),
            Type::Future(_) | Type::Stream(_) => return Err(Unmapped::Kind("has a future or a stream")),
            Type::Map(_) | Type::FixedLengthList(_) => {
                return Err(Unmapped::Kind("has a map or a list of fixed length"));
            }
            Type::ErrorContext => return Err(Unmapped::Kind("has an error context")),
        })
    }
}
