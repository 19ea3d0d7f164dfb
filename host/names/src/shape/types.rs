//! Describes the JSON of types of the standard library and of `serde_json`, as serde writes it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZero,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{Definition, Described, Field, Reference, Schema, Shape, type_id};

macro_rules! simple {
    ($($type:ty => $kind:literal $(, $keywords:literal)?;)*) => {$(
        impl Shape for $type {
            const SCHEMA: &'static Schema =
                &Schema::Simple { kind: $kind, keywords: concat!($($keywords)?) };
        }
    )*};
}

simple! {
    () => "null";
    bool => "boolean";
    f32 => "number", r#","format":"float""#;
    f64 => "number", r#","format":"double""#;
    i8 => "integer", r#","format":"int8","minimum":-128,"maximum":127"#;
    i16 => "integer", r#","format":"int16","minimum":-32768,"maximum":32767"#;
    i32 => "integer", r#","format":"int32""#;
    i64 => "integer", r#","format":"int64""#;
    i128 => "integer", r#","format":"int128""#;
    isize => "integer", r#","format":"int""#;
    u8 => "integer", r#","format":"uint8","minimum":0,"maximum":255"#;
    u16 => "integer", r#","format":"uint16","minimum":0,"maximum":65535"#;
    u32 => "integer", r#","format":"uint32","minimum":0"#;
    u64 => "integer", r#","format":"uint64","minimum":0"#;
    u128 => "integer", r#","format":"uint128","minimum":0"#;
    usize => "integer", r#","format":"uint","minimum":0"#;
    NonZero<u8> => "integer", r#","format":"uint8","minimum":1,"maximum":255"#;
    NonZero<u16> => "integer", r#","format":"uint16","minimum":1,"maximum":65535"#;
    NonZero<u32> => "integer", r#","format":"uint32","minimum":1"#;
    NonZero<u64> => "integer", r#","format":"uint64","minimum":1"#;
    NonZero<u128> => "integer", r#","format":"uint128","minimum":1"#;
    NonZero<usize> => "integer", r#","format":"uint","minimum":1"#;
    char => "string", r#","minLength":1,"maxLength":1"#;
    str => "string";
    String => "string";
    Path => "string";
    PathBuf => "string";
    Ipv4Addr => "string", r#","format":"ipv4""#;
    Ipv6Addr => "string", r#","format":"ipv6""#;
    IpAddr => "string", r#","format":"ip""#;
    SocketAddr => "string";
}

macro_rules! same_as {
    ($([$($generics:tt)*] $type:ty => $other:ty;)*) => {$(
        impl<$($generics)*> Shape for $type {
            const SCHEMA: &'static Schema = <$other>::SCHEMA;
        }
    )*};
}

same_as! {
    [T: Shape + ?Sized] &T => T;
    [T: Shape + ?Sized] Box<T> => T;
    [T: Shape + ?Sized] Rc<T> => T;
    [T: Shape + ?Sized] Arc<T> => T;
    [T: Shape + ToOwned + ?Sized] Cow<'_, T> => T;
    [T: Shape] Vec<T> => [T];
    [T: Shape] VecDeque<T> => [T];
    [T: Shape, H] HashSet<T, H> => BTreeSet<T>;
    [K: AsRef<str>, V: Shape, H] HashMap<K, V, H> => BTreeMap<K, V>;
}

impl<T: Shape> Shape for Option<T> {
    const SCHEMA: &'static Schema = &Schema::Nullable(T::SCHEMA);
}

impl<T: Shape> Shape for [T] {
    const SCHEMA: &'static Schema = &Schema::List(T::SCHEMA);
}

impl<T: Shape, const LENGTH: usize> Shape for [T; LENGTH] {
    const SCHEMA: &'static Schema = &Schema::Array(T::SCHEMA, LENGTH);
}

impl<T: Shape> Shape for BTreeSet<T> {
    const SCHEMA: &'static Schema = &Schema::Set(T::SCHEMA);
}

/// The keys must be strings, because JSON has no others.
impl<K: AsRef<str>, V: Shape> Shape for BTreeMap<K, V> {
    const SCHEMA: &'static Schema = &Schema::Map(V::SCHEMA);
}

macro_rules! tuples {
    ($($(($name:ident))+;)*) => {$(
        impl<$($name: Shape),+> Shape for ($($name,)+) {
            const SCHEMA: &'static Schema =
                &Schema::Tuple(&[$(Described { doc: "", schema: $name::SCHEMA }),+]);
        }
    )*};
}

tuples! {
    (A);
    (A)(B);
    (A)(B)(C);
    (A)(B)(C)(D);
    (A)(B)(C)(D)(E);
    (A)(B)(C)(D)(E)(F);
    (A)(B)(C)(D)(E)(F)(G);
    (A)(B)(C)(D)(E)(F)(G)(H);
}

macro_rules! times {
    ($($type:ty => $name:literal, $seconds:literal, $nanos:literal;)*) => {$(
        impl Shape for $type {
            const SCHEMA: &'static Schema = &Schema::Named(Reference::new(&Definition {
                name: $name,
                id: type_id(concat!("std::time::", $name)),
                arguments: &[],
                doc: "",
                schema: &Schema::Record {
                    fields: &[
                        Field { name: $seconds, doc: "", optional: false, schema: u64::SCHEMA },
                        Field { name: $nanos, doc: "", optional: false, schema: u32::SCHEMA },
                    ],
                    strict: false,
                },
            }));
        }
    )*};
}

times! {
    Duration => "Duration", "secs", "nanos";
    SystemTime => "SystemTime", "secs_since_epoch", "nanos_since_epoch";
}

#[cfg(feature = "json")]
mod json {
    use super::{BTreeMap, Schema, Shape};

    simple! { serde_json::Number => "number"; }

    same_as! { [] serde_json::Map<String, serde_json::Value> => BTreeMap<String, serde_json::Value>; }

    impl Shape for serde_json::Value {
        const SCHEMA: &'static Schema = &Schema::Any;
    }
}

impl Shape for crate::codec::Empty {
    const SCHEMA: &'static Schema = &Schema::Named(Reference::new(&Definition {
        name: "Empty",
        id: type_id("weir_names::codec::Empty"),
        arguments: &[],
        doc: "No arguments, or no result.",
        schema: &Schema::Record { fields: &[], strict: false },
    }));
}
