//! The store: `wasi:keyvalue` in Weir, and memory in tests of this extension on its own.

#[cfg(not(target_family = "wasm"))]
pub(crate) mod memory;

#[cfg(not(target_family = "wasm"))]
pub(crate) use self::memory::{Bucket, Error, delete_many, open, set_many};
#[cfg(target_family = "wasm")]
pub(crate) use self::{
    bindings::wasi::keyvalue::batch::{delete_many, set_many},
    bindings::wasi::keyvalue::store::{Bucket, Error, open},
};

#[cfg(target_family = "wasm")]
#[expect(unsafe_code, unreachable_pub, clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unwrap_used, reason = "generated")]
#[rustfmt::skip]
mod bindings;
