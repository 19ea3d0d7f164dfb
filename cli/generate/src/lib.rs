//! Typed clients of contracts, as source text: in Rust, TypeScript and Python. And contracts as interfaces in WIT.
//!
//! The same documents give the same text. What comes from a document is a stranger's: it becomes names, comments and
//! literals of the language, and nothing else. Knows nothing of where documents come from.

mod contract;
mod language;
mod names;
mod python;
mod rust;
mod text;
mod typescript;
mod union;
mod wit;

pub use self::{
    language::{Kind, Language, Unsupported, generate},
    python::python,
    rust::rust,
    typescript::typescript,
    wit::wit,
};
