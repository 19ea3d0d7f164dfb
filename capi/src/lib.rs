//! Weir for programs in C and C++: what [`weir_host`] does, as functions and opaque handles.
//!
//! `include/weir.h` is made of these modules, in this order, with their comments. It is written for readers of C: a
//! change here is a change there, and the test `header` compares both.
//!
//! - Each handle is a Rust type that C knows by its name alone. C gets it in a `Box`, and gives it back to a function
//!   that frees it. Other functions borrow it.
//! - Each function catches panics, and gives errors as objects.
//! - Only [`c`] follows pointers of C. Everywhere else, `unsafe` is the attribute that exports a name.

#![expect(non_camel_case_types, reason = "these are the names in C")]
#![expect(unsafe_code, reason = "an exported name is an `unsafe` attribute")]

pub mod buffer;
pub mod builder;
pub mod c;
pub mod call;
pub mod config;
pub mod control;
pub mod error;
pub mod events;
pub mod hooks;
pub mod log;
pub mod queue;
pub mod request;
pub mod running;
pub mod session;
pub mod topics;

mod work;
