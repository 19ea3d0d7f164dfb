//! Encodings of arguments and results as payloads.

use std::borrow::Cow;

#[cfg(feature = "json")]
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;

/// No arguments, or no result: `{}` in JSON.
///
/// A caller may leave out these arguments. A later version of the contract may add optional fields to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// JSON payloads: the convention for contracts that people call by hand.
///
/// An empty payload, and `null`, are read as `null`, or as `{}` if the type cannot be `null`. So optional arguments can
/// be left out.
#[derive(Clone, Copy, Debug)]
pub struct Json;

/// Payloads are raw bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bytes;

/// An encoding that can write a `T`.
pub trait Encode<T: ?Sized> {
    /// The payload for `value`.
    ///
    /// # Errors
    /// If the encoding cannot represent the value, such as a map with keys that are not strings in JSON.
    fn encode(value: &T) -> Result<Cow<'_, [u8]>, Error>;

    /// The payload for `value`, reusing its memory if possible.
    ///
    /// # Errors
    /// The errors of `encode`.
    fn encode_owned(value: T) -> Result<Vec<u8>, Error>
    where
        T: Sized,
    {
        Self::encode(&value).map(Cow::into_owned)
    }
}

/// An encoding that can read a `T`.
pub trait Decode<T> {
    /// The value in `payload`.
    ///
    /// # Errors
    /// The fault in the payload, as text.
    fn decode(payload: Vec<u8>) -> Result<T, String>;
}

#[cfg(feature = "json")]
impl<T: Serialize + ?Sized> Encode<T> for Json {
    fn encode(value: &T) -> Result<Cow<'_, [u8]>, Error> {
        Ok(Cow::Owned(serde_json::to_vec(value)?))
    }
}

#[cfg(feature = "json")]
impl<T: DeserializeOwned> Decode<T> for Json {
    fn decode(payload: Vec<u8>) -> Result<T, String> {
        if matches!(&*payload, b"" | b"null") {
            serde_json::from_slice(b"null").or_else(|_| serde_json::from_slice(b"{}"))
        } else {
            serde_json::from_slice(&payload)
        }
        .map_err(|error| error.to_string())
    }
}

impl Encode<Vec<u8>> for Bytes {
    fn encode(value: &Vec<u8>) -> Result<Cow<'_, [u8]>, Error> {
        Ok(Cow::Borrowed(value))
    }

    fn encode_owned(value: Vec<u8>) -> Result<Vec<u8>, Error> {
        Ok(value)
    }
}

impl Decode<Vec<u8>> for Bytes {
    fn decode(payload: Vec<u8>) -> Result<Vec<u8>, String> {
        Ok(payload)
    }
}

#[cfg(all(test, feature = "json"))]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Arguments {
        prefix: Option<String>,
    }

    #[test]
    fn optional_arguments_can_be_left_out() {
        for payload in ["", "null", "{}"] {
            assert_eq!(Json::decode(payload.into()), Ok(Arguments { prefix: None }), "{payload:?}");
            assert_eq!(Json::decode(payload.into()), Ok(Empty {}), "{payload:?}");
        }
        assert_eq!(Json::decode(Vec::new()), Ok(()));
        assert_eq!(Json::decode(b"null".to_vec()), Ok(None::<u8>));
    }

    #[test]
    fn wrong_arguments_say_what_is_wrong() {
        let wrong: Result<Arguments, String> = Json::decode(br#"{"prefix":1}"#.to_vec());
        let message = wrong.unwrap_err();
        assert!(message.contains("expected a string at line 1 column"), "{message}");
    }
}
