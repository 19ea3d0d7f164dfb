//! Values of the component model as JSON, by their types. `docs/exports.md` has the table.
//!
//! The JSON is hostile: a value is made only as far as its type and its room go, and the first fault ends it.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use wasmtime::component::Val;
use weir_bus::{Error, HandlerError};
use weir_openrpc::{Json, Misfit, at_index, in_field, nearest, shown};

use super::types::{Signature, ValueType};

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

/// Bytes that the values of a call may still take in the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(pub(super) usize);

/// Why arguments are refused.
#[derive(Debug)]
pub(super) enum Refused {
    Misfit(Misfit),
    /// The values would take more than their room.
    TooLarge,
}

impl From<Misfit> for Refused {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

impl Signature {
    /// The values of the parameters in a payload. A missing payload, or `null`, stands for `{}`.
    pub(super) fn arguments(&self, payload: &[u8], mut room: Room) -> Result<Vec<Val>, Refused> {
        let payload = if matches!(payload, b"" | b"null") { b"{}" } else { payload };
        let json = serde_json::from_slice(payload);
        let json = json.map_err(|error| fault(format!("is not JSON: {}", shown(&error.to_string()))))?;
        let fields = fields(json, self.parameters.iter().map(|(name, ty)| (&**name, ty)), &mut room)?;
        Ok(fields.into_iter().map(|(_, value)| value).collect())
    }

    /// The values of arguments as a payload.
    pub(super) fn payload(&self, arguments: &[Val]) -> serde_json::Result<Vec<u8>> {
        let mut json = Vec::new();
        let mut serializer = serde_json::Serializer::new(&mut json);
        let fields = self.parameters.iter().zip(arguments);
        serializer.collect_map(fields.map(|((name, ty), value)| (name, Shown(value, ty))))?;
        Ok(json)
    }
}

/// A value as a payload. No value is `null`.
pub(super) fn written(value: Option<(&Val, &ValueType)>) -> serde_json::Result<Vec<u8>> {
    match value {
        Some((value, ty)) => serde_json::to_vec(&Shown(value, ty)),
        None => Ok(b"null".to_vec()),
    }
}

/// The value in a payload.
pub(super) fn read(payload: &[u8], ty: &ValueType, mut room: Room) -> Result<Val, Refused> {
    let json = serde_json::from_slice(if payload.is_empty() { b"null" } else { payload });
    let json = json.map_err(|error| fault(format!("is not JSON: {}", shown(&error.to_string()))))?;
    value(json, ty, &mut room)
}

/// The error of a `result` as the error of an operation: its case is the code, and what it holds is the text.
pub(super) fn error_of(value: Option<(&Val, &ValueType)>) -> serde_json::Result<HandlerError> {
    let text = |value: &Val, ty: &ValueType| match value {
        Val::String(text) => Ok(text.clone()),
        value => serde_json::to_string(&Shown(value, ty)),
    };
    Ok(match value {
        None => HandlerError::new(FAILED, "the function returned an error"),
        Some((Val::Enum(case), _)) => HandlerError::new(case.clone(), case.clone()),
        Some((Val::Variant(case, inner), ValueType::Variant(cases))) => {
            let ty = cases.iter().find(|(name, _)| **name == **case).and_then(|(_, ty)| ty.as_ref());
            let message = match (inner, ty) {
                (Some(inner), Some(ty)) => text(inner, ty)?,
                _ => case.clone(),
            };
            HandlerError::new(case.clone(), message)
        }
        Some((value, ty)) => HandlerError::new(FAILED, text(value, ty)?),
    })
}

/// The error of a call as the error of a `result` with this type. Returns none if the type has no room for it.
pub(super) fn error_for(error: &Error, ty: Option<&ValueType>, room: Room) -> Option<Option<Box<Val>>> {
    let Some(ty) = ty else { return Some(None) };
    let own = match error {
        Error::Handler(own) => Some(own),
        _ => None,
    };
    // What the provider's type was, if both sides have the same.
    let held = |ty: &ValueType| match (own, ty) {
        (Some(own), ValueType::String) => Some(Val::String(own.message.clone())),
        (Some(own), ty) => read(own.message.as_bytes(), ty, room).ok(),
        (None, ValueType::String) => Some(Val::String(error.to_string())),
        (None, _) => None,
    };
    let case = |name: &&(Box<str>, Option<ValueType>)| *name.0 == *error.code();
    let value = match ty {
        ValueType::Enum(cases) => {
            cases.iter().find(|case| ***case == *error.code()).map(|case| Val::Enum(case.to_string()))?
        }
        ValueType::Variant(cases) => {
            let (name, ty) = cases.iter().find(case)?;
            let inner = ty.as_ref().map(|ty| held(ty).map(Box::new));
            Val::Variant(name.to_string(), inner.map_or(Some(None), |inner| inner.map(Some))?)
        }
        ValueType::String if own.is_some_and(|own| own.code != FAILED) => Val::String(error.to_string()),
        ty => held(ty)?,
    };
    Some(Some(Box::new(value)))
}

/// Bytes as a value, which has a value for each byte.
pub(super) fn value_of_bytes(bytes: &[u8], mut room: Room) -> Result<Val, Refused> {
    room.take(bytes.len().saturating_mul(size_of::<Val>()))?;
    Ok(Val::List(bytes.iter().copied().map(Val::U8).collect()))
}

/// The bytes in a list of them.
pub(super) fn bytes_of(values: &[Val]) -> Vec<u8> {
    values.iter().map(|value| if let Val::U8(byte) = value { *byte } else { 0 }).collect()
}

fn fault(message: impl Into<String>) -> Misfit {
    Misfit { path: "$".to_owned(), message: message.into() }
}

fn other(expected: &str, found: &Json) -> Refused {
    let found = match found {
        Json::Number(number) => format!("`{number}`"),
        Json::String(text) => format!("`\"{}\"`", shown(text)),
        found => found.kind().to_owned(),
    };
    fault(format!("must be {expected}, and is {found}")).into()
}

/// Adds a step to the path of a fault.
fn below(step: impl Fn() -> String) -> impl Fn(Refused) -> Refused {
    move |refused| match refused {
        Refused::Misfit(Misfit { path, message }) => {
            let rest = path.strip_prefix('$').unwrap_or(&path);
            Refused::Misfit(Misfit { path: format!("${}{rest}", step()), message })
        }
        Refused::TooLarge => Refused::TooLarge,
    }
}

/// The value of this type that the JSON stands for.
fn value(json: Json, ty: &ValueType, room: &mut Room) -> Result<Val, Refused> {
    room.take(size_of::<Val>())?;
    Ok(match (ty, json) {
        (ValueType::Bool, Json::Bool(value)) => Val::Bool(value),
        (ValueType::Bool, found) => return Err(other("a boolean", &found)),
        (ValueType::S8, json) => Val::S8(integer(&json)?),
        (ValueType::U8, json) => Val::U8(integer(&json)?),
        (ValueType::S16, json) => Val::S16(integer(&json)?),
        (ValueType::U16, json) => Val::U16(integer(&json)?),
        (ValueType::S32, json) => Val::S32(integer(&json)?),
        (ValueType::U32, json) => Val::U32(integer(&json)?),
        (ValueType::S64, json) => Val::S64(integer(&json)?),
        (ValueType::U64, json) => Val::U64(integer(&json)?),
        (ValueType::Float32, json) => Val::Float32(float32(&json)?),
        (ValueType::Float64, json) => Val::Float64(float(&json)?),
        (ValueType::Char, Json::String(text)) => match *text.chars().collect::<Vec<_>>() {
            [only] => Val::Char(only),
            _ => return Err(other("one character", &Json::String(text))),
        },
        (ValueType::Char, found) => return Err(other("a string of one character", &found)),
        (ValueType::String, Json::String(text)) => {
            room.take(text.len())?;
            Val::String(text)
        }
        (ValueType::String, found) => return Err(other("a string", &found)),
        (ValueType::Bytes, Json::String(text)) => {
            room.take(text.len() / 4 * 3 * size_of::<Val>())?;
            let bytes = BASE64_STANDARD.decode(&text).map_err(|_| fault("must be bytes in base64"))?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        (ValueType::Bytes, found) => return Err(other("a string: bytes in base64", &found)),
        (ValueType::List(ty), Json::Array(values)) => Val::List(list(values, |_| Some(ty), room)?),
        (ValueType::List(_), found) => return Err(other("an array", &found)),
        (ValueType::Tuple(types), Json::Array(values)) if values.len() == types.len() => {
            Val::Tuple(list(values, |place| types.get(place), room)?)
        }
        (ValueType::Tuple(types), found) => {
            return Err(other(&format!("an array of {}", types.len()), &found));
        }
        (ValueType::Record(types), json) => {
            Val::Record(fields(json, types.iter().map(|(name, ty)| (&**name, ty)), room)?)
        }
        (ValueType::Enum(cases), json) => {
            let known = || cases.iter().map(|case| &**case);
            Val::Enum(word(&json, known, "one of ")?)
        }
        (ValueType::Flags(flags), Json::Array(values)) => {
            let known = || flags.iter().map(|flag| &**flag);
            let mut set: Vec<String> = Vec::new();
            for (place, json) in values.iter().enumerate() {
                room.take(size_of::<Val>())?;
                let at = below(|| at_index(place));
                let flag = word(json, known, "one of ").map_err(&at)?;
                if set.contains(&flag) {
                    return Err(at(fault("is there twice").into()));
                }
                set.push(flag);
            }
            Val::Flags(set)
        }
        (ValueType::Flags(_), found) => return Err(other("an array of strings", &found)),
        (ValueType::Option(_), Json::Null) => Val::Option(None),
        (ValueType::Option(ty), json) if matches!(**ty, ValueType::Option(_)) => match json {
            Json::Array(values) if values.len() == 1 => {
                Val::Option(list(values, |_| Some(ty), room)?.pop().map(Box::new))
            }
            found => return Err(other("null or an array of 1", &found)),
        },
        (ValueType::Option(ty), json) => Val::Option(Some(Box::new(value(json, ty, room)?))),
        (ValueType::Variant(cases), json) => {
            let (case, inner) = case(json, cases.iter().map(|(name, ty)| (&**name, ty.as_ref())), room)?;
            Val::Variant(case, inner)
        }
        (ValueType::Result { ok, error }, json) => {
            let cases = [(OK, ok.as_deref()), (ERR, error.as_deref())];
            let (case, inner) = case(json, cases.into_iter(), room)?;
            Val::Result(if case == OK { Ok(inner) } else { Err(inner) })
        }
    })
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), Refused> {
        self.0 = self.0.checked_sub(bytes).ok_or(Refused::TooLarge)?;
        Ok(())
    }
}

fn list<'t>(
    values: Vec<Json>,
    ty: impl Fn(usize) -> Option<&'t ValueType>,
    room: &mut Room,
) -> Result<Vec<Val>, Refused> {
    let places = values.into_iter().enumerate();
    let typed = places.filter_map(|(place, json)| Some((place, json, ty(place)?)));
    typed.map(|(place, json, ty)| value(json, ty, room).map_err(below(|| at_index(place)))).collect()
}

/// The fields of an object in the order of their types. A field that may be absent is then none.
fn fields<'t>(
    json: Json,
    types: impl ExactSizeIterator<Item = (&'t str, &'t ValueType)> + Clone,
    room: &mut Room,
) -> Result<Vec<(String, Val)>, Refused> {
    let mut given = match json {
        Json::Object(fields) => fields,
        found => return Err(other("an object", &found)),
    };
    let names = || types.clone().map(|(name, _)| name);
    if let Some((unknown, _)) = given.iter().find(|(name, _)| names().all(|known| known != name)) {
        let hint = nearest(unknown, names()).map(|near| format!(": did you mean `{}`?", shown(near)));
        return Err(below(|| in_field(unknown))(
            fault(format!("is unknown{}", hint.unwrap_or_default())).into(),
        ));
    }
    let field = |(name, ty): (&str, &ValueType)| {
        // Most often, fields come in the order of their types.
        let place = given.iter().position(|(given, _)| given == name);
        let json = match place {
            Some(place) => given.remove(place).1,
            None if matches!(ty, ValueType::Option(_)) => Json::Null,
            None => return Err(fault(format!("has no `{}`", shown(name))).into()),
        };
        room.take(name.len() + size_of::<Val>())?;
        Ok((name.to_owned(), value(json, ty, room).map_err(below(|| in_field(name)))?))
    };
    types.clone().map(field).collect()
}

/// A case, as a string, or as an object with the one field of its name.
fn case<'t>(
    json: Json,
    cases: impl Iterator<Item = (&'t str, Option<&'t ValueType>)> + Clone,
    room: &mut Room,
) -> Result<(String, Option<Box<Val>>), Refused> {
    match json {
        Json::Object(mut fields) if fields.len() == 1 => {
            let (name, json) = fields.pop().ok_or_else(|| fault("has no case"))?;
            let with_value = || cases.clone().filter_map(|(case, ty)| Some((case, ty?)));
            let Some((_, ty)) = with_value().find(|(case, _)| *case == name) else {
                let known = || with_value().map(|(case, _)| case);
                return word(&Json::String(name), known, "an object with one of ").map(|case| (case, None));
            };
            let inner = value(json, ty, room).map_err(below(|| in_field(&name)))?;
            Ok((name, Some(Box::new(inner))))
        }
        json @ Json::String(_) => {
            let known = || cases.clone().filter(|(_, ty)| ty.is_none()).map(|(case, _)| case);
            Ok((word(&json, known, "one of ")?, None))
        }
        found => Err(other("a string, or an object with one field: a case", &found)),
    }
}

/// One of these words.
fn word<'t, K: Iterator<Item = &'t str>>(
    json: &Json,
    known: impl Fn() -> K,
    before: &str,
) -> Result<String, Refused> {
    let found = json.as_str().filter(|text| known().any(|word| word == *text));
    found.map(ToOwned::to_owned).ok_or_else(|| {
        let mut words: Vec<_> = known().take(9).map(|word| format!("`{}`", shown(word))).collect();
        if words.len() > 8 {
            words.truncate(8);
            words.push("…".to_owned());
        }
        let near = json.as_str().and_then(|text| nearest(text, known()));
        let hint = near.map(|near| format!(": did you mean `{}`?", shown(near))).unwrap_or_default();
        let words = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        match other(&format!("{before}{words}"), json) {
            Refused::Misfit(misfit) => Refused::Misfit(Misfit { message: misfit.message + &hint, ..misfit }),
            large => large,
        }
    })
}

/// A whole number within the range of its type, as a number or as its digits.
fn integer<N: TryFrom<i128>>(json: &Json) -> Result<N, Refused> {
    let number = match json {
        Json::Number(number) => number.as_i128(),
        Json::String(digits) if digits.len() <= 20 => digits.parse().ok(),
        _ => None,
    };
    let bits = 8 * size_of::<N>();
    let fits = number.and_then(|number| N::try_from(number).ok());
    fits.ok_or_else(|| other(&format!("a whole number of {bits} bits"), json))
}

fn float(json: &Json) -> Result<f64, Refused> {
    let number = match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => {
            NOT_FINITE.into_iter().find_map(|(name, number)| (name == text).then_some(number))
        }
        _ => None,
    };
    number.ok_or_else(|| other("a number", json))
}

fn float32(json: &Json) -> Result<f32, Refused> {
    let number = float(json)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number is rounded to the nearest that the type has"
    )]
    let rounded = number as f32;
    if rounded.is_infinite() && number.is_finite() {
        return Err(other("a number of 32 bits", json));
    }
    Ok(rounded)
}

/// A value as JSON.
struct Shown<'v>(&'v Val, &'v ValueType);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let one = |serializer: S, name: &str, value: &Val, ty: &ValueType| {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry(name, &Shown(value, ty))?;
            map.end()
        };
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
            (Val::Record(fields), ValueType::Record(types)) => serializer.collect_map(
                fields.iter().zip(types).map(|((name, value), (_, ty))| (name, Shown(value, ty))),
            ),
            (Val::Flags(flags), _) => serializer.collect_seq(flags),
            (Val::Option(None), _) => serializer.serialize_unit(),
            (Val::Option(Some(value)), ValueType::Option(ty)) => match **ty {
                ValueType::Option(_) => serializer.collect_seq([Shown(value, ty)]),
                _ => Shown(value, ty).serialize(serializer),
            },
            (Val::Variant(case, None), _) => serializer.serialize_str(case),
            (Val::Variant(case, Some(value)), ValueType::Variant(cases)) => {
                let ty = cases.iter().find(|(name, _)| **name == **case).and_then(|(_, ty)| ty.as_ref());
                one(serializer, case, value, ty.ok_or_else(|| S::Error::custom("an unknown case"))?)
            }
            (Val::Result(Ok(None)), _) => serializer.serialize_str(OK),
            (Val::Result(Err(None)), _) => serializer.serialize_str(ERR),
            (Val::Result(Ok(Some(value))), ValueType::Result { ok: Some(ty), .. }) => {
                one(serializer, OK, value, ty)
            }
            (Val::Result(Err(Some(value))), ValueType::Result { error: Some(ty), .. }) => {
                one(serializer, ERR, value, ty)
            }
            _ => Err(S::Error::custom("a value of another type")),
        }
    }
}

fn not_finite<S: Serializer>(number: f64, serializer: S) -> Result<S::Ok, S::Error> {
    let is_it = |(_, other): &&(&str, f64)| *other == number || (other.is_nan() && number.is_nan());
    let name = NOT_FINITE.iter().find(is_it).map_or("NaN", |(name, _)| name);
    serializer.serialize_str(name)
}
