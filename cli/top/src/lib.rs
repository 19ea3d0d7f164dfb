//! A full-screen view of a running Main: extensions and peers by what they use, and orders to one of them.
//!
//! [`Top::run`] shows it until the operator quits. It asks through [`Looks`] and orders through [`Orders`], so it knows
//! nothing of sockets or of how Main is found.

mod answers;
mod keys;
mod model;
mod quantiles;
mod run;
mod screen;
mod sort;
mod source;
mod state;
mod view;

pub use self::{
    run::{Options, Outside, Top, abandon},
    sort::SortKey,
    source::{Answers, Fault, Looks, Order, Orders},
};
