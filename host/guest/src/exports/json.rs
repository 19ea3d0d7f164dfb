//! Writes values of the component model as JSON, by their types, and turns errors of calls into values and back.
//! `docs/exports.md` has the table.

use std::io::{self, Write};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use wasmtime::component::Val;
use weir_bus::{Error, HandlerError};

use super::{
    read::read_answer,
    types::{Names, Signature, ValueType},
};

/// The cases of a `result` within a value.
pub(super) const OK: &str = "ok";
pub(super) const ERR: &str = "err";

/// The code of an error that is no case of an enumeration or a variant.
pub(super) const FAILED: &str = "failed";

/// The greatest whole number that every reader of JSON keeps. Numbers beyond are strings.
pub(super) const SAFE: i64 = (1 << 53) - 1;

/// The numbers that JSON does not have, as strings.
pub(super) const NOT_FINITE: [(&str, f64); 3] =
    [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

impl Signature {
    /// The values of arguments as a payload of at most so many bytes.
    pub(super) fn payload(&self, arguments: &[Val], most: u64) -> Result<Bytes, Error> {
        let ValueType::Record(names, types) = &self.parameters else { return Ok(Bytes::new()) };
        within(most, &Fields(names, types, arguments))
    }
}

/// A value as a payload of at most so many bytes. No value is `null`.
pub(super) fn written(value: Option<(&Val, &ValueType)>, most: u64) -> Result<Bytes, Error> {
    match value {
        Some((value, ty)) => within(most, &Shown(value, ty)),
        None => Ok(Bytes::from_static(b"null")),
    }
}

fn within(most: u64, value: &impl Serialize) -> Result<Bytes, Error> {
    let mut json = Bounded { bytes: Vec::new(), most };
    match serde_json::to_writer(&mut json, value) {
        Ok(()) => Ok(json.bytes.into()),
        Err(error) if error.is_io() => Err(Error::TooLarge { bytes: most.saturating_add(1), allowed: most }),
        Err(error) => Err(Error::failed(error)),
    }
}

/// Bytes that are written, up to a bound.
struct Bounded {
    bytes: Vec<u8>,
    most: u64,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error of a `result` as the error of an operation: its case is the code, and what it holds is the text.
pub(super) fn error_of(value: Option<(&Val, &ValueType)>) -> Error {
    let text = |value: &Val, ty: &ValueType| match value {
        Val::String(text) => text.clone(),
        // A text that is too long is cut.
        value => match written(Some((value, ty)), 1 << 20) {
            Ok(json) => String::from_utf8_lossy(&json).into_owned(),
            Err(error) => error.to_string(),
        },
    };
    let error = match value {
        None => HandlerError::new(FAILED, "the function returned an error"),
        Some((Val::Enum(case), _)) => HandlerError::new(case.clone(), case.clone()),
        Some((Val::Variant(case, inner), ValueType::Variant(names, types))) => {
            let ty = names.place(case).and_then(|place| types.get(place)?.as_ref());
            let message = inner.as_deref().zip(ty).map(|(inner, ty)| text(inner, ty));
            HandlerError::new(case.clone(), message.unwrap_or_else(|| case.clone()))
        }
        Some((value, ty)) => HandlerError::new(FAILED, text(value, ty)),
    };
    error.into()
}

/// The error of a call as the error of a `result` with this type. Returns none if the type has no room for it.
pub(super) fn error_for(error: &Error, ty: Option<&ValueType>, room: usize) -> Option<Option<Box<Val>>> {
    let Some(ty) = ty else { return Some(None) };
    let own = match error {
        Error::Handler(own) => Some(own),
        _ => None,
    };
    // What the provider's type was, if both sides have the same.
    let held = |ty: &ValueType| match (own, ty) {
        (Some(own), ValueType::String) => Some(Val::String(own.message.clone())),
        (Some(own), ty) => read_answer(own.message.as_bytes(), ty, room).ok(),
        (None, ValueType::String) => Some(Val::String(error.to_string())),
        (None, _) => None,
    };
    let value = match ty {
        ValueType::Enum(names) => names.place(error.code()).map(|_| Val::Enum(error.code().to_owned()))?,
        ValueType::Variant(names, types) => match types.get(names.place(error.code())?)? {
            None => Val::Variant(error.code().to_owned(), None),
            Some(ty) => Val::Variant(error.code().to_owned(), Some(Box::new(held(ty)?))),
        },
        ValueType::String if own.is_some_and(|own| own.code != FAILED) => Val::String(error.to_string()),
        ty => held(ty)?,
    };
    Some(Some(Box::new(value)))
}

/// The bytes in a list of them.
pub(super) fn bytes_of(values: &[Val]) -> Vec<u8> {
    values.iter().map(|value| if let Val::U8(byte) = value { *byte } else { 0 }).collect()
}

/// Arguments as an object.
struct Fields<'v>(&'v Names, &'v [ValueType], &'v [Val]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.in_json().zip(self.1).zip(self.2);
        serializer.collect_map(fields.map(|((name, ty), value)| (name, Shown(value, ty))))
    }
}

/// A value as JSON.
struct Shown<'v>(&'v Val, &'v ValueType);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0, self.1) {
            (Val::Bool(value), _) => serializer.serialize_bool(*value),
            (Val::S8(number), _) => serializer.serialize_i8(*number),
            (Val::U8(number), _) => serializer.serialize_u8(*number),
            (Val::S16(number), _) => serializer.serialize_i16(*number),
            (Val::U16(number), _) => serializer.serialize_u16(*number),
            (Val::S32(number), _) => serializer.serialize_i32(*number),
            (Val::U32(number), _) => serializer.serialize_u32(*number),
            (Val::S64(number), _) if (-SAFE..=SAFE).contains(number) => serializer.serialize_i64(*number),
            (Val::S64(number), _) => serializer.collect_str(number),
            (Val::U64(number), _) if *number <= SAFE.unsigned_abs() => serializer.serialize_u64(*number),
            (Val::U64(number), _) => serializer.collect_str(number),
            (Val::Float32(number), _) if number.is_finite() => serializer.serialize_f32(*number),
            (Val::Float32(number), _) => not_finite((*number).into(), serializer),
            (Val::Float64(number), _) if number.is_finite() => serializer.serialize_f64(*number),
            (Val::Float64(number), _) => not_finite(*number, serializer),
            (Val::Char(character), _) => serializer.serialize_char(*character),
            (Val::String(text), _) | (Val::Enum(text), _) => serializer.serialize_str(text),
            (Val::List(values), ValueType::Bytes) => {
                serializer.serialize_str(&BASE64_STANDARD.encode(bytes_of(values)))
            }
            (Val::List(values), ValueType::List(ty)) => {
                serializer.collect_seq(values.iter().map(|value| Shown(value, ty)))
            }
            (Val::Tuple(values), ValueType::Tuple(types)) => {
                serializer.collect_seq(values.iter().zip(types).map(|(value, ty)| Shown(value, ty)))
            }
            (Val::Record(fields), ValueType::Record(names, types)) => {
                let fields = names.in_json().zip(fields).zip(types);
                serializer.collect_map(fields.map(|((name, (_, value)), ty)| (name, Shown(value, ty))))
            }
            (Val::Flags(flags), _) => serializer.collect_seq(flags),
            (Val::Option(None), _) => serializer.serialize_unit(),
            (Val::Option(Some(value)), ValueType::Option(ty)) => match **ty {
                ValueType::Option(_) => serializer.collect_seq([Shown(value, ty)]),
                _ => Shown(value, ty).serialize(serializer),
            },
            (Val::Variant(name, value), ValueType::Variant(names, types)) => {
                case(serializer, name, value.as_deref(), names, types)
            }
            (Val::Result(Ok(value)), ValueType::Result(names, types)) => {
                case(serializer, OK, value.as_deref(), names, types)
            }
            (Val::Result(Err(value)), ValueType::Result(names, types)) => {
                case(serializer, ERR, value.as_deref(), names, types)
            }
            _ => Err(S::Error::custom("a value of another type")),
        }
    }
}

fn case<S: Serializer>(
    serializer: S,
    name: &str,
    value: Option<&Val>,
    names: &Names,
    types: &[Option<ValueType>],
) -> Result<S::Ok, S::Error> {
    let Some(value) = value else { return serializer.serialize_str(name) };
    let ty = names.place(name).and_then(|place| types.get(place)?.as_ref());
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, &Shown(value, ty.ok_or_else(|| S::Error::custom("an unknown case"))?))?;
    map.end()
}

fn not_finite<S: Serializer>(number: f64, serializer: S) -> Result<S::Ok, S::Error> {
    let is_it = |(_, other): &&(&str, f64)| *other == number || (other.is_nan() && number.is_nan());
    let name = NOT_FINITE.iter().find(is_it).map_or("NaN", |(name, _)| name);
    serializer.serialize_str(name)
}
