//! What is described of components, and that hosts and files agree on it.

use wasmtime::{Config, Engine, component::Component};
use weir_openrpc::Document;

use super::*;

/// The name of an interface, and its functions or why they cannot be called.
type Found = (String, Result<Vec<String>, String>);

/// What the file says, and what the compiled component says, of each interface: its functions, or why they cannot be
/// called.
fn both(component: &str) -> Vec<Found> {
    let bytes = wat::parse_str(component).unwrap();
    let engine = Engine::new(Config::new().wasm_component_model(true)).unwrap();
    let component = Component::new(&engine, &bytes).unwrap();
    let names = |name: &str| name.to_owned();
    let exports: Vec<_> = component.component_type().exports(&engine).map(|(name, _)| names(name)).collect();
    let of_methods = |document: Document| document.methods.into_iter().map(|method| method.name).collect();
    let described = interfaces(&bytes, &exports, &[]).into_iter().flatten().map(|it| {
        let functions = it.document.map(of_methods).unwrap_or_default();
        (it.name, it.unmapped.map_or(Ok(functions), Err))
    });
    let described: Vec<Found> = described.collect();
    let compiled = Exported::of(&component).interfaces.into_iter().map(|it| {
        let functions =
            it.functions.map(|all| all.iter().map(|function| function.name.to_string()).collect());
        (it.name.to_string(), functions)
    });
    let compiled: Vec<Found> = compiled.collect();
    // What is too large to be called is found out when it is compiled.
    let is_same = |(compiled, described): (&Found, &Found)| match &compiled.1 {
        Err(why) if why.contains("too large") => described.1.is_ok(),
        _ => compiled == described,
    };
    let is_all = compiled.len() == described.len() && compiled.iter().zip(&described).all(is_same);
    assert!(is_all, "{compiled:?} {described:?}");
    compiled
}

/// A component that exports a function by itself, which takes a value of the last of these types.
fn taking(types: &str) -> String {
    format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "take") (param i32 i32))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable))
            (core instance $i (instantiate $m))
            {types}
            (export $taken "taken" (type $last))
            (func (export "take") (param "value" (list $taken))
                (canon lift (core func $i "take") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#
    )
}

fn of_root(component: &str) -> Result<Vec<String>, String> {
    let found = both(component);
    let [(name, functions)] = <[_; 1]>::try_from(found).unwrap();
    assert_eq!(name, "*");
    functions
}

#[test]
fn types_that_json_has_no_form_for_are_refused_by_name() {
    assert_eq!(of_root(&taking(r#"(type $last (record (field "a" u8)))"#)), Ok(vec!["take".to_owned()]));
    // Each level has one more list.
    let nested = |levels: usize| {
        let inner = (1..levels).map(|level| format!("(type $t{level} (list $t{}))", level - 1));
        format!("(type $t0 u8){}(type $last (list $t{}))", inner.collect::<String>(), levels - 1)
    };
    assert!(of_root(&taking(&nested(20))).is_ok());
    assert_eq!(of_root(&taking(&nested(60))), Err("`take` has types of more than 32 levels".to_owned()));
    // Many names, each used many times.
    let cases = (0..1000).map(|number| format!("\"case-{number}\" ")).collect::<String>();
    let uses = (0..100).map(|number| format!("(field \"f{number}\" $t0)")).collect::<String>();
    let named =
        format!("(type $e (enum {cases}))(export $t0 \"named\" (type $e))(type $last (record {uses}))");
    assert_eq!(of_root(&taking(&named)), Err("`take` has too large types".to_owned()));
    // Twice as many fields with each type.
    let doubled = (1..14).map(|level| format!("(type $t{level} (tuple $t{0} $t{0}))", level - 1));
    let doubled =
        format!("(type $t0 (tuple u8)){}(type $last (tuple $t13 $t13))", doubled.collect::<String>());
    assert_eq!(of_root(&taking(&doubled)), Err("`take` has too large types".to_owned()));
}

#[test]
fn a_resource_keeps_its_interface_from_being_called_and_no_other() {
    let component = r#"(component
        (core module $m (func (export "f") (param i32)) (func (export "g")))
        (core instance $i (instantiate $m))
        (type $r (resource (rep i32)))
        (func $f (param "it" (own $r)) (canon lift (core func $i "f")))
        (func $g (canon lift (core func $i "g")))
        (component $with
            (import "r" (type $r (sub resource)))
            (import "f" (func $f (param "it" (own $r))))
            (export $e "r" (type $r))
            (export "f" (func $f) (func (param "it" (own $e)))))
        (instance $with (instantiate $with (with "r" (type $r)) (with "f" (func $f))))
        (component $without (import "g" (func $g)) (export "g" (func $g)))
        (instance $without (instantiate $without (with "g" (func $g))))
        (export "a:b/with@1.0.0" (instance $with))
        (export "a:b/without" (instance $without)))"#;
    assert_eq!(
        both(component),
        [
            ("a:b/with@1.0.0".to_owned(), Err("`f` has a resource, which JSON has no form for".to_owned())),
            ("a:b/without".to_owned(), Ok(vec!["g".to_owned()])),
        ]
    );
}

#[test]
fn an_interface_stands_for_a_contract_of_its_own_name() {
    let contract = |interface| describe::contract_of(interface).map(|contract| contract.to_string());
    assert_eq!(contract("acme:greeter/api@1.2.0").as_deref(), Some("acme.greeter.api@1"));
    assert_eq!(contract("acme:greeter/api@0.2.0-rc.1").as_deref(), Some("acme.greeter.api@0"));
    assert_eq!(contract("Api").as_deref(), Some("api@0"));
    assert_eq!(contract("*").as_deref(), Some("functions@0"));
    assert_eq!(contract("acme:greeter/api@99999999.0.0"), None);
}

#[test]
fn bytes_that_are_no_component_describe_nothing() {
    let name = ["a:b/c".to_owned()];
    for bytes in [&b""[..], b"\0asm\x0d\0\x01\0", b"\0asm\x0d\0\x01\0\x07\xff\xff\xff\xff\x0f", b"nothing"] {
        assert!(interfaces(bytes, &name, &name).into_iter().flatten().next().is_none());
    }
}
