//! Parts of a connection of a program outside Main: what it needs beside its session, in any protocol.
//!
//! Knows no protocol and no socket.

mod operations;
mod patience;
mod rate;
mod requests;
mod strangers;
mod turns;
mod under_way;

pub use self::{
    operations::Operations,
    patience::Patience,
    rate::Rate,
    requests::{Requests, next_free},
    strangers::{Place, Remote, Strangers},
    turns::{LINGER, MAX_WAITING, Protocol, Step, answers, run},
    under_way::UnderWay,
};
