//! Jobs: those of this Main to a work queue of JetStream, and from there to this Main.
//!
//! A queue of the fleet is a stream. Each exporting node puts into it, and each importing node takes from it by one consumer
//! that they share. Each job has an id, by which JetStream drops what is put twice.

mod brought;
mod export;
mod import;
mod stream;

pub(crate) use self::{
    brought::{Brought, Earlier},
    export::export,
    import::import,
    stream::{jetstream, stored},
};
