//! An extension without a host: [`Harness`] plays Main in memory, for plain `cargo test`.

mod clock;
mod harness;
mod pending;
mod run;
pub mod running;

pub use self::{
    clock::Clock,
    harness::Harness,
    pending::{JobState, Pending, Published},
};
