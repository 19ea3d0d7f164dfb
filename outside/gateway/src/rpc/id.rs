//! Ids of requests.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

/// Most bytes of an id as JSON. It is kept until its request is answered.
const LENGTH_MAX: usize = 256;

/// The id of an app's request: a string, a number or null, byte for byte as it came.
///
/// Two spellings of one string are two ids: an app that cancels a request writes its id as before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(Cow<'static, str>);

impl Id {
    /// The id of an answer to a message without a readable id.
    pub(crate) const NULL: Self = Self(Cow::Borrowed("null"));

    /// Completes "`id` is not".
    pub(super) const SHAPE: &str = "a string, a number or null, of at most 256 bytes";

    /// `None`: a value that can be no id.
    pub(super) fn of(json: &RawValue) -> Option<Self> {
        let json = json.get();
        let is_id =
            matches!(json.bytes().next(), Some(b'"' | b'-' | b'0'..=b'9')) && json.len() <= LENGTH_MAX;
        if json == "null" { Some(Self::NULL) } else { is_id.then(|| Self(Cow::Owned(json.to_owned()))) }
    }

    pub(super) fn of_number(number: u32) -> Self {
        Self(Cow::Owned(number.to_string()))
    }

    /// The id as JSON.
    pub(crate) fn json(&self) -> &str {
        &self.0
    }
}

/// For parameters that have an id.
impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        Self::of(json).ok_or_else(|| D::Error::custom(format_args!("the id is not {}", Self::SHAPE)))
    }
}
