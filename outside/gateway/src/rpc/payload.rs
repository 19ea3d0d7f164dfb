//! Payloads, which are bytes, as JSON.
//!
//! A payload that is JSON is sent as it stands. Any other is `{"$base64": "…"}`. So is JSON that an app would take for
//! that form, and JSON nested so deep that it could keep an app from reading the message around it.

use std::fmt;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{RpcError, parse::Text};

/// The only member of the JSON for bytes.
const MEMBER: &str = "$base64";

/// Parsers commonly stop at a depth of 128, and the message around a payload is up to four deep.
const DEPTH_MAX: usize = 100;

/// Writes padding, and reads base64 without it, too.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The payload that an app sent. Without JSON the payload is empty.
///
/// # Errors
/// A `$base64` that is not base64 or is there twice.
pub(crate) fn payload(json: Option<&RawValue>) -> Result<Bytes, RpcError> {
    let Some(json) = json else { return Ok(Bytes::new()) };
    let Some(Base64 { value, is_only }) = Base64::of(json) else {
        return Ok(Bytes::copy_from_slice(json.get().as_bytes()));
    };
    let fault = || RpcError::invalid_params(format!("`{MEMBER}` is not base64"));
    let text: Text<'_> = serde_json::from_str(value.get()).map_err(|_| fault())?;
    if !is_only {
        return Err(RpcError::invalid_params(format!("`{MEMBER}` is there twice")));
    }
    BASE64.decode(text.0.as_bytes()).map(Bytes::from).map_err(|_| fault())
}

/// The JSON of a payload, for a member of a result.
pub(crate) fn payload_value(payload: &[u8]) -> Box<RawValue> {
    let content = Content::from(payload);
    if let Content::Json(json) = content {
        return json.to_owned();
    }
    let mut json = String::new();
    content.write(&mut json);
    RawValue::from_string(json).unwrap_or_default()
}

/// A payload in the form in which it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'p> {
    Empty,
    Json(&'p RawValue),
    Binary(&'p [u8]),
}

impl<'p> From<&'p [u8]> for Content<'p> {
    fn from(payload: &'p [u8]) -> Self {
        if payload.is_empty() {
            return Self::Empty;
        }
        // Exactly one value in UTF-8, so that nothing breaks out of the message around it.
        let json = serde_json::from_slice::<&RawValue>(payload).ok();
        let json = json.filter(|json| Base64::of(json).is_none() && !is_too_deep(json.get()));
        json.map_or(Self::Binary(payload), Self::Json)
    }
}

impl Content<'_> {
    /// The length of the JSON, about.
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Empty => 4,
            Self::Json(json) => json.get().len(),
            Self::Binary(payload) => payload.len() / 3 * 4 + 32,
        }
    }

    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Empty => out.push_str("null"),
            Self::Json(json) => out.push_str(json.get()),
            Self::Binary(payload) => write_base64(out, payload),
        }
    }

    /// Writes the content as `params`, which the standard wants to be an object or an array. The bytes of any other
    /// JSON are written as base64.
    pub(super) fn write_structured(&self, out: &mut String) {
        match self {
            Self::Json(json) if !json.get().starts_with(['{', '[']) => {
                write_base64(out, json.get().as_bytes())
            }
            _ => self.write(out),
        }
    }
}

fn write_base64(out: &mut String, payload: &[u8]) {
    out.push_str(r#"{"$base64":""#);
    BASE64.encode_string(payload, out);
    out.push_str("\"}");
}

/// Whether arrays and objects are nested deeper than [`DEPTH_MAX`]. `json` is JSON.
fn is_too_deep(json: &str) -> bool {
    if json.len() <= DEPTH_MAX {
        return false;
    }
    let mut depth = 0_usize;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' if depth == DEPTH_MAX => return true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    false
}

/// Leaves the iterator behind the quote that ends the string.
fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    loop {
        match bytes.next() {
            None | Some(b'"') => return,
            Some(b'\\') => drop(bytes.next()),
            Some(_) => {}
        }
    }
}

/// An object whose members are all called `$base64`. Most parsers take the last of several.
struct Base64<'j> {
    value: &'j RawValue,
    is_only: bool,
}

impl<'j> Base64<'j> {
    /// The object, if the JSON is such an object. Other objects are not read further than to the first member with
    /// another name.
    fn of(json: &'j RawValue) -> Option<Self> {
        // The first character decides for almost all objects. The `$` may be escaped.
        let name = json.get().strip_prefix('{')?.trim_start().strip_prefix('"')?;
        if name.starts_with(['$', '\\']) { serde_json::from_str(json.get()).ok() } else { None }
    }
}

impl<'de> Deserialize<'de> for Base64<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Base64<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the member `{MEMBER}` alone")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Base64<'de>, A::Error> {
        let mut found: Option<Base64<'de>> = None;
        while let Some(Text(name)) = members.next_key()? {
            if name != MEMBER {
                return Err(A::Error::custom(""));
            }
            found = Some(Base64 { value: members.next_value()?, is_only: found.is_none() });
        }
        found.ok_or_else(|| A::Error::custom(""))
    }
}
