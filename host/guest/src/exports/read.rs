//! Reads values of the component model from JSON, by their types. `docs/exports.md` has the table.
//!
//! The JSON is hostile: it is read once, and a value is made only as far as its type and its room go.

mod reading;

use std::{
    cell::{Cell, RefCell},
    fmt,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use wasmtime::component::Val;
use weir_openrpc::{at_index, in_field, nearest, shown};

pub(super) use self::reading::Refused;
use self::reading::{Key, Reading, misfit};
use super::{
    json::{NOT_FINITE, OK},
    types::{Names, Signature, ValueType},
};

/// The most words in a message.
const MAX_LISTED: usize = 8;

impl Signature {
    /// The values of the parameters in a payload, which may take so many bytes. A missing payload, or `null`, stands for
    /// `{}`.
    pub(super) fn arguments(&self, payload: &[u8], room: usize) -> Result<Vec<Val>, Refused> {
        let payload = if matches!(payload, b"" | b"null") { b"{}" } else { payload };
        match read(payload, &self.parameters, room)? {
            Val::Record(fields) => Ok(fields.into_iter().map(|(_, value)| value).collect()),
            _ => Ok(Vec::new()),
        }
    }
}

/// The value in a payload, which may take so many bytes.
pub(super) fn read(payload: &[u8], ty: &ValueType, room: usize) -> Result<Val, Refused> {
    read_with(payload, ty, Reading { room: Cell::new(room), refused: RefCell::new(None), takes_more: false })
}

/// [`read`] for an answer: its provider may know fields that the type does not have.
pub(super) fn read_answer(payload: &[u8], ty: &ValueType, room: usize) -> Result<Val, Refused> {
    read_with(payload, ty, Reading { room: Cell::new(room), refused: RefCell::new(None), takes_more: true })
}

fn read_with(payload: &[u8], ty: &ValueType, reading: Reading) -> Result<Val, Refused> {
    let mut json = serde_json::Deserializer::from_slice(if payload.is_empty() { b"null" } else { payload });
    let value = Reader { ty, reading: &reading }.deserialize(&mut json);
    value.and_then(|value| json.end().map(|()| value)).map_err(|error| {
        let refused = reading.refused.into_inner();
        refused.unwrap_or_else(|| misfit(format!("is not JSON: {}", shown(&error.to_string()))))
    })
}

/// Bytes as a value, which has a value for each byte.
pub(super) fn value_of_bytes(bytes: &[u8], room: usize) -> Result<Val, Refused> {
    match bytes.len().saturating_mul(size_of::<Val>()) > room {
        true => Err(Refused::TooLarge),
        false => Ok(Val::List(bytes.iter().copied().map(Val::U8).collect())),
    }
}

/// Reads a value of this type.
#[derive(Clone, Copy)]
struct Reader<'t, 'r> {
    ty: &'t ValueType,
    reading: &'r Reading,
}

impl<'t> Reader<'t, '_> {
    fn of(self, ty: &'t ValueType) -> Self {
        Self { ty, ..self }
    }

    /// The refusal of a value of another type.
    fn other<E: Error>(self, found: impl fmt::Display) -> E {
        self.reading.refuse(misfit(format!("must be {}, and is {found}", expected(self.ty))))
    }

    /// The type in an `option`, unless `null` could be of that type, too.
    fn optional(self) -> Option<Self> {
        match self.ty {
            ValueType::Option(ty) if !matches!(**ty, ValueType::Option(_)) => Some(self.of(ty)),
            _ => None,
        }
    }

    /// A value in an `option`, which takes room of its own.
    fn some<E: Error>(self, value: Result<Val, E>) -> Result<Val, E> {
        self.reading.take(size_of::<Val>())?;
        value.map(|value| Val::Option(Some(Box::new(value))))
    }

    fn integer<N: TryFrom<i128>, E: Error>(self, number: i128) -> Result<N, E> {
        N::try_from(number).map_err(|_| self.other(format_args!("`{number}`")))
    }

    fn whole<E: Error>(self, number: i128) -> Result<Val, E> {
        Ok(match self.ty {
            ValueType::S8 => Val::S8(self.integer(number)?),
            ValueType::U8 => Val::U8(self.integer(number)?),
            ValueType::S16 => Val::S16(self.integer(number)?),
            ValueType::U16 => Val::U16(self.integer(number)?),
            ValueType::S32 => Val::S32(self.integer(number)?),
            ValueType::U32 => Val::U32(self.integer(number)?),
            ValueType::S64 => Val::S64(self.integer(number)?),
            ValueType::U64 => Val::U64(self.integer(number)?),
            ValueType::Float32 | ValueType::Float64 => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "rounded, as any number that the type does not have"
                )]
                return self.float(number as f64);
            }
            _ => return Err(self.other(format_args!("`{number}`"))),
        })
    }

    fn float<E: Error>(self, number: f64) -> Result<Val, E> {
        #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest that the type has")]
        let single = number as f32;
        Ok(match self.ty {
            ValueType::Float64 => Val::Float64(number),
            ValueType::Float32 if single.is_finite() || !number.is_finite() => Val::Float32(single),
            _ => {
                return Err(self.other(format_args!(
                    "`{}`",
                    serde_json::Number::from_f64(number)
                        .map_or_else(|| number.to_string(), |it| it.to_string())
                )));
            }
        })
    }

    fn text<E: Error>(self, text: &str) -> Result<Val, E> {
        let other = || Err(self.other(format_args!("`\"{}\"`", shown(text))));
        let digits = || text.parse().ok().filter(|number: &i128| number.to_string() == text);
        Ok(match self.ty {
            ValueType::String => {
                self.reading.take(text.len())?;
                Val::String(text.to_owned())
            }
            ValueType::Char => match (text.chars().next(), text.chars().nth(1)) {
                (Some(only), None) => Val::Char(only),
                _ => return other(),
            },
            ValueType::S64 | ValueType::U64 => match digits() {
                Some(number) => {
                    let number: Result<Val, E> = match self.ty {
                        ValueType::S64 => i64::try_from(number).map(Val::S64).or_else(|_| other()),
                        _ => u64::try_from(number).map(Val::U64).or_else(|_| other()),
                    };
                    return number;
                }
                None => return other(),
            },
            ValueType::Float32 | ValueType::Float64 => match not_finite(text) {
                Some(number) => return self.float(number),
                None => return other(),
            },
            ValueType::Bytes => {
                self.reading.take((text.len() / 4 * 3).saturating_mul(size_of::<Val>()))?;
                match BASE64_STANDARD.decode(text) {
                    Ok(bytes) => Val::List(bytes.into_iter().map(Val::U8).collect()),
                    Err(_) => return Err(self.reading.refuse(misfit("must be bytes in base64"))),
                }
            }
            ValueType::Enum(names) if names.place(text).is_some() => Val::Enum(text.to_owned()),
            ValueType::Variant(names, types) | ValueType::Result(names, types) => {
                match names.place(text).and_then(|place| types.get(place)) {
                    Some(None) => case(self.ty, text, None),
                    _ => return Err(self.not_one_of(names, text, |place| is_bare(types, place), "")),
                }
            }
            ValueType::Enum(names) => return Err(self.not_one_of(names, text, |_| true, "")),
            _ => return other(),
        })
    }

    /// The refusal of a word that is none of these.
    fn not_one_of<E: Error>(
        self,
        names: &Names,
        found: &str,
        is_known: impl Fn(usize) -> bool + Clone,
        before: &str,
    ) -> E {
        let known = || names.iter().enumerate().filter(|(place, _)| is_known(*place)).map(|(_, name)| name);
        let mut words: Vec<_> = known().take(MAX_LISTED).map(|word| format!("`{}`", shown(word))).collect();
        if known().nth(MAX_LISTED).is_some() {
            words.push("…".to_owned());
        }
        let hint = near(found, known()).map(|near| format!(": did you mean `{}`?", shown(near)));
        let expected =
            if words.is_empty() { expected(self.ty) } else { format!("{before}one of {}", words.join(", ")) };
        let hint = hint.unwrap_or_default();
        self.reading.refuse(misfit(format!("must be {expected}, and is `\"{}\"`{hint}", shown(found))))
    }

    fn fields<'de, A: MapAccess<'de>>(
        self,
        names: &Names,
        types: &'t [ValueType],
        mut map: A,
    ) -> Result<Val, A::Error> {
        let reading = self.reading;
        let mut values: Vec<Option<Val>> = types.iter().map(|_| None).collect();
        while let Some(found) = map.next_key_seed(Key(names))? {
            if found.is_err() && reading.takes_more {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let place = found.map_err(|unknown| {
                let near = near(&unknown, names.in_json());
                let hint = near.map(|near| format!(": did you mean `{}`?", shown(near))).unwrap_or_default();
                let refused = Err::<(), A::Error>(reading.refuse(misfit(format!("is unknown{hint}"))));
                reading.within(|| in_field(&unknown), refused).err()
            });
            let place = match place {
                Ok(place) => place,
                Err(error) => return Err(error.unwrap_or_else(|| A::Error::custom("unknown"))),
            };
            let (Some(ty), Some(value), Some(name)) =
                (types.get(place), values.get_mut(place), names.in_json().nth(place))
            else {
                return Err(A::Error::custom("no such field"));
            };
            if value.is_some() {
                let refused = Err(reading.refuse(misfit("is given twice")));
                return reading.within(|| in_field(name), refused);
            }
            *value = Some(reading.within(|| in_field(name), map.next_value_seed(self.of(ty)))?);
        }
        let mut fields = Vec::with_capacity(values.len());
        for (((name, in_json), ty), value) in names.iter().zip(names.in_json()).zip(types).zip(values) {
            let value = match value {
                Some(value) => value,
                None if matches!(ty, ValueType::Option(_)) => Val::Option(None),
                None => return Err(reading.refuse(misfit(format!("has no `{}`", shown(in_json))))),
            };
            reading.take(size_of::<Val>() + name.len())?;
            fields.push((name.to_owned(), value));
        }
        Ok(Val::Record(fields))
    }

    /// A case with a value: the only field of an object.
    fn case<'de, A: MapAccess<'de>>(
        self,
        names: &Names,
        types: &'t [Option<ValueType>],
        mut map: A,
    ) -> Result<Val, A::Error> {
        let Some(found) = map.next_key_seed(Key(names))? else { return Err(self.other("an object")) };
        let with_value = |place| !is_bare(types, place);
        let name = match &found {
            Ok(place) => names.get(*place).unwrap_or_default(),
            Err(unknown) => unknown,
        };
        let ty = found.as_ref().ok().and_then(|place| types.get(*place)?.as_ref());
        let Some(ty) = ty else {
            return Err(self.not_one_of(names, name, with_value, "an object with "));
        };
        let value = self.reading.within(|| in_field(name), map.next_value_seed(self.of(ty)))?;
        match map.next_key::<IgnoredAny>()? {
            None => Ok(case(self.ty, name, Some(Box::new(value)))),
            Some(_) => Err(self.other("an object")),
        }
    }
}

/// The name that was probably meant, among those of about the same length.
fn near<'n>(found: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    nearest(found, known.filter(|name| name.len() <= 32 && name.len().abs_diff(found.len()) <= 4).take(64))
}

fn is_bare(types: &[Option<ValueType>], place: usize) -> bool {
    matches!(types.get(place), Some(None))
}

/// A case of a variant or of a result.
fn case(ty: &ValueType, name: &str, value: Option<Box<Val>>) -> Val {
    match ty {
        ValueType::Result(..) if name == OK => Val::Result(Ok(value)),
        ValueType::Result(..) => Val::Result(Err(value)),
        _ => Val::Variant(name.to_owned(), value),
    }
}

fn not_finite(text: &str) -> Option<f64> {
    NOT_FINITE.into_iter().find_map(|(name, number)| (name == text).then_some(number))
}

/// What a value of a type must be. Completes "must be".
fn expected(ty: &ValueType) -> String {
    match ty {
        ValueType::Bool => "a boolean".to_owned(),
        ValueType::S8 | ValueType::U8 => "a whole number of 8 bits".to_owned(),
        ValueType::S16 | ValueType::U16 => "a whole number of 16 bits".to_owned(),
        ValueType::S32 | ValueType::U32 => "a whole number of 32 bits".to_owned(),
        ValueType::S64 | ValueType::U64 => "a whole number of 64 bits".to_owned(),
        ValueType::Float32 => "a number of 32 bits".to_owned(),
        ValueType::Float64 => "a number".to_owned(),
        ValueType::Char => "a string of one character".to_owned(),
        ValueType::String => "a string".to_owned(),
        ValueType::Bytes => "a string: bytes in base64".to_owned(),
        ValueType::List(_) => "an array".to_owned(),
        ValueType::Tuple(types) => format!("an array of {}", types.len()),
        ValueType::Record(..) => "an object".to_owned(),
        ValueType::Enum(_) => "a string".to_owned(),
        ValueType::Flags(_) => "an array of strings".to_owned(),
        ValueType::Option(ty) if matches!(**ty, ValueType::Option(_)) => "null or an array of 1".to_owned(),
        ValueType::Option(ty) => expected(ty),
        ValueType::Variant(_, types) | ValueType::Result(_, types) if types.iter().all(Option::is_some) => {
            "an object with one field: a case".to_owned()
        }
        ValueType::Variant(..) | ValueType::Result(..) => {
            "a string, or an object with one field: a case".to_owned()
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_, '_> {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        self.reading.take(size_of::<Val>())?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_> {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Val, E> {
        match self.ty {
            ValueType::Option(_) => Ok(Val::Option(None)),
            _ => Err(self.other("null")),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Val, E> {
        match (self.ty, self.optional()) {
            (ValueType::Bool, _) => Ok(Val::Bool(value)),
            (_, Some(inner)) => self.some(inner.visit_bool(value)),
            _ => Err(self.other("a boolean")),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Val, E> {
        match self.optional() {
            Some(inner) => self.some(inner.whole(number.into())),
            None => self.whole(number.into()),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Val, E> {
        match self.optional() {
            Some(inner) => self.some(inner.whole(number.into())),
            None => self.whole(number.into()),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Val, E> {
        match self.optional() {
            Some(inner) => self.some(inner.float(number)),
            None => self.float(number),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Val, E> {
        match self.optional() {
            Some(inner) => self.some(inner.text(text)),
            None => self.text(text),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Val, A::Error> {
        if let Some(inner) = self.optional() {
            return self.some(inner.visit_seq(list));
        }
        let (element, types) = match self.ty {
            ValueType::List(ty) => (Some(&**ty), &[][..]),
            ValueType::Option(ty) => (None, std::slice::from_ref(&**ty)),
            ValueType::Tuple(types) => (None, &**types),
            ValueType::Flags(names) => return self.flags(names, list),
            _ => return Err(self.other("an array")),
        };
        // A list begins with room for four.
        self.reading.take(4 * size_of::<Val>())?;
        let mut values = Vec::new();
        loop {
            let place = values.len();
            let Some(ty) = element.or_else(|| types.get(place)) else {
                match list.next_element::<IgnoredAny>()? {
                    None => break,
                    Some(_) => return Err(self.other("a longer one")),
                }
            };
            match self.reading.within(|| at_index(place), list.next_element_seed(self.of(ty)))? {
                Some(value) => values.push(value),
                None if element.is_some() => break,
                None => return Err(self.other(format_args!("an array of {place}"))),
            }
        }
        Ok(match self.ty {
            ValueType::Tuple(_) => Val::Tuple(values),
            ValueType::Option(_) => Val::Option(values.pop().map(Box::new)),
            _ => Val::List(values),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Val, A::Error> {
        match (self.ty, self.optional()) {
            (_, Some(inner)) => self.some(inner.visit_map(map)),
            (ValueType::Record(names, types), _) => self.fields(names, types, map),
            (ValueType::Variant(names, types) | ValueType::Result(names, types), _) => {
                self.case(names, types, map)
            }
            _ => Err(self.other("an object")),
        }
    }
}

impl<'t> Reader<'t, '_> {
    fn flags<'de, A: SeqAccess<'de>>(self, names: &Names, mut list: A) -> Result<Val, A::Error> {
        let (reading, text) = (self.reading, self.of(&ValueType::String));
        let mut set: Vec<String> = Vec::new();
        loop {
            let place = set.len();
            let Some(found) = reading.within(|| at_index(place), list.next_element_seed(text))? else {
                break;
            };
            let Val::String(found) = found else { break };
            let flag = match names.place(&found) {
                Some(_) if set.contains(&found) => Err(reading.refuse(misfit("is there twice"))),
                Some(_) => Ok(found),
                None => Err(self.not_one_of(names, &found, |_| true, "")),
            };
            set.push(reading.within(|| at_index(place), flag)?);
        }
        Ok(Val::Flags(set))
    }
}
