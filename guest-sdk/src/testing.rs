//! An extension without a host: [`Harness`] plays Main in memory, for plain `cargo test`.

mod clock;
mod harness;

pub use self::{
    clock::Clock,
    harness::{Harness, Pending, Published},
};
