//! Times and durations in JSON, for `#[serde(with = …)]`. Reading fails for what is no time or no duration.

/// A time as RFC 3339, in UTC, to the millisecond.
pub mod rfc3339 {
    use std::time::SystemTime;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the text.
    pub fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_millis(*time))
    }

    /// Reads the text, of any precision.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        humantime::parse_rfc3339(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// A time as RFC 3339, in UTC, to the nanosecond.
pub mod rfc3339_nanos {
    use std::time::SystemTime;

    use serde::Serializer;

    pub use super::rfc3339::deserialize;

    /// Writes the text.
    pub fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_nanos(*time))
    }
}

/// A duration in seconds.
pub mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the number.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    /// Reads the number.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Defines a module that writes and reads an optional value: as the module `$with` does, or as `null`.
macro_rules! if_any {
    ($(#[$doc:meta])* $name:ident, $with:literal, $of:ty) => {
        $(#[$doc])*
        pub mod $name {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};

            #[derive(Deserialize, Serialize)]
            struct Value(#[serde(with = $with)] $of);

            /// Writes the value.
            pub fn serialize<S: Serializer>(value: &Option<$of>, serializer: S) -> Result<S::Ok, S::Error> {
                value.map(Value).serialize(serializer)
            }

            /// Reads the value.
            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$of>, D::Error> {
                Ok(Option::deserialize(from)?.map(|Value(value)| value))
            }
        }
    };
}

if_any! {
    /// An optional time as RFC 3339, to the millisecond.
    rfc3339_if_any, "super::rfc3339", std::time::SystemTime
}

if_any! {
    /// An optional duration in seconds.
    seconds_if_any, "super::seconds", std::time::Duration
}
