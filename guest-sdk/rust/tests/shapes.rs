//! The JSON Schema of a type is what schemars makes of it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

#[path = "shapes/enums.rs"]
mod enums;
#[path = "shapes/structs.rs"]
mod structs;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    net::IpAddr,
    num::NonZero,
    rc::Rc,
    time::{Duration, SystemTime},
};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use weir_names::{Item, Payload, Role, json::Writer};
use weir_sdk::{Contract, Description, Shape};

/// The schema of `T` in a document, and the types that it refers to.
fn described<T: Shape>() -> (Value, Value) {
    let item = Item::Operation {
        name: "get",
        doc: &[],
        arguments: Payload::Json(<()>::SCHEMA),
        result: Payload::Json(T::SCHEMA),
        errors: &[],
    };
    let description = Box::leak(Box::new(Description { doc: &[], items: Box::leak(Box::new([item])) }));
    let mut document = document(Contract::new("test@1").described(description), Role::Provider);
    (document["methods"][0]["result"]["schema"].take(), document["components"]["schemas"].take())
}

fn document(contract: Contract, role: Role) -> Value {
    let mut counter = Writer::new(&mut []);
    contract.write_document(role, &mut counter);
    let mut buffer = vec![0; counter.length()];
    contract.write_document(role, &mut Writer::new(&mut buffer));
    serde_json::from_slice(&buffer).unwrap()
}

/// The same from schemars.
fn expected<T: JsonSchema>() -> (Value, Value) {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let schema = generator.subschema_for::<T>().to_value();
    let definitions = generator.take_definitions(true);
    let mut both = [schema, if definitions.is_empty() { Value::Null } else { definitions.into() }];
    let definitions = both[1].clone();
    both.iter_mut().for_each(|value| normalize(value, &definitions));
    let [schema, mut definitions] = both;
    remove_unused(&schema, &mut definitions);
    (schema, definitions)
}

/// Removes default values. Where a type stands beside a tag by reference, its content stands there instead.
fn normalize(value: &mut Value, definitions: &Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| normalize(value, definitions)),
        Value::Object(object) => {
            object.remove("default");
            if object.contains_key("properties")
                && let Some(Value::String(reference)) = object.remove("$ref")
            {
                let name = reference.rsplit('/').next().unwrap();
                for (key, content) in definitions[name].as_object().unwrap() {
                    match (object.get_mut(key), content) {
                        (Some(Value::Object(own)), Value::Object(more)) => own.extend(more.clone()),
                        (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.clone()),
                        (Some(_), _) => {}
                        (None, content) => drop(object.insert(key.clone(), content.clone())),
                    }
                }
            }
            object.values_mut().for_each(|value| normalize(value, definitions));
        }
        _ => {}
    }
}

fn remove_unused(schema: &Value, definitions: &mut Value) {
    let Value::Object(all) = definitions else { return };
    let names: Vec<String> = all.keys().cloned().collect();
    for name in names {
        let reference = format!("\"#/components/schemas/{name}\"");
        let others = all.iter().filter(|(other, _)| **other != name);
        if !schema.to_string().contains(&reference)
            && !others.map(|(_, schema)| schema.to_string()).any(|schema| schema.contains(&reference))
        {
            all.remove(&name);
        }
    }
    if all.is_empty() {
        *definitions = Value::Null;
    }
}

fn assert_same<T: Shape + JsonSchema>() {
    let (schema, definitions) = described::<T>();
    let (expected_schema, expected_definitions) = expected::<T>();
    let name = std::any::type_name::<T>();
    assert_eq!(schema, expected_schema, "{name}");
    assert_eq!(definitions, expected_definitions, "types of {name}");
}

macro_rules! same {
    ($test:ident: $($type:ty),* $(,)?) => {
        #[test]
        fn $test() {
            $(assert_same::<$type>();)*
        }
    };
}

same! {
    types_of_the_standard_library_are_described_as_schemars_describes_them:
    bool, char, f32, f64, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, (), String,
    NonZero<u8>, NonZero<u16>, NonZero<u32>, NonZero<u64>, IpAddr, std::path::PathBuf,
    Value, serde_json::Map<String, Value>, serde_json::Number,
    Option<u8>, Option<Option<String>>, Option<()>, Option<Value>, Option<Vec<u8>>, Option<Duration>,
    Vec<Option<u8>>, VecDeque<bool>, Box<[u8]>, Box<str>, Rc<str>, Cow<'static, str>, &'static str,
    [u8; 0], [u8; 3], Option<[u8; 2]>, HashSet<u8>, BTreeSet<String>, Option<BTreeSet<char>>,
    BTreeMap<String, u8>, HashMap<String, Vec<u8>>, Option<HashMap<String, Value>>,
    (u8,), (u8, String), Option<(u8, Option<bool>)>, (u8, u16, u32, u64, i8, i16, i32, i64),
    Duration, SystemTime,
}

same! {
    structs_are_described_as_schemars_describes_them:
    structs::Documented, structs::Plain, structs::Strict, structs::Defaults, structs::SomeDefaults,
    structs::Renamed, structs::Camel, structs::Kebab, structs::Screaming, structs::Skipped, structs::Optional,
    structs::Unit, structs::Id, structs::Wrapped, structs::WrappedOption, structs::Transparent,
    structs::TransparentDocumented, structs::Pair, structs::NoPlaces, structs::Tree, structs::Even,
    structs::Page<structs::Plain>, structs::Pages, structs::Borrowed<'static>, structs::Other,
    structs::Nested, structs::Escapes, structs::Raw, structs::Described, structs::As, structs::Empty,
    Option<structs::Plain>, Vec<structs::Id>, BTreeMap<String, structs::Tree>, Option<structs::WrappedOption>,
}

same! {
    enums_are_described_as_schemars_describes_them:
    enums::Words, enums::DocumentedWords, enums::SomeDocumentedWords, enums::RenamedWords, enums::External,
    enums::Internal, enums::InternalOfTypes, enums::Adjacent, enums::StrictAdjacent, enums::StrictInternal,
    enums::FieldNames, enums::Recursive, enums::SkippedVariant, enums::One, Option<enums::Words>,
    enums::TaggedMap,
}

#[test]
fn an_enum_with_a_variant_for_other_words_is_open() {
    let (_, mut definitions) = described::<enums::OpenWords>();
    assert_eq!(definitions["OpenWords"].take(), json!({"type": "string", "enum": ["on"], "x-open": true}));
    let (_, mut definitions) = described::<enums::OpenTagged>();
    let option = json!({"type": "object", "properties": {"kind": {"type": "string", "const": "a"}}, "required": ["kind"]});
    assert_eq!(definitions["OpenTagged"].take(), json!({"oneOf": [option], "x-open": true}));
}

#[test]
fn a_field_that_is_not_always_written_is_optional() {
    let (_, mut definitions) = described::<structs::SometimesWritten>();
    assert_eq!(definitions["SometimesWritten"].take()["required"], Value::Null);
}
