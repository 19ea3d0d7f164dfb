//! A hook that does nothing, and the process to compare it with.

fn main() {}
