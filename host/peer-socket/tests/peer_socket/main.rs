//! The peer socket of a real Main, with programs that behave and programs that do not.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod conversation;
mod crowd;
mod descriptions;
mod frames;
mod greetings;
mod slow;
mod support;
mod traces;
