//! JSON of callers, and the values that a component's function gets and returns.

use std::cell::LazyCell;

use weir_host::{
    CallOptions, Error, MainConfig,
    component::inspect_bytes,
    openrpc::{Document, Unknown},
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::{
    scratch,
    stage::{PATIENCE, Stage, extension},
};

const INTERFACE: &str = "fuzz:values/all@1.0.0";

/// Every kind of type that has a form in JSON.
const WIT: &str = "package fuzz:values@1.0.0;
    interface all {
        record point { x: s32, y: s32 }
        variant figure { empty, circle(f64), polygon(list<point>), maybe(option<point>) }
        enum color { red, dark-green }
        flags access { read, write, execute }
        record everything {
            truth: bool, a-s8: s8, a-u8: u8, a-s16: s16, a-u16: u16, a-s32: s32, a-u32: u32, a-s64: s64, a-u64: u64,
            single: f32, double: f64, letter: char, text: string, bytes: list<u8>, numbers: list<u32>,
            pair: tuple<u8, string>, perhaps: option<string>, twice: option<option<u8>>,
            outcome: result<u8, string>, bare: result, figure: figure, color: color, access: access,
        }
        echo: func(value: everything) -> everything;
    }
    world fuzz { export all; }";

/// Returns the values where they are: arguments and result are laid out alike. What was allocated for a call is free after
/// it.
const MODULE: &str = r#"(module
    (memory (export "memory") 256)
    (global $free (mut i32) (i32.const 1024))
    (func (export "fuzz:values/all@1.0.0#echo") (param i32) (result i32) (local.get 0))
    (func (export "cabi_post_fuzz:values/all@1.0.0#echo") (param i32)
        (global.set $free (i32.const 1024)))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and
            (i32.add (global.get $free) (i32.sub (local.get 2) (i32.const 1)))
            (i32.sub (i32.const 0) (local.get 2))))
        (global.set $free (i32.add (local.get $at) (local.get 3)))
        (local.get $at)))"#;

fn component() -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("values.wit", WIT).unwrap();
    let world = resolve.select_world(&[package], Some("fuzz")).unwrap();
    let mut module = wat::parse_str(MODULE).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

struct Exports {
    stage: Stage,
    document: Document,
}

impl Exports {
    fn new() -> Self {
        let (dir, component) = (scratch(), component());
        let mut all = extension(&dir, "all", &component);
        all.fulfills = vec!["all@1".parse().unwrap()];
        all.exports = [("all@1".parse().unwrap(), INTERFACE.parse().unwrap())].into();
        all.limits.memory = 32 << 20;
        all.limits.ready_timeout = PATIENCE;
        let document = inspect_bytes(&component).unwrap().contracts.remove(0);
        Self { stage: Stage::new(dir, MainConfig::default(), vec![all]), document }
    }

    async fn call(&self, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        let options = CallOptions::default().timeout(PATIENCE);
        self.stage
            .main
            .client()
            .call_with("all@1", "echo", payload, options)
            .await
            .map(|answer| answer.to_vec())
    }

    /// What the function takes fits its description, and comes back as something that it takes and returns unchanged. All
    /// else is refused before the function is called.
    async fn check(&self, data: &[u8]) {
        match self.call(data.to_vec()).await {
            Ok(answer) => {
                if let Err(misfit) = self.document.check_arguments("echo", data, Unknown::Refused) {
                    // Numbers of 64 bits are read beyond what every reader keeps, and written as text.
                    assert!(misfit.message.contains("9007199254740991"), "{misfit}");
                }
                self.document.check_result("echo", &answer).unwrap();
                let again = [&b"{\"value\":"[..], &answer, b"}"].concat();
                match self.call(again).await {
                    Ok(again) => assert_eq!(String::from_utf8(again), String::from_utf8(answer)),
                    // Text may be longer than what it was written from.
                    Err(error) => assert_eq!(error.case(), "too-large"),
                }
            }
            Err(Error::Handler(error)) => {
                assert!(["invalid-argument", "too-large"].contains(&&*error.code), "{error}");
            }
            Err(error) => assert_eq!(error.case(), "too-large"),
        }
        assert_eq!(self.stage.main.control().status("all").unwrap().failures, []);
        self.stage.check().await;
    }
}

thread_local! {
    static EXPORTS: LazyCell<Exports> = LazyCell::new(Exports::new);
}

/// Calls the function of a component with the input as arguments.
pub fn exports(data: &[u8]) {
    EXPORTS.with(|exports| exports.stage.runtime.block_on(exports.check(data)));
}
