//! The contracts of Weir's own extensions: names and types, shared by owners and callers.

pub mod courier;
pub mod device_info;
pub mod settings;
pub mod storage;
pub mod telemetry;

pub mod echo {
    //! `echo@1`: answers with the bytes of the request, for tests and benchmarks.

    weir_sdk::contract! {
        /// Answers with the bytes of the request, for tests and benchmarks.
        pub const CONTRACT = "echo@1";

        /// Answers with the bytes of the request.
        pub const ECHO: fn(bytes) -> bytes = "echo";
    }
}
