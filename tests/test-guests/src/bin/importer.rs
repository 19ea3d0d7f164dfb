//! Imports an interface that its host does not have, and exports one that calls it.

#![expect(unsafe_code, missing_docs, reason = "the generated bindings")]

use self::{
    exports::test::exports::relay::Guest,
    test::exports::values::{self, Color, Everything, Misdeed, Problem},
};

wit_bindgen::generate!({ path: "exports.wit", world: "importer" });

struct Importer;

export!(Importer);

impl Guest for Importer {
    fn echo(value: Everything) -> Everything {
        values::echo(&value)
    }

    fn reverse(data: Vec<u8>) -> Vec<u8> {
        values::reverse(&data)
    }

    fn add(a: i32, b: Option<i32>) -> i32 {
        values::add(a, b)
    }

    fn fail(how: Color) -> Result<String, Problem> {
        values::fail(how)
    }

    fn fail_in_words(words: String) -> Result<(), String> {
        values::fail_in_words(&words)
    }

    fn fail_by_color(color: Color) -> Result<(), Color> {
        values::fail_by_color(color)
    }

    fn trap() -> u32 {
        values::misbehave(Misdeed::Trap)
    }

    fn numbers(length: u32) -> u32 {
        values::numbers(length).into_iter().fold(0, u32::wrapping_add)
    }
}

fn main() {}
