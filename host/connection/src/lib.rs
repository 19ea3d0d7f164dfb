//! Parts of a connection of a program outside Main: what it needs beside its session, in any protocol.
//!
//! Knows no protocol and no socket.

mod operations;
mod rate;
mod requests;
mod strangers;
mod under_way;

pub use self::{
    operations::Operations,
    rate::Rate,
    requests::{Requests, next_free},
    strangers::{Place, Remote, Strangers},
    under_way::UnderWay,
};
