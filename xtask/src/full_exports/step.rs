//! Adds its name to a note, and hands the note on.

use self::{
    acme::chain::step as next,
    exports::acme::chain::step::{Fault, Guest, Note},
};

wit_bindgen::generate!({ path: "step.wit", world: "middle" });

struct Rust;

export!(Rust);

impl Guest for Rust {
    fn hand(Note { text, mut path, weight }: Note) -> Result<Note, Fault> {
        path.push("rust".to_owned());
        match next::hand(&next::Note { text, path, weight }) {
            Ok(next::Note { text, path, weight }) => Ok(Note { text, path, weight }),
            Err(next::Fault::Empty) => Err(Fault::Empty),
        }
    }
}
