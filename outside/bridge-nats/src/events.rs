//! Events: those of this Main to other nodes, and of other nodes to this Main.
//!
//! An event crosses once: what a bridge has published here, no bridge takes from here. So nodes that export all to each other
//! send each event as often as there are nodes, and no more.

mod export;
mod import;
mod numbers;
mod retained;

pub(crate) use self::{
    export::{Publisher, export},
    import::import,
    numbers::Seen,
};
