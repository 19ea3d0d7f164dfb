//! The derive macro `Shape` of weir-sdk: a type's JSON as a constant, from the attributes that serde reads.
//!
//! It writes what schemars would write for the same type. It runs in the compiler only.

mod attributes;
mod case;
mod container;
mod enums;
mod fields;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Describes the JSON of a type, as serde writes and reads it.
///
/// Attributes of serde that change the JSON are honoured. These cannot be described and do not compile: `flatten`,
/// `untagged`, and names for only one of writing and reading. `with`, `from`, `into` and their kin, and skips of only
/// one direction, compile only beside `#[shape(as = "Type")]`, which describes a field, or the whole type, as another
/// type. `#[shape(crate = "path")]` names the crate `weir_sdk` if it has another name.
#[proc_macro_derive(Shape, attributes(shape, serde))]
pub fn shape(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    container::shape(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
