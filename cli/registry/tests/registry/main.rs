//! `weir-registry` as its users have it, beside a registry that the tests play: honest, or lying in one point.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "what fails here fails the test")]

mod credentials;
mod fake;
mod lies;
mod pull;
mod push;
mod run;
mod tags;
mod tls;
mod tools;
