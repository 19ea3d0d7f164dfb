//! The bindings of `wasi:keyvalue`, as `wit-bindgen` makes them of the standard's WIT.

/// `wasi:keyvalue@0.2.0-draft`.
#[expect(missing_docs, reason = "generated")]
pub mod draft {
    wit_bindgen::generate!({ path: "../../../wit/keyvalue/draft", generate_all });
}

/// `wasi:keyvalue@0.2.0-draft2`.
#[expect(missing_docs, reason = "generated")]
pub mod draft2 {
    wit_bindgen::generate!({ path: "../../../wit/keyvalue/draft2", generate_all });
}
