//! The client against a Main that says what each test tells it to.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails here fails the test")]

mod blocking;
mod elsewhere;
mod examples;
mod fake;
mod messages;
mod sessions;
mod traces;
