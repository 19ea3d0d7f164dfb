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
mod bindings {
    wit_bindgen::generate!({ path: "../../wit/keyvalue/draft", generate_all });
}
