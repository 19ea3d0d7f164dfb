//! Which task runs next on the worker thread, and for how long.
//!
//! Knows nothing of messages, nor of what a task does.

mod blocking;
mod drive;
mod handoff;
mod thread;
mod turn;

pub use self::{
    blocking::{BlockingError, refuse_in_async, wait, wait_for},
    drive::{Alarm, drive},
    handoff::{Handoff, note_wait, switch},
    thread::{is_worker_thread, mark_worker_thread},
    turn::{Activity, InTurn, SharedShare, Turns, end_slice},
};
