//! The bindings of `wasi:keyvalue`, as `wit-bindgen` makes them of the standard's WIT.

#[expect(unsafe_code, missing_docs, unreachable_pub, clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unwrap_used, reason = "generated")]
#[rustfmt::skip]
pub mod draft;
#[expect(unsafe_code, missing_docs, unreachable_pub, clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unwrap_used, reason = "generated")]
#[rustfmt::skip]
pub mod draft2;
