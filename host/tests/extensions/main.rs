//! Main with real extensions, from the outside: what an embedder and an operator can rely on.

mod access;
mod batches;
mod blocking;
mod concurrency;
mod files;
mod lifecycle;
mod messages;
mod order;
mod output;
mod refused;
mod support;
mod traps;
