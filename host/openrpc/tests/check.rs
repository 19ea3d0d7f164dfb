//! Payloads are judged by their description.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fmt::Write;

use weir_openrpc::{Document, Unknown};

fn library() -> Document {
    Document::parse(include_str!("documents/library.json")).unwrap()
}

/// A document of one operation with these schemas.
fn document(argument: &str, types: &str) -> Document {
    Document::parse(&format!(
        r#"{{"openrpc":"1.3.2","info":{{"title":"x@1"}},"components":{{"schemas":{{{types}}}}},"methods":[
        {{"name":"x@1/y","params":[],"x-argument":{argument},"result":{{"name":"","schema":true}}}}]}}"#
    ))
    .unwrap()
}

#[test]
fn arguments_that_fit_are_accepted() {
    let library = library();
    for (operation, arguments) in [
        ("find", r#"{"words":["a"]}"#),
        ("find", r#"{"words":["a","b"],"limit":255,"order":"age"}"#),
        ("find", r#"{"order":null,"words":["é"],"limit":null}"#),
        ("find", r#"{"words":["a"],"order":"of a later version"}"#),
        ("place", r#"{"isbn":"1234567890123","place":"lost"}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"kind":"shelf","row":1}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"row":1,"color":{"red":[1]},"kind":"shelf"}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"Box":65535},"unknown":1}"#),
        ("count", r#""title""#),
        ("scan", "\0"),
        ("unknown", "\0"),
    ] {
        let result = library.check_arguments(operation, arguments.as_bytes(), Unknown::Ignored);
        assert_eq!(result, Ok(()), "{operation} {arguments}");
    }
}

#[test]
fn arguments_that_do_not_fit_say_why_and_where() {
    let library = library();
    let mut messages = String::new();
    for (operation, arguments) in [
        ("find", ""),
        ("find", "null"),
        ("find", "[]"),
        ("find", "{"),
        ("find", "{} {}"),
        ("find", r#"{"wrods":["a"]}"#),
        ("find", r#"{"words":["a"],"colour":"red"}"#),
        ("find", r#"{"words":["a"],"words":["b"]}"#),
        ("find", r#"{"words":[]}"#),
        ("find", r#"{"words":["a",""]}"#),
        ("find", r#"{"words":["a",1]}"#),
        ("find", r#"{"words":["a","b","c","d","e","f","g","h","i"]}"#),
        ("find", r#"{"words":["a"],"limit":256}"#),
        ("find", r#"{"words":["a"],"limit":-1}"#),
        ("find", r#"{"words":["a"],"limit":1.5}"#),
        ("find", r#"{"words":["a"],"limit":"1"}"#),
        ("find", r#"{"words":["a"],"order":1}"#),
        ("place", r#"{"isnb":"1234567890123","place":"lost"}"#),
        ("place", r#"{"isbn":"123","place":"lost"}"#),
        ("place", r#"{"isbn":"1234567890123","place":"found"}"#),
        ("place", r#"{"isbn":"1234567890123","place":7}"#),
        ("place", r#"{"isbn":"1234567890123","place":{}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"kind":"flying"}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"kind":"shelf"}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"kind":"shelf","row":0}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"row":"1","kind":"shelf"}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"to":5,"kind":"lent"}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"Box":-1}}"#),
        ("place", r#"{"isbn":"1234567890123","place":{"Bax":1}}"#),
        ("count", r#"5"#),
    ] {
        let misfit = library.check_arguments(operation, arguments.as_bytes(), Unknown::Ignored);
        writeln!(messages, "{operation} {arguments}\n    {}", misfit.expect_err(arguments)).unwrap();
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn a_misspelt_name_that_the_provider_would_ignore_is_found_in_what_a_person_writes() {
    let library = library();
    let mut messages = String::new();
    for arguments in [
        r#"{"isbn":"1234567890123","place":"lost","sinze":"2026-01-01T00:00:00Z"}"#,
        r#"{"isbn":"1234567890123","place":{"kind":"lent","to":"me","agian":true}}"#,
        r#"{"isbn":"1234567890123","place":{"kind":"lent","to":"me","colour":true}}"#,
    ] {
        assert_eq!(library.check_arguments("place", arguments.as_bytes(), Unknown::Ignored), Ok(()));
        let misfit = library.check_arguments("place", arguments.as_bytes(), Unknown::Refused).unwrap_err();
        writeln!(messages, "{arguments}\n    {misfit}").unwrap();
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn results_and_other_payloads_are_judged_too() {
    let library = library();
    let book =
        r#"{"isbn":"1","title":"t","parts":[{"isbn":"2","title":"u","size":[1,2.5]}],"notes":{"a":[null]}}"#;
    assert_eq!(library.check_result("find", format!("[{book}]").as_bytes()), Ok(()));
    assert_eq!(library.check_result("place", b""), Ok(()));
    assert_eq!(library.check_payload(&library.queues[0].job, book.as_bytes()), Ok(()));
    let mut messages = String::new();
    for wrong in
        [book.replace("2.5", "2.5,3"), book.replace("\"u\"", "null"), book.replace("{\"a\":[null]}", "[]")]
    {
        let misfit = library.check_result("find", format!("[{book},{wrong}]").as_bytes()).unwrap_err();
        writeln!(messages, "{misfit}").unwrap();
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn whole_numbers_are_judged_by_their_format() {
    for (format, good, bad) in [
        ("int8", vec!["-128", "127"], vec!["-129", "128"]),
        ("uint32", vec!["0", "4294967295"], vec!["-1", "4294967296"]),
        ("int64", vec!["-9223372036854775808"], vec!["9223372036854775808", "1e3"]),
        ("uint64", vec!["18446744073709551615"], vec!["18446744073709551616", "-1"]),
        ("uint128", vec!["18446744073709551616"], vec!["-1", "1.5"]),
        ("of-tomorrow", vec!["-1"], vec!["\"1\""]),
    ] {
        let document = document(&format!(r#"{{"type":"integer","format":"{format}"}}"#), "");
        let fits = |value: &str| document.check_arguments("y", value.as_bytes(), Unknown::Ignored).is_ok();
        assert!(good.iter().all(|value| fits(value)), "{format}");
        assert!(!bad.iter().any(|value| fits(value)), "{format}");
    }
}

#[test]
fn no_payload_stands_for_null_or_an_object_without_fields() {
    for (schema, fits) in [
        (r#"{"type":"null"}"#, true),
        (r#"{"type":["string","null"]}"#, true),
        (r#"{"type":"object"}"#, true),
        (r#"{"type":"object","additionalProperties":{"type":"string"}}"#, true),
        (r#"{"type":"string"}"#, false),
    ] {
        let document = document(schema, "");
        for payload in ["", "null"] {
            let result = document.check_arguments("y", payload.as_bytes(), Unknown::Ignored);
            assert_eq!(result.is_ok(), fits, "{schema}");
        }
    }
}

#[test]
fn alternatives_within_alternatives_cost_no_more_than_the_value_is_long() {
    let list = r##"{"type":"array","items":{"$ref":"#/components/schemas/A"}}"##;
    let lists = vec![list; 40].join(",");
    let document = document(
        r##"{"$ref":"#/components/schemas/A"}"##,
        &format!(r#""A":{{"oneOf":[{lists},{{"type":"integer"}}]}}"#),
    );
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(document.check_arguments("y", deep.as_bytes(), Unknown::Ignored), Ok(()));
    let wrong = deep.replace('1', "true");
    let misfit = document.check_arguments("y", wrong.as_bytes(), Unknown::Ignored).unwrap_err();
    assert_eq!(misfit.message, "must be an array or an integer, and is a boolean");
    let long = format!("[{}1]", "1,".repeat(10_000));
    let misfit = document.check_arguments("y", long.as_bytes(), Unknown::Ignored).unwrap_err();
    assert_eq!(misfit.to_string(), "`$` has too many values for types with so many alternatives");
    let deeper = "[".repeat(100_000);
    assert!(document.check_arguments("y", deeper.as_bytes(), Unknown::Ignored).is_err());
}

#[test]
fn a_long_list_of_one_type_is_never_too_long() {
    let document = document(r#"{"type":"array","items":{"type":"integer"}}"#, "");
    let long = format!("[{}1]", "1,".repeat(1_000_000));
    assert_eq!(document.check_arguments("y", long.as_bytes(), Unknown::Ignored), Ok(()));
}
